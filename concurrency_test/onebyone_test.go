//go:build gates

package concurrency_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
)

// Eight orders at once over three servers: three get one each, five hear honestly that others were faster or that
// nothing is left.
//
// Requirements: R15, R16, R35, R36
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
