package inventory

import (
	"context"
	"strconv"
)

// Change says on whose behalf a record is written; it is what the audit trail keeps. The texts are those of package
// identity, which this package does not know.
type Change struct {
	Organization string
	ActorKind    string
	ActorID      string
	RequestID    string

	// Editor is the holder of edit leases on whose behalf it is written. Changes of a record need one of its leases, and
	// nothing is added where somebody else is editing. Empty: nobody who edits, such as an import; then no lease is needed.
	Editor string
}

// The actions of the audit trail that writes of servers leave.
const (
	ActionServerCreated  = "server.created"
	ActionServersCreated = "servers.created" // of CreateMany: no subject, the counts are in the detail
	ActionServerUpdated  = "server.updated"
)

// Created tells what CreateMany did.
type Created struct {
	Created  int
	Existing int // had been there, by source and external_id, and were left as they are
}

// Store keeps servers. Each write leaves an entry in the organization's audit trail in the same transaction; a write
// that changes nothing leaves none. Texts of organizations are opaque.
type Store interface {
	// CreateServer stores a new server and gives it its id, version and times, or answers ErrExists. Like CreateServers it
	// answers lease.HeldError where somebody else edits the rack or the chassis that the server comes to.
	CreateServer(ctx context.Context, by Change, s Server) (Server, error)
	// CreateServers stores all of those whose source and external_id are not there yet, or none.
	CreateServers(ctx context.Context, by Change, servers []Server) (Created, error)
	// Server reads one, or answers ErrNotFound.
	Server(ctx context.Context, org string, id ServerID) (Server, error)
	// Servers lists in the order of ids.
	Servers(ctx context.Context, org string, filter Filter) ([]Server, error)
	// UpdateServer locks the server, asks edit what it becomes, and stores that with the next version. inUse tells
	// whether a live hold or an active binding has the server, read behind the lock. An error of edit is returned as it
	// is, with nothing written; no Changed, and nothing is written either. It answers ErrNotFound for an unknown id. For an
	// editor it demands, in the same transaction, a lease that covers what is changed: lease.HeldError, LostError,
	// ErrEditRefused.
	UpdateServer(ctx context.Context, by Change, id ServerID,
		edit func(now Server, inUse bool) (Server, []Changed, error)) (Server, error)
}

// Service keeps the records of servers. Which caller may do so is decided at the door. A server's state is changed by
// reservation.Service, since what holds the server decides whether it may. Safe for concurrent use.
type Service struct {
	store Store
}

// NewService returns the service over a store.
func NewService(store Store) *Service { return &Service{store: store} }

// Create stores one server. Its state must be given, and cannot be retired. ID, Version and times of s are ignored.
// Errors: InvalidError, ErrExists.
func (s *Service) Create(ctx context.Context, by Change, server Server) (Server, error) {
	f := faults{}
	validateNew(&f, &server)
	if err := f.err(); err != nil {
		return Server{}, err
	}
	return s.store.CreateServer(ctx, by, server)
}

// CreateMany stores many servers, all or none; those that are there already, by source and external_id, are left as they
// are and counted, so that it can be repeated. The pointers of an InvalidError begin with the position of the server.
func (s *Service) CreateMany(ctx context.Context, by Change, servers []Server) (Created, error) {
	f := faults{}
	type identity struct{ source, externalID string }
	first := make(map[identity]int, len(servers))
	for i := range servers {
		f.prefix = "/" + strconv.Itoa(i)
		validateNew(&f, &servers[i])
		id := identity{servers[i].Source, servers[i].ExternalID}
		if before, repeated := first[id]; repeated {
			f.addf("/external_id", CodeRepeated, "names the same server as /%d", before)
		} else {
			first[id] = i
		}
	}
	if err := f.err(); err != nil || len(servers) == 0 {
		return Created{}, err
	}
	return s.store.CreateServers(ctx, by, servers)
}

func validateNew(f *faults, s *Server) {
	s.validate(f)
	if s.State == StateRetired {
		f.addf("/state", CodeUnknownValue, "must be a state in which a server can begin, not retired")
	}
}

// Get reads one server of the organization. Errors: ErrNotFound.
func (s *Service) Get(ctx context.Context, org string, id ServerID) (Server, error) {
	return s.store.Server(ctx, org, id)
}

// List gives the servers of the organization that the filter lets through, in the order of their ids. An After that is
// no server's id at all is answered with ErrNotFound. Errors: InvalidError, ErrNotFound.
func (s *Service) List(ctx context.Context, org string, filter Filter) ([]Server, error) {
	if err := filter.validate(); err != nil {
		return nil, err
	}
	return s.store.Servers(ctx, org, filter)
}

// Update changes a record if it is still at ifVersion (0: whatever it is). Of a held or bound server only the
// descriptive fields can change: the buyer was promised the rest. A patch that changes nothing writes nothing.
// Errors: ErrNotFound, VersionError, InvalidError, ErrInUse, and for an editor those of its lease.
func (s *Service) Update(ctx context.Context, by Change, id ServerID, patch Patch, ifVersion int64) (Server, error) {
	return s.store.UpdateServer(ctx, by, id, func(now Server, inUse bool) (Server, []Changed, error) {
		if ifVersion != 0 && now.Version != ifVersion {
			return Server{}, nil, &VersionError{Current: now.Version}
		}
		next, changed := patch.Apply(now)
		if err := next.Validate(); err != nil {
			return Server{}, nil, err
		}
		for _, c := range changed {
			if inUse && !c.Descriptive {
				return Server{}, nil, ErrInUse
			}
		}
		return next, changed, nil
	})
}
