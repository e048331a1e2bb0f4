//go:build gates && unix

package concurrency_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// One worker: what is due at its start is swept, and what becomes due while it runs; asked to stop it ends in order and
// gives up its office, so that the next one goes on at once.
//
// Requirements: R55, R56, R64
func TestOneWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	before := w.abandoned("before")
	first := w.worker("first", nil)
	w.sweptByWorker(before)
	w.sweptByWorker(w.abandoned("meanwhile"))
	first.signal(syscall.SIGTERM)
	require.Zero(t, first.exits())
	require.Empty(t, w.leader())
	require.Zero(t, w.sweepJobs("running"))
	require.Equal(t, 1, one[int](w, free))

	after := w.abandoned("after")
	second := w.worker("second", nil)
	w.sweptByWorker(after)
	second.signal(syscall.SIGTERM)
	require.Zero(t, second.exits())
	require.Zero(t, w.sweepJobs("discarded"))
	w.sound()
}

// The queue's tables stand beside the product's, in the same schema and so in the same backup.
//
// Requirements: R64
func TestQueueIsInOurSchema(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.Equal(t, []string{"river_job", "river_leader"}, one[[]string](w, `SELECT array_agg(c.relname::text ORDER BY c.relname) FROM pg_class c
		WHERE c.relname IN ('river_job', 'river_leader') AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'reservations'::regclass)`))
	require.Equal(t, 1, one[int](w, `SELECT count(DISTINCT relnamespace) FROM pg_class WHERE relname LIKE 'river\_%' AND relkind = 'r'`))
}

// Two workers move each hold once. When the leader is killed, the other goes on; until then dead holds are sold all the
// same.
//
// Requirements: R55, R61, R64. Cases: JO-01. Faults: F-J1.
func TestTwoWorkersAndTheLeaderKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(6)
	first := w.worker("first", nil)
	leader := w.elected("")
	w.worker("second", nil)
	var ids []reservation.ID
	for i := range 6 {
		ids = append(ids, w.held(fmt.Sprint("both-", i)).Reservation.ID)
	}
	w.deadlineIn(-time.Second)
	w.sweptByWorker(ids...)

	require.Equal(t, leader, w.leader())
	first.kill()
	orphan := w.held("orphan").Reservation
	for i := range 5 {
		w.held(fmt.Sprint("in the way ", i))
	}
	w.expire(orphan.ID)
	sold := w.reserve(w.ctx, request("buyer")) // nobody sweeps at this moment, or somebody does: it is sold
	require.Equal(t, allocation.OutcomeReserved, sold.Code)
	require.Equal(t, orphan.Server.ID, sold.Reservation.Server.ID)
	w.expire(sold.Reservation.ID)
	w.sweptByWorker(sold.Reservation.ID)
	require.NotEqual(t, leader, w.elected(leader))
	w.sound()
}
