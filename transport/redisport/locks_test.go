package redisport_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/locking"
)

// A lock is taken, found taken, and free again when its time is over, by the database's clock.
//
// Requirements: D01, D02, D03, D05, D11.
func TestLockIsTakenAndEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withClock(t))
	a, b := w.client("acme:orders"), w.client("acme:orders")
	a.want("+OK\r\n", "SET", "lock:billing-run", "tok", "NX", "PX", "30000")
	a.want("$3\r\ntok\r\n", "GET", "lock:billing-run")
	a.want(":30000\r\n", "PTTL", "lock:billing-run")

	w.advance(10 * time.Second)
	b.want("$-1\r\n", "SET", "lock:billing-run", "other", "NX", "PX", "30000")
	b.want("$3\r\ntok\r\n", "GET", "lock:billing-run")
	b.want(":20000\r\n", "PTTL", "lock:billing-run")
	b.want(":20\r\n", "TTL", "lock:billing-run")

	w.advance(19_999 * time.Millisecond)
	b.want("$-1\r\n", "SET", "lock:billing-run", "other", "NX", "PX", "30000")
	w.advance(time.Millisecond)
	for command, gone := range map[string]string{"GET": "$-1\r\n", "PTTL": ":-2\r\n", "TTL": ":-2\r\n", "EXISTS": ":0\r\n", "TYPE": "+none\r\n", "DIGEST": "$-1\r\n"} {
		b.want(gone, command, "lock:billing-run")
	}
	b.want(":0\r\n", "DELEX", "lock:billing-run", "IFEQ", "tok")
	b.want(":0\r\n", "PEXPIRE", "lock:billing-run", "1000")
	b.want("$-1\r\n", "SET", "lock:billing-run", "tok", "IFEQ", "tok", "PX", "1000")
	b.want("$-1\r\n", "SET", "lock:billing-run", "x", "XX", "PX", "1000")
	b.want("+OK\r\n", "SET", "lock:billing-run", "other", "NX", "PX", "30000")
	a.want(":0\r\n", "DELEX", "lock:billing-run", "IFEQ", "tok")
	a.want("$5\r\nother\r\n", "GET", "lock:billing-run")
}

// Releasing compares the token. A holder that was too slow frees nobody's lock.
//
// Requirements: D04, D06, D07, D13.
func TestReleaseComparesTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withClock(t))
	c := w.client("acme:checkout")
	releases := map[string]func(token string) []string{
		"DELEX IFEQ": func(token string) []string { return []string{"DELEX", "lock:k", "IFEQ", token} },
		"DELIFEQ":    func(token string) []string { return []string{"DELIFEQ", "lock:k", token} },
		"DELEX IFDEQ": func(token string) []string {
			c.want("+OK\r\n", "SET", "lock:same", token, "PX", "1000")
			digest := strings.Split(c.do("DIGEST", "lock:same"), "\r\n")[1]
			return []string{"DELEX", "lock:k", "IFDEQ", digest}
		},
	}
	for name, release := range releases {
		c.want("+OK\r\n", "SET", "lock:k", "slow", "NX", "PX", "30000")
		w.advance(30 * time.Second)
		c.want("+OK\r\n", "SET", "lock:k", "mine", "NX", "PX", "30000")
		for _, wrong := range []string{"slow", "min", "mine ", "MINE", "\x00"} {
			require.Equal(t, ":0\r\n", c.do(release(wrong)...), "%s %q", name, wrong)
		}
		c.want("$4\r\nmine\r\n", "GET", "lock:k")
		c.want(":30000\r\n", "PTTL", "lock:k")
		require.Equal(t, ":1\r\n", c.do(release("mine")...), name)
		require.Equal(t, ":0\r\n", c.do(release("mine")...), name)
		c.want("$-1\r\n", "GET", "lock:k")
	}
}

// A token of 64 KiB need not travel to be compared: its digest does, of 16 digits. One that differs in its last byte has
// another.
//
// Requirements: D13.
func TestLargeTokenIsComparedByItsDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	large := strings.Repeat("x", locking.MaxTokenBytes)
	c.want("+OK\r\n", "SET", "lock:k", large, "NX", "PX", "600000")
	digest, other := fmt.Sprintf("%016x", locking.Digest(large)), fmt.Sprintf("%016x", locking.Digest(large[1:]+"y"))
	c.want("$16\r\n"+digest+"\r\n", "DIGEST", "lock:k")
	c.want(":0\r\n", "DELEX", "lock:k", "IFDEQ", other)
	c.want("$-1\r\n", "SET", "lock:k", "next", "IFDEQ", other, "PX", "600000")
	c.want("$-1\r\n", "SET", "lock:k", "next", "IFDNE", digest, "PX", "600000")
	c.want("$16\r\n"+digest+"\r\n", "DIGEST", "lock:k")
	c.want("+OK\r\n", "SET", "lock:k", large, "IFDEQ", digest, "PX", "600000")
	c.want(":1\r\n", "DELEX", "lock:k", "IFDEQ", digest)
	c.want("$-1\r\n", "DIGEST", "lock:k")
}

// Deleting without the token would free anybody's lock: it takes an admin.
//
// Requirements: D09.
func TestDelIsForAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withClock(t))
	c, admin := w.client("acme:operator,orders,support"), w.client("acme:admin")
	for _, command := range []string{"DEL lock:k", "DEL lock:none lock:k", "DELEX lock:k", "DELEX lock:k IFNE x", "DELEX lock:k IFDNE 0123456789abcdef", "PEXPIRE lock:k 0", "EXPIRE lock:k -1"} {
		words := strings.Split(command, " ")
		c.want("+OK\r\n", "SET", "lock:k", "tok", "PX", "30000")
		require.Contains(t, c.do(words...), "-NOPERM ", command)
		c.want("$3\r\ntok\r\n", "GET", "lock:k")
		admin.want(":1\r\n", words...)
		c.want("$-1\r\n", "GET", "lock:k")
		admin.want(":0\r\n", words...)
	}
	require.Equal(t, int64(7), read[int64](w, `SELECT count(*) FROM audit WHERE subject LIKE 'REDIS %' AND detail->>'code' = 'missing_scope'`))
	require.Contains(t, admin.do("SET", "lock:k", "tok", "NX", "PX", "1000"), "-NOPERM ", "an admin of keys works on no orders")
}

// A lock always ends.
//
// Requirements: D10.
func TestLockWithoutAnExpiryIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	for _, command := range []string{"SET lock:k v", "SET lock:k v NX", "SET lock:k v KEEPTTL", "SET lock:k v NX KEEPTTL GET", "SET lock:k v IFNE x"} {
		require.Equal(t, needExpir, c.do(strings.Split(command, " ")...), command)
	}
	c.want("$-1\r\n", "SET", "lock:k", "v", "XX")
	require.Zero(t, read[int64](w, `SELECT count(*) FROM locks`))
	c.want("+OK\r\n", "SET", "lock:k", "v", "NX", "EX", "60")
	c.want("+OK\r\n", "SET", "lock:k", "w", "XX", "KEEPTTL")
	require.Contains(t, []string{":59\r\n", ":60\r\n"}, c.do("TTL", "lock:k"))
}

// PEXPIRE asks for no token: the slow holder prolongs a lock that is another's by now. SET with IFEQ does not.
//
// Requirements: D12, D14.
func TestExtending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withClock(t))
	slow, other := w.client("acme:orders"), w.client("acme:orders")
	slow.want("+OK\r\n", "SET", "lock:k", "slow", "NX", "PX", "10000")
	fence := read[int64](w, `SELECT fence FROM locks`)
	for range 5 { // long work
		w.advance(8 * time.Second)
		slow.want("+OK\r\n", "SET", "lock:k", "slow", "IFEQ", "slow", "PX", "10000")
		other.want("$-1\r\n", "SET", "lock:k", "other", "NX", "PX", "10000")
	}
	require.Equal(t, fence, read[int64](w, `SELECT fence FROM locks`), "whoever goes on, goes on with its fence")

	w.advance(10 * time.Second)
	other.want("+OK\r\n", "SET", "lock:k", "other", "NX", "PX", "10000")
	require.Greater(t, read[int64](w, `SELECT fence FROM locks`), fence)
	slow.want("$-1\r\n", "SET", "lock:k", "slow", "IFEQ", "slow", "PX", "60000")
	other.want(":10000\r\n", "PTTL", "lock:k")
	slow.want(":1\r\n", "PEXPIRE", "lock:k", "60000")
	other.want(":60000\r\n", "PTTL", "lock:k")
	other.want("$5\r\nother\r\n", "GET", "lock:k")
}

// An expiry may be an instant of the database's clock, and one that has passed ends the lock at once.
func TestExpiryAtAnInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	in := time.Now().Add(time.Hour)
	c.want("+OK\r\n", "SET", "lock:k", "v", "NX", "EXAT", fmt.Sprint(in.Unix()))
	require.Equal(t, in.Unix(), read[int64](w, `SELECT extract(epoch FROM expires_at)::bigint FROM locks`))
	c.want("+OK\r\n", "SET", "lock:k", "v", "PXAT", fmt.Sprint(in.UnixMilli()+1))
	require.Equal(t, in.UnixMilli()+1, read[int64](w, `SELECT (extract(epoch FROM expires_at) * 1000)::bigint FROM locks`))
	require.Contains(t, c.do("SET", "lock:k", "v", "EXAT", "99999999999"), "-ERR invalid expire time")
	c.want("+OK\r\n", "SET", "lock:k", "v", "IFEQ", "v", "PXAT", "1000")
	c.want("$-1\r\n", "GET", "lock:k")
}

// A SET to an instant that has passed is a DEL, and takes an admin, unless it asks for the holder's token or frees nobody.
//
// Requirements: D09.
func TestSetToThePastIsForAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, admin := w.client("acme:operator,orders,checkout,support"), w.client("acme:admin")
	take := func() { c.want("+OK\r\n", "SET", "lock:k", "tok", "PX", "600000") }
	for _, options := range []string{"PXAT 1000", "EXAT 1", "XX PXAT 1000", "GET PXAT 1000", "IFNE x PXAT 1000", "IFDNE 0123456789abcdef EXAT 1"} {
		take()
		words := append([]string{"SET", "lock:k", "other"}, strings.Split(options, " ")...)
		c.want(onlyAdmin, words...)
		c.want("$3\r\ntok\r\n", "GET", "lock:k")
		require.NotContains(t, admin.do(words...), "-", options)
		c.want("$-1\r\n", "GET", "lock:k")
	}
	require.Equal(t, int64(6), read[int64](w, `SELECT count(*) FROM audit WHERE subject = 'REDIS SET' AND detail->>'code' = 'missing_scope'`))
	take()
	c.want("$-1\r\n", "SET", "lock:k", "other", "NX", "PXAT", "1000")
	c.want("$-1\r\n", "SET", "lock:k", "other", "IFEQ", "other", "PXAT", "1000")
	c.want("$3\r\ntok\r\n", "GET", "lock:k")
	c.want("+OK\r\n", "SET", "lock:k", "tok", "IFDEQ", fmt.Sprintf("%016x", locking.Digest("tok")), "PXAT", "1000")
	c.want("$-1\r\n", "GET", "lock:k")
}

// The organization comes from the key, so the same names are different locks.
func TestOrganizationsHaveLocksOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ours, theirs := w.client("acme:all"), w.client("rival:all")
	ours.want("+OK\r\n", "SET", "lock:k", "tok", "NX", "PX", "60000")
	for _, command := range []string{"EXISTS lock:k", "DEL lock:k", "DELEX lock:k IFEQ tok", "DELIFEQ lock:k tok", "DELEX lock:k IFNE x", "PEXPIRE lock:k 1"} {
		require.Equal(t, ":0\r\n", theirs.do(strings.Split(command, " ")...), command)
	}
	for _, command := range []string{"GET lock:k", "DIGEST lock:k", "SET lock:k tok IFEQ tok PX 1", "SET lock:k x XX PX 1", "SET lock:k x XX GET PX 1"} {
		require.Equal(t, "$-1\r\n", theirs.do(strings.Split(command, " ")...), command)
	}
	theirs.want("+OK\r\n", "SET", "lock:k", "theirs", "NX", "PX", "60000")
	ours.want("$3\r\ntok\r\n", "GET", "lock:k")
}

// The door's locks are those of the HTTP door: whoever holds machine:42:bmc there holds lock:machine:42:bmc here.
//
// Requirements: D20.
func TestLocksAreTheSameOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:operator")
	grants := grantsOf(w)
	grant, _, err := grants.Acquire(t.Context(), "acme", "machine:42:bmc", time.Minute)
	require.NoError(t, err)
	require.NotNil(t, grant)
	c.want("$-1\r\n", "SET", "lock:machine:42:bmc", "tok", "NX", "PX", "30000")
	c.want(":1\r\n", "DELEX", "lock:machine:42:bmc", "IFEQ", grant.Token)

	// A client of Redis gets no fence. Its grants draw fences all the same, so that whoever checks them on its writes,
	// having its own from HTTP, is never overtaken by a holder from before.
	c.want("+OK\r\n", "SET", "lock:machine:42:bmc", "tok", "NX", "PX", "30000")
	between := read[int64](w, `SELECT fence FROM locks WHERE key = 'machine:42:bmc'`)
	c.want(":1\r\n", "DELEX", "lock:machine:42:bmc", "IFEQ", "tok")
	next, _, err := grants.Acquire(t.Context(), "acme", "machine:42:bmc", time.Minute)
	require.NoError(t, err)
	require.Less(t, grant.Fence, between)
	require.Less(t, between, next.Fence)
}

// Holders come and go on one key while others release with stale tokens; no release ever frees another's lock. Every
// holder counts on the key being its own from its OK to its release.
//
// Requirements: D08.
func TestReleaseIsOneStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const holders, rounds = 6, 40
	stale := make(chan string, holders*rounds)
	var all sync.WaitGroup
	for h := range holders {
		c := w.client("acme:orders")
		all.Go(func() {
			for r := range rounds {
				token := fmt.Sprintf("%d-%d", h, r)
				for c.do("SET", "lock:k", token, "NX", "PX", "60000") != "+OK\r\n" {
					for range rand.IntN(3) { // meddle with what somebody held before
						select {
						case old := <-stale:
							c.want(":0\r\n", "DELEX", "lock:k", "IFEQ", old)
						default:
						}
					}
				}
				c.want(fmt.Sprintf("$%d\r\n%s\r\n", len(token), token), "GET", "lock:k")
				c.want("+OK\r\n", "SET", "lock:k", token, "IFEQ", token, "PX", "60000")
				c.want(":1\r\n", "DELEX", "lock:k", "IFEQ", token)
				stale <- token
			}
		})
	}
	all.Wait()
}

// A release with a stale token that waits for the row, while it is being given to another, finds the other's token.
//
// Requirements: D08.
func TestReleaseThatWaitedComparesAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	for _, command := range []string{"DELEX lock:k IFEQ slow", "DELIFEQ lock:k slow", "SET lock:k slow IFEQ slow PX 60000"} {
		c.want("+OK\r\n", "SET", "lock:k", "slow", "PX", "60000")
		tx, err := w.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `UPDATE locks SET token = 'other', fence = nextval('lock_fences') WHERE key = 'k'`)
		require.NoError(t, err)
		c.raw(encode(strings.Split(command, " ")...))
		w.someoneWaits(command)
		require.NoError(t, tx.Commit(t.Context()))
		require.Contains(t, []string{":0\r\n", "$-1\r\n"}, c.reply(), command)
		c.want("$5\r\nother\r\n", "GET", "lock:k")
	}
}

// A lock that somebody takes for the first time while a SET is on its way is not overwritten unseen: the SET looks again,
// and answers with what was there.
func TestSetMeetsANewLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client("acme:orders")
	for command, want := range map[string]string{
		"SET KEY mine GET PX 60000": "$5\r\nother\r\n", "SET KEY mine NX GET PX 60000": "$5\r\nother\r\n", "SET KEY mine IFNE other PX 60000": "$-1\r\n", "SET KEY mine NX PX 60000": "$-1\r\n",
	} {
		name := fmt.Sprint(rand.Int64())
		tx, err := w.pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `INSERT INTO locks (organization_id, key, token, fence, expires_at)
			VALUES ('acme', $1, 'other', nextval('lock_fences'), clock_timestamp() + interval '1 hour')`, name)
		require.NoError(t, err)
		c.raw(encode(strings.Split(strings.Replace(command, "KEY", "lock:"+name, 1), " ")...))
		w.someoneWaits(command)
		require.NoError(t, tx.Commit(t.Context()))
		require.Equal(t, want, c.reply(), command)
	}
}
