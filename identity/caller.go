package identity

// ActorKind is the kind of whoever changed something.
type ActorKind string

// The kinds of actors.
const (
	ActorKey       ActorKind = "key"       // an API key
	ActorPerson    ActorKind = "person"    // a member of staff, by name
	ActorSweep     ActorKind = "sweep"     // the periodic tidy-up
	ActorAllocator ActorKind = "allocator" // the allocator, moving a dead hold out of the way
	ActorSystem    ActorKind = "system"    // the service itself: first start, demo, maintenance jobs
)

// Actor is who changed something: a kind, and an id within it. The sweep and the allocator need no id.
type Actor struct {
	Kind ActorKind
	ID   string
}

// String writes the actor as people read it: "key key_0190…", "sweep".
func (a Actor) String() string {
	if a.ID == "" {
		return string(a.Kind)
	}
	return string(a.Kind) + " " + a.ID
}

// Caller is one authenticated call: for which organization, with which rights, by whom. A door fills in RequestID, so
// that the audit trail leads back to the request.
type Caller struct {
	Organization OrganizationID
	KeyID        KeyID // empty if no key was used
	Scopes       ScopeSet
	Actor        Actor
	RequestID    string
}

// LocalCaller is the caller of a command that works on the database itself, as orgs and keys do: whoever holds the
// database's password may do everything, and the audit trail still says who it was.
func LocalCaller(org OrganizationID, actor Actor) Caller {
	return Caller{Organization: org, Scopes: AllScopes(), Actor: actor}
}
