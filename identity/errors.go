package identity

import (
	"errors"
	"fmt"
	"strings"
)

// What a service of this package answers when it cannot do as asked. Unknown and belonging to another organization
// are one and the same answer.
var (
	ErrOrganizationNotFound = errors.New("no organization has this id")
	ErrOrganizationExists   = errors.New("an organization with this id exists already: choose another id")
	ErrKeyNotFound          = errors.New("no key of the organization has this id")

	// ErrUnauthenticated is matched by every RefusedError.
	ErrUnauthenticated = errors.New("the API key is not accepted")
	// ErrUnavailable says that nobody could tell, because the store did not answer. It is never a statement about the key.
	ErrUnavailable = errors.New("the key could not be checked, try again shortly")
)

// FieldError is one fault of one field of a request.
type FieldError struct {
	Pointer string // JSON pointer to the field, such as "/scopes/0"
	Code    string // one of the Code constants
	Detail  string // one sentence that says what would be right
}

// The codes of a FieldError.
const (
	CodeRequired         = "required"
	CodeTooLong          = "too_long"
	CodeInvalidUTF8      = "invalid_utf8"
	CodeControlCharacter = "control_character"
	CodeMalformed        = "malformed"
	CodeOutOfRange       = "out_of_range"
	CodeUnknownValue     = "unknown_value"
)

// InvalidError lists everything that is wrong with a request, all at once.
type InvalidError struct {
	Fields []FieldError
}

func (e *InvalidError) Error() string {
	faults := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		faults[i] = f.Pointer + ": " + f.Detail
	}
	return "the request is invalid: " + strings.Join(faults, "; ")
}

// VersionError says that the record changed since the caller read it: read it again, and decide anew.
type VersionError struct {
	Current int64 // the version that is stored now
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("the record has changed meanwhile and is now at version %d: read it again", e.Current)
}

// ScopeError says that a key was asked to have more scopes than the caller has.
type ScopeError struct {
	Missing []Scope
}

func (e *ScopeError) Error() string {
	names := NewScopeSet(e.Missing...).String()
	return "nobody can make a key with more scopes than its own: leave out " + names + ", or use a key that has them"
}

// Refusal is why a key is not accepted. It is for the audit trail; the caller is told no more than that the key is not
// accepted, or the reason would confirm to a stranger which keys exist.
type Refusal string

// The refusals of a key.
const (
	RefusalMalformed   Refusal = "malformed"
	RefusalUnknown     Refusal = "unknown"
	RefusalWrongSecret Refusal = "wrong_secret"
	RefusalRevoked     Refusal = "revoked"
	RefusalExpired     Refusal = "expired"
)

// RefusedError is a key that is not accepted; it matches ErrUnauthenticated. Organization is set only if the secret was
// right, so that a stranger who knows a key's id cannot write into an organization's audit trail.
type RefusedError struct {
	Refusal      Refusal
	KeyID        KeyID // empty if the text names none
	Organization OrganizationID
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%v (%s)", ErrUnauthenticated, e.Refusal)
}

// Is makes every refusal an ErrUnauthenticated.
func (e *RefusedError) Is(target error) bool { return target == ErrUnauthenticated }
