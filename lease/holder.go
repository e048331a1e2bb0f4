package lease

// The bounds of a holder's texts.
const (
	MaxHolderID   = 255 // bytes
	MaxHolderName = 200 // characters
)

// Holder is who has a lease. Two holders are the same writer if their identifiers are equal byte for byte, whatever their
// names: two tabs of one person share their leases, and "Host-A" is not "host-a".
type Holder struct {
	ID   string
	Name string // for people, and says nothing about who it is; empty: as before, or the identifier
}

// Is tells whether both are the same writer.
func (h Holder) Is(other Holder) bool { return h.ID == other.ID }

// Writer is a holder at work: for which organization, by which credential and with which rights. The texts are those of
// package identity, which this package does not know.
type Writer struct {
	Organization string
	Holder       Holder
	Credential   string   // the id of the API key; empty if somebody works on the database itself
	Rights       []string // the scopes of the credential
	ActorKind    string   // as the audit trail keeps it
	ActorID      string
	RequestID    string
}
