package identity

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkText holds the rules of every text a person may type: something visible, at most limit characters (not bytes),
// valid UTF-8, and no character that could forge a line in a log or a terminal. It returns nil if all is well.
func checkText(pointer, text string, limit int) *FieldError {
	switch {
	case strings.TrimSpace(text) == "":
		return &FieldError{pointer, CodeRequired, "must not be empty"}
	case !utf8.ValidString(text):
		return &FieldError{pointer, CodeInvalidUTF8, "must be valid UTF-8"}
	case utf8.RuneCountInString(text) > limit:
		return &FieldError{pointer, CodeTooLong, fmt.Sprintf("must have at most %d characters", limit)}
	case strings.ContainsFunc(text, isControl):
		return &FieldError{pointer, CodeControlCharacter, "must not contain control characters or line breaks"}
	}
	return nil
}

// isControl covers the line and paragraph separators too, which unicode.IsControl does not.
func isControl(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

// faults collects what is wrong with a request.
type faults []FieldError

func (f *faults) add(fault *FieldError) {
	if fault != nil {
		*f = append(*f, *fault)
	}
}

func (f *faults) err() error {
	if len(*f) == 0 {
		return nil
	}
	return &InvalidError{Fields: *f}
}
