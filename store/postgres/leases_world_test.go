package postgres

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// rights is a policy that the test sets.
type rights struct {
	mu       sync.Mutex
	none     map[string]bool // holders who may not edit
	keeps    map[string]bool // holders from whom nobody may take over
	asked    []string
	unsettle error
}

func (r *rights) MayEdit(_ context.Context, w lease.Writer, _ lease.Key) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.none[w.Holder.ID], r.unsettle
}

func (r *rights) MayTakeOver(_ lease.Writer, from lease.Lease) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, from.Key.String())
	return !r.keeps[from.Holder.ID]
}

func (r *rights) lose(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.none[holder] = true
}

// leaseBundle is two services over one table, as two replicas would be, in a database whose clock the test sets.
type leaseBundle struct {
	*locksBundle
	t        *testing.T
	pool     *pgxpool.Pool // that the services use
	rights   *rights
	one, two *lease.Service
}

func setupLeases(t *testing.T, options ...lease.Option) *leaseBundle {
	t.Helper()
	locks := setupLocks(t)
	b := &leaseBundle{locksBundle: locks, t: t, pool: openPool(t, locks.url, 6), rights: &rights{none: map[string]bool{}, keeps: map[string]bool{}}}
	b.one = lease.NewService(NewLeases(b.pool), b.rights, options...)
	b.two = lease.NewService(NewLeases(b.pool), b.rights, options...)
	return b
}

func writer(holder string) lease.Writer {
	return lease.Writer{Organization: org, Holder: lease.Holder{ID: holder, Name: "the one called " + holder}, Credential: "key_of_" + holder, ActorKind: "key"}
}

func keyOf(resource string, part ...string) lease.Key {
	if len(part) > 0 {
		return lease.Key{Resource: resource, Part: part[0]}
	}
	return lease.Key{Resource: resource}
}

// acquire takes a lease that must be had.
func (b *leaseBundle) acquire(holder string, key lease.Key, seconds int64) lease.Lease {
	b.t.Helper()
	got, err := b.one.Acquire(b.t.Context(), writer(holder), key, seconds)
	require.NoError(b.t, err)
	return got.Lease
}

// refused says that somebody has the key, and returns who.
func (b *leaseBundle) refused(holder string, key lease.Key) lease.Lease {
	b.t.Helper()
	_, err := b.two.Acquire(b.t.Context(), writer(holder), key, 60)
	var held *lease.HeldError
	require.ErrorAs(b.t, err, &held)
	require.NotNil(b.t, held.Lease, "with the lease that is in the way")
	return *held.Lease
}

func (b *leaseBundle) heartbeat(holder string, key lease.Key, seconds int64) (lease.Lease, error) {
	got, err := b.two.Heartbeat(b.t.Context(), writer(holder), key, seconds)
	return got.Lease, err
}

// present is who edits a resource, as "part:holder".
func (b *leaseBundle) present(resource string) []string {
	b.t.Helper()
	p, err := b.two.Presence(b.t.Context(), writer("reader"), resource)
	require.NoError(b.t, err)
	names := []string{}
	for i, l := range p.Leases {
		names = append(names, l.Key.Part+":"+l.Holder.ID)
		p.Leases[i].Credential, p.Leases[i].Version = "", 0
	}
	onTheDatabase := writer("reader")
	onTheDatabase.Credential = ""
	seen, may, err := NewLeasePresence(b.pool).Presence(b.t.Context(), onTheDatabase, resource)
	require.NoError(b.t, err)
	require.True(b.t, may)
	atTheDoor := lease.Presence{Resource: resource, Now: seen.Now, Leases: seen.Active()}
	require.Equal(b.t, p, atTheDoor, "asked as the door does")
	return names
}
