package lease

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// faults collects what is wrong.
type faults struct{ found []FieldError }

func (f *faults) addf(field, code, format string, args ...any) {
	f.found = append(f.found, FieldError{field, code, fmt.Sprintf(format, args...)})
}

func (f *faults) err() error {
	if len(f.found) == 0 {
		return nil
	}
	return &InvalidError{Fields: f.found}
}

// resource: 1 to 255 bytes and no control character. Bytes and not characters, since it is a key of an index.
func (f *faults) resource(text string) {
	switch {
	case text == "":
		f.addf("resource", CodeRequired, "must not be empty")
	case len(text) > MaxResource:
		f.addf("resource", CodeTooLong, "must have at most %d bytes", MaxResource)
	default:
		f.readable("resource", text)
	}
}

func (f *faults) part(text string) {
	if text != "" && !ValidPart(text) {
		f.addf("part", CodeMalformed, "must be 1 to %d letters, digits, _ or -", MaxPart)
	}
}

func (f *faults) holder(h Holder) {
	switch {
	case h.ID == "":
		f.addf("holder", CodeRequired, "must not be empty")
	case len(h.ID) > MaxHolderID:
		f.addf("holder", CodeTooLong, "must have at most %d bytes", MaxHolderID)
	default:
		f.readable("holder", h.ID)
	}
	if utf8.RuneCountInString(h.Name) > MaxHolderName {
		f.addf("name", CodeTooLong, "must have at most %d characters", MaxHolderName)
		return
	}
	f.readable("name", h.Name)
}

func (f *faults) seconds(n int64) {
	if n < MinSeconds || n > MaxSeconds {
		f.addf("seconds", CodeOutOfRange, "must lie between %d and %d", MinSeconds, MaxSeconds)
	}
}

func (f *faults) readable(field, text string) {
	switch {
	case !utf8.ValidString(text):
		f.addf(field, CodeInvalidUTF8, "must be valid UTF-8")
	case strings.ContainsFunc(text, isControl):
		f.addf(field, CodeControlCharacter, "must not contain control characters or line breaks")
	}
}

// isControl covers the line and paragraph separators too, which unicode.IsControl does not.
func isControl(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

// checkKey looks at what a writer names.
func checkKey(w Writer, key Key) error {
	f := faults{}
	f.resource(key.Resource)
	f.part(key.Part)
	f.holder(w.Holder)
	return f.err()
}

// checkClaim looks at what a claim brings along.
func checkClaim(w Writer, key Key, seconds int64) error {
	f := faults{}
	f.resource(key.Resource)
	f.part(key.Part)
	f.holder(w.Holder)
	f.seconds(seconds)
	return f.err()
}
