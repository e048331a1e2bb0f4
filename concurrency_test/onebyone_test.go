//go:build gates

package concurrency_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
)

// Eight orders at once over three servers: three get one each, five hear honestly that others were faster or that
// nothing is left.
//
// Requirements: R15, R16, R35, R36.
func TestEightOrdersOverThreeServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	outcomes := make([]*allocation.Outcome, 8)
	together(len(outcomes), func(i int) { outcomes[i] = w.reserve(w.ctx, request(fmt.Sprint(i))) })

	counts := tally(outcomes)
	require.Equal(t, 3, counts["reserved"], counts)
	require.Equal(t, 5, counts["contended/servers_taken"]+counts["no_capacity/all_held"], counts)
	require.Equal(t, 3, one[int](w, `SELECT count(DISTINCT server_id) FROM reservations WHERE state = 'held'`))
	w.sound()
}

// Two orders over one server, twenty times: one reservation and one honest refusal, whoever comes first.
//
// Requirements: R16, R18.
func TestTwoOrdersOverOneServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(1)
	for round := range 20 {
		outcomes := make([]*allocation.Outcome, 2)
		together(2, func(i int) { outcomes[i] = w.reserve(w.ctx, request(fmt.Sprint(round, "-", i))) })
		counts := tally(outcomes)
		require.Equal(t, 1, counts["reserved"], counts)
		require.Equal(t, 1, counts["contended/servers_taken"]+counts["no_capacity/all_held"], counts)
		for _, o := range outcomes {
			if o.Code == allocation.OutcomeReserved {
				_, err := w.reservations.Cancel(w.ctx, w.caller, o.Reservation.ID, o.HoldToken, reservation.Cancellation{Reason: reservation.CancelOther})
				require.NoError(t, err)
			}
		}
	}
	w.sound()
}
