package inventory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// faults collects what is wrong with the record whose JSON pointer is prefix.
type faults struct {
	prefix string
	found  []FieldError
}

func (f *faults) addf(pointer, code, format string, args ...any) {
	f.found = append(f.found, FieldError{f.prefix + pointer, code, fmt.Sprintf(format, args...)})
}

func (f *faults) err() error {
	if len(f.found) == 0 {
		return nil
	}
	return &InvalidError{Fields: f.found}
}

// required is text for a field that must not be empty.
func (f *faults) required(pointer, text string, limit int) {
	if text == "" {
		f.addf(pointer, CodeRequired, "must not be empty")
		return
	}
	f.text(pointer, text, limit)
}

// text holds the rules of every text of a record; the empty text is unknown and allowed. Texts are compared exactly, so
// a blank at an end, which nobody sees, would make two of what is one. Blanks inside are kept as they are.
func (f *faults) text(pointer, text string, limit int) {
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	switch {
	case text == "":
	case !utf8.ValidString(text):
		f.addf(pointer, CodeInvalidUTF8, "must be valid UTF-8")
	case utf8.RuneCountInString(text) > limit:
		f.addf(pointer, CodeTooLong, "must have at most %d characters", limit)
	case strings.ContainsFunc(text, isControl):
		f.addf(pointer, CodeControlCharacter, "must not contain control characters or line breaks")
	case unicode.IsSpace(first) || unicode.IsSpace(last):
		f.addf(pointer, CodeMalformed, "must not begin or end with a blank")
	}
}

// isControl covers the line and paragraph separators too, which unicode.IsControl does not.
func isControl(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

// pattern is text of a fixed form; the empty text is unknown and allowed.
func (f *faults) pattern(pointer, text string, form *regexp.Regexp, sentence string) {
	if text != "" && !form.MatchString(text) {
		f.addf(pointer, CodeMalformed, "%s", sentence)
	}
}

// count is a number that is 0 when unknown.
func (f *faults) count(pointer string, n, most int64) {
	if n != 0 {
		f.positive(pointer, n, most)
	}
}

// positive is a number that cannot be unknown.
func (f *faults) positive(pointer string, n, most int64) {
	if n < 1 || n > most {
		f.addf(pointer, CodeOutOfRange, "must lie between 1 and %d", most)
	}
}

func (f *faults) atMost(pointer string, n, most int) {
	if n > most {
		f.addf(pointer, CodeTooMany, "must have at most %d entries", most)
	}
}

// oneOf is a word of a fixed set.
func oneOf[T ~string](f *faults, pointer string, have T, allowed ...T) {
	if slices.Contains(allowed, have) {
		return
	}
	words := make([]string, 0, len(allowed))
	for _, word := range allowed {
		if word != "" {
			words = append(words, string(word))
		}
	}
	f.addf(pointer, CodeUnknownValue, "must be one of %s", strings.Join(words, ", "))
}

// escapePointer makes a name a part of a JSON pointer (RFC 6901).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(name, "\uFFFD"))
}
