package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/lease"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
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

// The whole excludes others on every part, a part excludes others on itself and on the whole, two parts are had by two;
// and nobody excludes themselves, in either order and under another name.
//
// Requirements: E01, E04, E06, E07, E08.
func TestWhoExcludesWhom(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("anna", keyOf("rack:A12"), 60)
	require.Equal(t, "anna", b.refused("bob", keyOf("rack:A12")).Holder.ID)
	require.Equal(t, "anna", b.refused("bob", keyOf("rack:A12", "u17")).Holder.ID)
	b.acquire("bob", keyOf("rack:A13"), 60)

	b.acquire("anna", keyOf("chassis:7", "node-1"), 60)
	b.acquire("bob", keyOf("chassis:7", "node-2"), 60)
	require.Equal(t, "node-1", b.refused("cleo", keyOf("chassis:7")).Key.Part, "the first in the way")
	require.Equal(t, "node-2", b.refused("anna", keyOf("chassis:7")).Key.Part)
	require.Equal(t, "bob", b.refused("anna", keyOf("chassis:7", "node-2")).Holder.ID)

	b.acquire("anna", keyOf("rack:A12", "u17"), 60) // the whole, then a part
	b.acquire("cleo", keyOf("machine:1", "disks"), 60)
	b.acquire("cleo", keyOf("machine:1"), 60) // a part, then the whole
	other := writer("cleo")
	other.Holder.Name = "the other tab"
	again, err := b.two.Acquire(t.Context(), other, keyOf("machine:1"), 90)
	require.NoError(t, err)
	require.Equal(t, "the other tab", again.Lease.Holder.Name)
	require.Equal(t, []string{":cleo", "disks:cleo"}, b.present("machine:1"))

	theirs := writer("bob")
	theirs.Organization = otherOrg
	_, err = b.one.Acquire(t.Context(), theirs, keyOf("rack:A12"), 60)
	require.NoError(t, err, "another organization has racks of its own")
}

// Granted for so many seconds; renewed for its holder; after its end, and at it, the next one's, with no purge.
//
// Requirements: E08, E09, E14, E18. Cases: LE-09.
func TestLifeOfALease(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, seconds := range []int64{1, 60, 3 * 3600, 86400} {
		key := keyOf(fmt.Sprint("lived:", seconds))
		whole := time.Duration(seconds) * time.Second
		start := b.now(t)
		got := b.acquire("anna", key, seconds)
		require.Equal(t, start.Add(whole), got.ExpiresAt)
		require.Equal(t, time.UTC, got.ExpiresAt.Location())
		b.advance(t, whole*99/100)
		require.Equal(t, "anna", b.refused("bob", key).Holder.ID, "at 99 %")
		b.advance(t, whole-whole*99/100-time.Microsecond)
		require.Equal(t, int64(1), func() int64 { l := b.refused("bob", key); return l.SecondsLeftAt(b.now(t)) }())
		b.advance(t, time.Microsecond)
		require.Empty(t, b.present(key.Resource))
		released, err := b.one.Release(t.Context(), writer("anna"), key)
		require.NoError(t, err)
		require.Equal(t, lease.Released{Lapsed: true}, released, "it had run out")
		b.acquire("bob", key, 60)
	}

	first := b.acquire("anna", keyOf("rack:A12"), 60)
	b.advance(t, 50*time.Second)
	kept, err := b.heartbeat("anna", keyOf("rack:A12"), 30)
	require.NoError(t, err)
	require.Equal(t, b.now(t).Add(30*time.Second), kept.ExpiresAt, "from now on, not from the old end")
	require.Equal(t, first.AcquiredAt, kept.AcquiredAt)
	renewed := b.acquire("anna", keyOf("rack:A12"), 60)
	require.Equal(t, b.now(t).Add(time.Minute), renewed.ExpiresAt)
	require.Greater(t, renewed.Version, kept.Version)
}

// The clock is the database's: it stands in 2031 here, and a lease ends when that clock says so. Ends are whole seconds
// whenever the claim came.
//
// Requirements: E18.
func TestLeasesGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.advance(t, 700*time.Millisecond)
	got := b.acquire("anna", keyOf("rack:A12"), 60)
	require.Zero(t, got.ExpiresAt.Nanosecond())
	require.InDelta(t, 60, got.ExpiresAt.Sub(b.now(t)).Seconds(), 0.5)
	require.Equal(t, 2031, got.ExpiresAt.Year())
	b.advance(t, -time.Hour)
	b.refused("bob", keyOf("rack:A12"))
	require.Equal(t, got.ExpiresAt, read[time.Time](t, b.pool, `SELECT expires_at FROM leases`).UTC())
}

// An expired lease that nobody took is kept by its holder's heartbeat; one that was taken, even if it was given back since,
// is lost.
//
// Requirements: E10, E11, E14. Cases: LE-01.
func TestHeartbeatAfterTheEnd(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	key := keyOf("rack:A12", "u17")
	b.acquire("anna", key, 10)
	b.advance(t, time.Hour)
	require.Empty(t, b.present("rack:A12"))
	_, err := b.heartbeat("anna", key, 60)
	require.NoError(t, err, "nobody took it")
	require.Equal(t, []string{"u17:anna"}, b.present("rack:A12"))

	b.advance(t, time.Hour)
	b.acquire("bob", keyOf("rack:A12"), 60) // the whole, which overlaps it
	_, err = b.heartbeat("anna", key, 60)
	var lost *lease.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, "bob", lost.By.Holder.ID)
	_, err = b.one.Release(t.Context(), writer("bob"), keyOf("rack:A12"))
	require.NoError(t, err)
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorAs(t, err, &lost, "bob may have changed what anna's page shows")
	require.Nil(t, lost.By)

	b.acquire("anna", key, 60)
	b.advance(t, time.Minute)
	b.acquire("bob", key, 60) // the same key
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrLost)
	_, err = b.heartbeat("cleo", keyOf("never"), 60)
	require.ErrorIs(t, err, lease.ErrLost)
	require.NotErrorIs(t, err, lease.ErrHeld)
}

// Release tells whether it was held; leave gives back all that the holder has of the resource and nothing of others.
//
// Requirements: E12, E13.
func TestReleaseAndLeave(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	release := func(holder string, key lease.Key) lease.Released {
		got, err := b.two.Release(t.Context(), writer(holder), key)
		require.NoError(t, err)
		return got
	}
	b.acquire("anna", keyOf("rack:A12", "u17"), 60)
	require.Equal(t, lease.Released{}, release("anna", keyOf("rack:A12")), "the part is not the whole")
	require.Equal(t, lease.Released{}, release("bob", keyOf("rack:A12", "u17")), "it is not bob's")
	require.Equal(t, lease.Released{Held: true}, release("anna", keyOf("rack:A12", "u17")))
	require.Equal(t, lease.Released{}, release("anna", keyOf("rack:A12", "u17")), "not twice")

	for _, part := range []string{"u1", "u2", "u3"} {
		b.acquire("anna", keyOf("rack:A12", part), 60)
	}
	b.acquire("anna", keyOf("rack:A13"), 60)
	b.acquire("bob", keyOf("rack:A12", "u9"), 60)
	left, err := b.two.Leave(t.Context(), writer("anna"), "rack:A12")
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.Equal(t, []string{"u9:bob"}, b.present("rack:A12"))
	require.Equal(t, []string{":anna"}, b.present("rack:A13"))
	left, err = b.two.Leave(t.Context(), writer("anna"), "rack:A12")
	require.NoError(t, err)
	require.Empty(t, left)
}

// A take-over removes what overlaps, leaves alone what does not, asks the policy for each lease that would go, and after
// one no nothing is changed.
//
// Requirements: E15, E19, E21.
func TestTakeOverLease(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	take := func(holder string, key lease.Key) (lease.TakeOver, error) {
		return b.two.TakeOver(t.Context(), writer(holder), key, 60, "anna is at lunch")
	}
	b.acquire("anna", keyOf("rack:A12", "u1"), 60)
	b.acquire("bob", keyOf("rack:A12", "u2"), 60)
	b.acquire("cleo", keyOf("rack:A12", "u3"), 60)
	b.rights.keeps["bob"] = true
	_, err := take("cleo", keyOf("rack:A12"))
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.NotErrorIs(t, err, lease.ErrHeld)
	require.Equal(t, []string{"u1:anna", "u2:bob", "u3:cleo"}, b.present("rack:A12"), "nothing was changed")
	require.Equal(t, []string{"rack:A12 part u1", "rack:A12 part u2"}, b.rights.asked, "for every one, and not for her own")

	got, err := take("cleo", keyOf("rack:A12", "u1"))
	require.NoError(t, err)
	require.Equal(t, "anna", got.Removed[0].Holder.ID)
	require.Equal(t, []string{"u1:cleo", "u2:bob", "u3:cleo"}, b.present("rack:A12"))
	_, err = b.heartbeat("anna", keyOf("rack:A12", "u1"), 60)
	require.ErrorIs(t, err, lease.ErrLost)

	b.rights.keeps["bob"] = false
	got, err = take("dora", keyOf("rack:A12"))
	require.NoError(t, err)
	require.Len(t, got.Removed, 3)
	require.Equal(t, b.now(t).Add(time.Minute), got.Lease.ExpiresAt)
	require.Equal(t, []string{":dora"}, b.present("rack:A12"))
	require.Equal(t, "anna is at lunch", read[string](t, b.pool,
		`SELECT detail ->> 'reason' FROM audit WHERE action = 'lease.taken_over' AND detail ->> 'holder' = 'dora'`))

	b.rights.lose("eve")
	_, err = take("eve", keyOf("rack:A12"))
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, []string{":dora"}, b.present("rack:A12"))
	got, err = take("dora", keyOf("rack:A12"))
	require.NoError(t, err)
	require.Empty(t, got.Removed, "from nobody")
}

// Who may not edit gets nothing and sees nothing; whoever loses the right loses the lease at the next heartbeat, and the
// next one can have it at once. A policy that cannot be asked is a failure and no refusal.
//
// Requirements: E19, E20, E21.
func TestPolicyIsAskedEachTime(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	key := keyOf("rack:A12")
	b.acquire("anna", key, 60)
	b.rights.lose("anna")
	_, err := b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.NotErrorIs(t, err, lease.ErrLost)
	require.Empty(t, b.present("rack:A12"), "it is free")
	b.acquire("bob", key, 60)
	_, err = b.one.Acquire(t.Context(), writer("anna"), keyOf("rack:A13"), 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	_, err = b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, []string{":bob"}, b.present("rack:A12"), "what is bob's stays")
	_, err = b.one.Presence(t.Context(), writer("anna"), "rack:A12")
	require.ErrorIs(t, err, lease.ErrEditRefused)

	b.rights.unsettle = reservation.ErrUnavailable
	_, err = b.heartbeat("bob", key, 60)
	require.ErrorIs(t, err, reservation.ErrUnavailable)
	require.NotErrorIs(t, err, lease.ErrEditRefused)
	require.Equal(t, 1, read[int](t, b.pool, `SELECT count(*) FROM leases`))
}

// With a ceiling no heartbeat and no renewal keeps a lease longer; the next one has it at the latest one lease later.
//
// Requirements: E09. Cases: LE-06.
func TestCeilingOfALease(t *testing.T) {
	t.Parallel()
	b := setupLeases(t, lease.Ceiling(time.Hour))
	key := keyOf("rack:A12")
	b.acquire("anna", key, 60)
	for range 60 {
		_, err := b.heartbeat("anna", key, 60)
		require.NoError(t, err)
		b.advance(t, time.Minute-time.Second)
	}
	b.advance(t, time.Minute)
	_, err := b.heartbeat("anna", key, 60)
	require.ErrorIs(t, err, lease.ErrCeiling)
	b.advance(t, time.Minute)
	b.acquire("bob", key, 60)
	renewals := 0
	for err = nil; err == nil; renewals++ { // acquiring again is no way around it
		b.advance(t, 59*time.Second)
		_, err = b.two.Acquire(t.Context(), writer("bob"), key, 60)
	}
	require.ErrorIs(t, err, lease.ErrCeiling)
	require.Equal(t, 62, renewals, "an hour")
	b.advance(t, time.Minute)
	b.acquire("bob", key, 60) // nobody wanted it meanwhile
}

// Presence is what counts, the whole first and then by part, each with its holder and its end.
//
// Requirements: E14, E31.
func TestPresenceIsInOrder(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, part := range []string{"b", "a", "Z", "10", "9"} {
		b.acquire("anna", keyOf("rack:A12", part), 60)
	}
	b.acquire("anna", keyOf("rack:A12"), 30)
	b.acquire("anna", keyOf("rack:A12", "gone"), 10)
	b.acquire("anna", keyOf("rack:A123"), 60)
	b.advance(t, 10*time.Second)
	p, err := b.two.Presence(t.Context(), writer("bob"), "rack:A12")
	require.NoError(t, err)
	parts := []string{}
	for _, l := range p.Leases {
		parts = append(parts, l.Key.Part)
	}
	require.Equal(t, []string{"", "10", "9", "Z", "a", "b"}, parts)
	require.Equal(t, int64(20), p.Leases[0].SecondsLeftAt(p.Now))
	require.Equal(t, "the one called anna", p.Leases[0].Holder.Name)
	require.Equal(t, b.now(t), p.Now)
}

// Where statements travel as text, as behind some poolers, presence is read from text.
//
// Requirements: E31.
func TestPresenceIsReadFromText(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	for _, part := range []string{"b", "a", "Z"} {
		b.acquire("anna", keyOf("rack:A12", part), 60)
	}
	b.advance(t, time.Millisecond)
	reader := lease.Writer{Organization: org}
	binary, _, err := NewLeasePresence(b.pool).Presence(t.Context(), reader, "rack:A12")
	require.NoError(t, err)
	pool := openPool(t, withParameters(t, b.url, "default_query_exec_mode", "simple_protocol"), 1)
	text, may, err := NewLeasePresence(pool).Presence(t.Context(), reader, "rack:A12")
	require.NoError(t, err)
	require.True(t, may)
	require.Equal(t, binary, text)
	require.Len(t, text.Leases, 3)
	require.Equal(t, b.now(t), text.Now)
}

// Presence, right and clock are one statement, whoever asks and whatever there is.
//
// Requirements: E19, E30, E31.
func TestPresenceIsOneStatement(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("anna", keyOf("rack:A12"), 60)
	counted := &countedStatements{}
	config := b.pool.Config()
	config.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	service := lease.NewService(NewLeases(pool), NewLeasePolicy(pool), lease.ReadPresenceBy(NewLeasePresence(pool)))
	for name, credential := range map[string]string{"on the database": "", "a key that is none": "key_00000000000070008000000000000001"} {
		for resource, n := range map[string]int{"rack:A12": 1, "rack:A13": 0} {
			counted.Store(0)
			p, err := service.Presence(t.Context(), lease.Writer{Organization: org, Holder: lease.Holder{ID: "x"}, Credential: credential}, resource)
			require.Equal(t, int64(1), counted.Load(), name)
			if credential == "" {
				require.NoError(t, err)
				require.Len(t, p.Leases, n)
			} else {
				require.Equal(t, lease.ErrEditRefused, err)
				require.Zero(t, p)
			}
		}
	}
}

// countedStatements counts the statements that a pool is asked for.
type countedStatements struct{ atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (c *countedStatements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.Add(1)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*countedStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (c *countedStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	c.Add(int64(data.Batch.Len()))
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*countedStatements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*countedStatements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// The purge deletes what ran out long ago and passes over what is locked; nothing else depends on it.
//
// Requirements: E16.
func TestPurgeOfLeases(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	b.acquire("anna", keyOf("rack:old"), 60)
	b.acquire("anna", keyOf("rack:locked"), 60)
	b.advance(t, 12*time.Hour)
	b.acquire("anna", keyOf("rack:young"), 60)
	b.acquire("anna", keyOf("rack:live"), 86400)
	b.advance(t, 12*time.Hour+2*time.Minute)
	slow := b.begin(t)
	require.Equal(t, 1, read[int](t, slow, `SELECT 1 FROM leases WHERE resource = 'rack:locked' FOR UPDATE`))
	purge := func() int64 {
		gone, err := b.one.Purge(t.Context())
		require.NoError(t, err)
		return gone
	}
	require.Equal(t, int64(1), purge())
	require.Zero(t, purge())
	require.NoError(t, slow.Rollback(t.Context()))
	require.Equal(t, int64(1), purge())
	_, err := b.heartbeat("anna", keyOf("rack:young"), 60)
	require.NoError(t, err)
	require.Equal(t, []string{":anna"}, b.present("rack:live"))
	_, err = b.heartbeat("anna", keyOf("rack:old"), 60)
	require.ErrorIs(t, err, lease.ErrLost)
	purge()
	require.Equal(t, 2, read[int](t, b.pool, `SELECT count(*) FROM lease_resources WHERE resource IN ('rack:live', 'rack:young')`))
}

// A database that is away is said to be away, never to be held by somebody.
//
// Requirements: E23, E28.
func TestLeasesWithTheDatabaseAway(t *testing.T) {
	t.Parallel()
	pool := openPool(t, postgrestest.URL(t), 1)
	service := lease.NewService(NewLeases(pool), &rights{})
	pool.Close()
	for name, err := range map[string]error{
		"acquire":  func() error { _, err := service.Acquire(t.Context(), writer("anna"), keyOf("a"), 60); return err }(),
		"release":  func() error { _, err := service.Release(t.Context(), writer("anna"), keyOf("a")); return err }(),
		"presence": func() error { _, err := service.Presence(t.Context(), writer("anna"), "a"); return err }(),
		"asking": func() error {
			_, _, err := NewLeasePresence(pool).Presence(t.Context(), writer("anna"), "a")
			return err
		}(),
		"purge": func() error { _, err := service.Purge(t.Context()); return err }(),
	} {
		require.ErrorIs(t, err, reservation.ErrUnavailable, name)
		require.NotErrorIs(t, err, lease.ErrHeld, name)
	}
}

// What raw SQL cannot put into the table.
//
// Requirements: E02, E03, E18.
func TestLeaseRowsAreReadable(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	const insert = `INSERT INTO leases (organization_id, resource, part, holder_id, holder_name, credential, acquired_at, expires_at)
		VALUES ('acme', $1, $2, $3, '', '', $4::timestamptz, $5::timestamptz)`
	const whole = "2031-01-01 00:00Z"
	for name, row := range map[string][]any{
		"leases_resource_has_1_to_255_bytes":        {"", "", "anna", whole, whole},
		"leases_resource_has_no_control_characters": {"a\tb", "", "anna", whole, whole},
		"leases_part_is_a_short_name":               {"a", "u.5", "anna", whole, whole},
		"leases_holder_has_1_to_255_bytes":          {"a", "", "", whole, whole},
		"leases_times_are_whole_seconds":            {"a", "", "anna", whole, "2031-01-01 00:00:00.5Z"},
	} {
		_, err := b.pool.Exec(t.Context(), insert, row...)
		require.Equal(t, name, constraintOf(err))
	}
}

// Whatever the database takes for a control character the service does too: what it lets through can be stored.
//
// Requirements: E02.
func TestTheDatabaseTakesWhatTheServiceLetsThrough(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	rows, err := b.pool.Query(t.Context(), `SELECT c FROM generate_series(1, 65535) c
		WHERE c NOT BETWEEN 55296 AND 57343 AND chr(c) ~ '[[:cntrl:]]' UNION SELECT c FROM generate_series(917504, 917631) c WHERE chr(c) ~ '[[:cntrl:]]'`)
	require.NoError(t, err)
	codes, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	require.NoError(t, err)
	require.NotEmpty(t, codes)
	for _, code := range codes {
		_, err := b.one.Presence(t.Context(), writer("anna"), "a"+string(code))
		var invalid *lease.InvalidError
		require.ErrorAs(t, err, &invalid, "U+%04X", code)
	}
}

// A key edits while it is live and has the scope operator, and what its organization has alone. Who works on the database
// itself may; nobody passes for that by a key that is none.
//
// Requirements: E15, E19.
func TestPolicyOfStaff(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	policy := NewLeasePolicy(b.pool)
	b.acquire("anna", keyOf("rack:A12"), 3600)
	execute(t, b.pool, `INSERT INTO api_keys (organization_id, id, name, scopes, secret_hash, created_by_kind, created_by_id, expires_at, revoked_at, revoked_by_kind, revoked_by_id)
		SELECT 'acme', id::uuid, 'k', scopes, sha256(''), 'system', 'x', expires_at, revoked_at, CASE WHEN revoked_at IS NOT NULL THEN 'person' END, CASE WHEN revoked_at IS NOT NULL THEN 'x' END
		FROM (VALUES ('00000000-0000-7000-8000-000000000001', ARRAY ['operator', 'support'], NULL::timestamptz, NULL::timestamptz),
			('00000000-0000-7000-8000-000000000002', ARRAY ['admin'], NULL, NULL),
			('00000000-0000-7000-8000-000000000003', ARRAY ['operator'], clock_timestamp() + interval '1 minute', NULL),
			('00000000-0000-7000-8000-000000000004', ARRAY ['operator'], NULL, clock_timestamp())) AS made (id, scopes, expires_at, revoked_at)`)
	const key = "key_0000000000007000800000000000000"
	may := func(organization, credential string) bool {
		w := lease.Writer{Organization: organization, Credential: credential}
		got, err := policy.MayEdit(t.Context(), w, keyOf("rack:A12"))
		require.NoError(t, err)
		seen, sees, err := NewLeasePresence(b.pool).Presence(t.Context(), w, "rack:A12")
		require.NoError(t, err)
		require.Equal(t, got, sees)
		require.Len(t, seen.Leases, map[bool]int{true: 1}[got && organization == org])
		return got
	}
	require.True(t, may(org, key+"1"))
	require.False(t, may(otherOrg, key+"1"), "another organization's")
	require.False(t, may(org, key+"2"), "without the scope")
	require.True(t, may(org, key+"3"))
	b.advance(t, time.Minute)
	require.False(t, may(org, key+"3"), "at its end")
	require.False(t, may(org, key+"4"), "revoked")
	require.False(t, may(org, key+"9"), "unknown")
	require.False(t, may(org, "no key"))
	require.True(t, may(org, ""))

	from := lease.Lease{Credential: key + "1"}
	require.True(t, policy.MayTakeOver(lease.Writer{Credential: key + "1"}, from), "the same key")
	require.False(t, policy.MayTakeOver(lease.Writer{Credential: key + "3", Rights: []string{"operator"}}, from))
	require.True(t, policy.MayTakeOver(lease.Writer{Credential: key + "3", Rights: []string{"operator", "admin"}}, from))
	require.True(t, policy.MayTakeOver(lease.Writer{}, from), "on the database itself")
}
