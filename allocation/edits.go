package allocation

import (
	"context"
	"slices"
	"sync"
	"time"

	"allocator/identity"
	"allocator/inventory"
)

// EditFeed tells which servers somebody is editing: their record, their rack or their chassis is leased.
type EditFeed interface {
	// ServersUnderEdit reads them.
	ServersUnderEdit(ctx context.Context, org identity.OrganizationID) ([]inventory.ServerID, error)
}

// NotingEdits lets decisions and evaluations note which servers are under edit. The note rejects nothing, ranks nothing and
// never makes a sale wait: a request asks beside its transaction and takes what is known when it decides.
func NotingEdits(feed EditFeed) Option {
	return func(a *Allocator) { a.edits = &edits{feed: feed, orgs: map[identity.OrganizationID]*edited{}} }
}

// The age of what is known of edits: after editsRefresh a request has it read anew, after editsKept it says nothing any
// more, and a reading that takes longer than editsPatience is given up.
const (
	editsRefresh  = time.Second
	editsKept     = 5 * time.Second
	editsPatience = 2 * time.Second
)

// maxNoted bounds what one decision keeps.
const maxNoted = 500

// edits remembers, for organizations that were asked about, which servers are under edit. nil knows of none.
type edits struct {
	feed EditFeed

	mu   sync.Mutex
	orgs map[identity.OrganizationID]*edited
}

type edited struct {
	servers []inventory.ServerID // never changed
	read    time.Time            // by this process's clock; zero: never
	reading bool
}

// begin has the servers read anew if what is known is old. It returns at once.
func (e *edits) begin(ctx context.Context, org identity.OrganizationID) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.orgs[org]
	if known == nil {
		known = &edited{}
		e.orgs[org] = known
	}
	if known.reading || known.youngerThan(editsRefresh) {
		return
	}
	known.reading = true
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editsPatience)
		defer cancel()
		_, _ = e.read(ctx, org) // without an answer there is no note
	}()
}

// read reads the servers now.
func (e *edits) read(ctx context.Context, org identity.OrganizationID) ([]inventory.ServerID, error) {
	if e == nil {
		return nil, nil
	}
	began := time.Now() //nolint:forbidigo // the age of what is in memory is no deadline of a reservation
	servers, err := e.feed.ServersUnderEdit(ctx, org)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		if known := e.orgs[org]; known != nil {
			known.reading = false
		}
		return nil, err
	}
	e.orgs[org] = &edited{servers: servers, read: began}
	return servers, nil
}

// known is what was read last, unless that is too long ago to be said.
func (e *edits) known(org identity.OrganizationID) []inventory.ServerID {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.orgs[org]; known != nil && known.youngerThan(editsKept) {
		return known.servers
	}
	return nil
}

func (k *edited) youngerThan(age time.Duration) bool {
	return !k.read.IsZero() && time.Since(k.read) < age //nolint:forbidigo // likewise
}

// noted is what a decision keeps of the servers under edit: those that it tried in any case, then the others up to the bound.
func noted(servers []inventory.ServerID, walked []Walked) []inventory.ServerID {
	if len(servers) <= maxNoted {
		return servers
	}
	tried := func(id inventory.ServerID) bool {
		return slices.ContainsFunc(walked, func(w Walked) bool { return w.Server == id })
	}
	first := slices.Clone(servers)
	slices.SortStableFunc(first, func(a, b inventory.ServerID) int {
		switch {
		case tried(a) == tried(b):
			return 0
		case tried(a):
			return -1
		default:
			return 1
		}
	})
	return first[:maxNoted]
}
