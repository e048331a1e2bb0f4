//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// reserveProgram reserves one server after the other and says each reservation that was acknowledged to it, four at a
// time, until it is killed or nothing is left.
func reserveProgram(ctx context.Context, c *child) error {
	allocator, _, err := c.service(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d", i, n)
				outcome, err := allocator.Reserve(ctx, tester, request(name))
				if err != nil || outcome.Code == allocation.OutcomeNoCapacity {
					return
				}
				if !outcome.Refused() {
					c.say(name, outcome.Reservation.ID)
				}
			}
		})
	}
	all.Wait()
	return nil
}

// acknowledgement reads such a line.
func acknowledgement(line string) (name string, id reservation.ID) {
	name, told, _ := strings.Cut(line, " ")
	return name, reservation.ID(told)
}

// The service is killed while it reserves. Every reservation that it acknowledged is there; one that is there and was
// not acknowledged is found by its key; and the key of one that is not there reserves.
//
// Requirements: R03, R40, R41. Faults: F-C1.
func TestAcknowledgedReservationsSurviveKill(t *testing.T) {
	t.Parallel()
	unacknowledged := 0
	for round := range 4 {
		w := newWorld(t)
		w.servers(120)
		p := w.start("reserve", "killed", w.url, nil)
		acked := map[string]reservation.ID{}
		for range 8 + 3*round {
			name, id := acknowledgement(p.hear())
			acked[name] = id
		}
		p.kill()
		p.forgotten()
		for line := range p.said {
			name, id := acknowledgement(line)
			acked[name] = id
		}
		stored := w.storedByName()
		for name, id := range acked {
			require.Equal(t, id, stored[name], "acknowledged, and gone")
		}
		unacknowledged += len(stored) - len(acked)
		for name, id := range stored {
			again := w.reserve(w.ctx, request(name))
			require.Equal(t, allocation.OutcomeReplayed, again.Code)
			require.Equal(t, id, again.Reservation.ID)
			require.NotEmpty(t, again.HoldToken)
		}
		w.servers(4) // it may have sold all there were
		for i := range 4 {
			require.Equal(t, allocation.OutcomeReserved, w.reserve(w.ctx, request(fmt.Sprintf("%d-%d", i, len(stored)))).Code)
		}
		w.sound()
	}
	t.Logf("stored and never acknowledged: %d", unacknowledged)
}

// storedByName reads the reservations by the name of their request.
func (w *world) storedByName() map[string]reservation.ID {
	w.t.Helper()
	stored := map[string]reservation.ID{}
	rows, err := w.pool.Query(w.ctx, `SELECT idempotency_key, id FROM reservations`)
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var key string
		var id uuid.UUID
		require.NoError(w.t, rows.Scan(&key, &id))
		stored[strings.TrimPrefix(key, "key-")] = reservation.ID("res_" + strings.ReplaceAll(id.String(), "-", ""))
	}
	require.NoError(w.t, rows.Err())
	return stored
}
