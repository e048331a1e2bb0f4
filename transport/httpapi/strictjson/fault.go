package strictjson

import (
	"strconv"
	"strings"
)

// Fault is one thing that is wrong with a request.
type Fault struct {
	Pointer string // a JSON pointer (RFC 6901); empty for the value as a whole
	Code    string // one of the Code constants
	Detail  string // one sentence that says what would be right
}

// The codes of a Fault.
const (
	CodeMalformedJSON    = "malformed_json"
	CodeInvalidUTF8      = "invalid_utf8"
	CodeTrailingData     = "trailing_data"
	CodeTooDeep          = "too_deep"
	CodeRepeatedField    = "repeated_field"
	CodeUnknownField     = "unknown_field"
	CodeRequired         = "required"
	CodeWrongType        = "wrong_type"
	CodeControlCharacter = "control_character"
	CodeTooLong          = "too_long"
	CodeTooMany          = "too_many"
	CodeTooFew           = "too_few"
	CodeOutOfRange       = "out_of_range"
	CodeUnknownValue     = "unknown_value"
	CodeMalformed        = "malformed"
	CodeMore             = "more"
)

// MaxFaults bounds the faults of one answer: a hostile body of 64 KiB could have thousands. The last one says so.
const MaxFaults = 100

// faults collects what is wrong.
type faults []Fault

func (f *faults) add(pointer, code, detail string) {
	switch n := len(*f); {
	case n < MaxFaults-1:
		*f = append(*f, Fault{pointer, code, detail})
	case n == MaxFaults-1:
		*f = append(*f, Fault{"", CodeMore, "There are more faults than are listed here."})
	}
}

// maxPointerName bounds what a caller's own field name adds to an answer, in bytes before escaping.
const maxPointerName = 100

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// member extends a pointer by the name of a field.
func member(pointer, name string) string {
	if len(name) > maxPointerName {
		name = strings.ToValidUTF8(name[:maxPointerName], "") + "…"
	}
	return pointer + "/" + pointerEscapes.Replace(name)
}

// item extends a pointer by a position in a list.
func item(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }
