package inventory

import (
	"errors"
	"fmt"
	"strings"
)

// What the service answers when it cannot do as asked. Unknown and belonging to another organization are one and the
// same answer.
var (
	ErrNotFound = errors.New("no server of the organization has this id")
	ErrExists   = errors.New("a server with this source and external_id exists already: change that one, or give another external_id")
	ErrInUse    = errors.New("the server is held or bound: only its name, serial, tags, attributes and price can be changed until that ends")

	// ErrVersionMismatch is matched by every VersionError.
	ErrVersionMismatch = errors.New("the server was changed since you read it: read it again and repeat the change on what it is now")
)

// VersionError says that the record is no longer the one that the caller read; it matches ErrVersionMismatch.
type VersionError struct {
	Current int64 // the version that is stored now
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("%v (version %d)", ErrVersionMismatch, e.Current)
}

// Is makes every VersionError an ErrVersionMismatch.
func (e *VersionError) Is(target error) bool { return target == ErrVersionMismatch }

// FieldError is one fault of one field.
type FieldError struct {
	Pointer string // JSON pointer to the field, such as "/drives/0/count"; of many servers, "/17/drives/0/count"
	Code    string // one of the Code constants
	Detail  string // one sentence that says what would be right
}

// The codes of a FieldError.
const (
	CodeRequired         = "required"
	CodeTooLong          = "too_long"
	CodeTooMany          = "too_many"
	CodeInvalidUTF8      = "invalid_utf8"
	CodeControlCharacter = "control_character"
	CodeMalformed        = "malformed"
	CodeOutOfRange       = "out_of_range"
	CodeUnknownValue     = "unknown_value"
	CodeRepeated         = "repeated"
	CodeFiller           = "filler"
)

// InvalidError lists everything that is wrong, all at once.
type InvalidError struct {
	Fields []FieldError
}

// Error implements error.
func (e *InvalidError) Error() string {
	faults := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		faults[i] = f.Pointer + ": " + f.Detail
	}
	return "the server is invalid: " + strings.Join(faults, "; ")
}
