package strictjson

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Check lists everything that is wrong with a value.
func (s *Schema) Check(v *Value) []Fault {
	var f faults
	s.check(&f, "", v)
	return f
}

func (s *Schema) check(f *faults, pointer string, v *Value) {
	if !s.allows(v.Kind) {
		f.add(pointer, CodeWrongType, "It must be "+s.wanted()+".")
		return
	}
	switch v.Kind {
	case Text:
		s.checkText(f, pointer, v.Text)
	case Number:
		s.checkInteger(f, pointer, v.Text)
	case List:
		s.checkList(f, pointer, v.Items)
	case Object:
		s.checkObject(f, pointer, v.Members)
	case Null, Bool:
	}
}

// wanted names the kinds that are allowed.
func (s *Schema) wanted() string {
	names := map[Kind]string{
		Null: "null", Bool: "true or false", Number: "an integer", Text: "a text", List: "a list", Object: "an object",
	}
	var words []string
	for _, kind := range s.kinds {
		words = append(words, names[kind])
	}
	return strings.Join(words, " or ")
}

func (s *Schema) checkText(f *faults, pointer, text string) {
	switch length := uint64(utf8.RuneCountInString(text)); { //nolint:gosec // a length is not negative
	case strings.ContainsFunc(text, IsControl):
		f.add(pointer, CodeControlCharacter, "It must not contain control characters or line breaks.")
	case s.enum != nil && !slices.Contains(s.enum, text):
		f.add(pointer, CodeUnknownValue, "It must be one of "+strings.Join(s.enum, ", ")+".")
	case length < s.minLength && length == 0:
		f.add(pointer, CodeRequired, "It must not be empty.")
	case s.maxLength != nil && length > *s.maxLength:
		f.add(pointer, CodeTooLong, fmt.Sprintf("It must have at most %d characters.", *s.maxLength))
	case s.pattern != nil && !s.pattern.MatchString(text):
		f.add(pointer, CodeMalformed, "It must have the form of "+strconv.Quote(s.example)+".")
	case s.dateTime && !isDateTime(text):
		f.add(pointer, CodeMalformed, `It must be a time such as "2026-01-31T12:00:00Z".`)
	}
}

// IsControl tells characters that could forge a line of a log or a terminal: controls, and the line and paragraph
// separators.
func IsControl(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

// dateTime is the form of RFC 3339, which time.Parse alone does not hold: it takes offsets of a day and more, commas and
// hours of one digit.
var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$`)

// isDateTime holds RFC 3339, in years that machines are bought and sold in. The zero time of Go is none of them, so that
// nobody can mean "not given" by giving it.
func isDateTime(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && dateTime.MatchString(text) && at.UTC().Year() >= 1970 && at.UTC().Year() <= 9999
}

// checkInteger takes digits alone: 1.0 and 1e3 are whole numbers to a mathematician and mistakes in an order.
func (s *Schema) checkInteger(f *faults, pointer, digits string) {
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil && strings.ContainsAny(digits, ".eE"):
		f.add(pointer, CodeWrongType, "It must be an integer, written in digits alone.")
	case err != nil || n < s.min || n > s.max:
		f.add(pointer, CodeOutOfRange, fmt.Sprintf("It must lie between %d and %d.", s.min, s.max))
	}
}
