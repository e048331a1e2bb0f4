package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// sold is an organization with reservations in every state, one line each, and a neighbour with as many.
func sold(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := postgrestest.New(t)
	for _, org := range []string{"acme", "other"} {
		exec := func(sql string, args ...any) {
			t.Helper()
			_, err := pool.Exec(t.Context(), sql, append([]any{org}, args...)...)
			require.NoError(t, err, sql)
		}
		exec(`INSERT INTO servers (organization_id, id, source, external_id, site, state)
			SELECT $1, uuid_v7(), 'test', n::text, 'FSN1', 'ready' FROM generate_series(1, 15) n`)
		exec(`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind,
				expires_at, max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
			SELECT organization_id, uuid_v7(), id, 'order-' || external_id::int % 4, external_id, 'key',
				clock_timestamp() + CASE external_id::int % 5 WHEN 0 THEN -1 ELSE external_id::int END * interval '1 hour',
				clock_timestamp() + interval '1 day', external_id, '\x00', 'k1', '{}', '{}', freeze_server(s), id
			FROM servers s WHERE organization_id = $1 ORDER BY id`)
		end := func(state string, rest int) {
			exec(`UPDATE reservations SET state = $2, ended_at = clock_timestamp(), ended_by_kind = 'person'
				WHERE organization_id = $1 AND order_line::int % 5 = $3`, state, rest)
		}
		end("expired", 1)
		end("cancelled", 2)
		exec(`WITH made AS (
				INSERT INTO bindings (organization_id, id, server_id, service_id, reservation_id, order_id, order_line, unit,
					created_by_kind, decided_at, hold_expires_at, server)
				SELECT organization_id, uuid_v7(), server_id, 'svc-' || order_line, id, order_id, order_line, unit, 'key',
					clock_timestamp(), expires_at, server
				FROM reservations WHERE organization_id = $1 AND order_line::int % 5 = 3 ORDER BY id
				RETURNING organization_id, reservation_id
			) UPDATE reservations r SET state = 'converted', ended_at = clock_timestamp(), ended_by_kind = 'key'
			FROM made WHERE (r.organization_id, r.id) = (made.organization_id, made.reservation_id)`)
	}
	return pool
}

// A list has exactly what its filter says, newest first, none of another organization's, and a dead hold is expired.
//
// Requirements: R12, R61
func TestReservationsAreFiltered(t *testing.T) {
	t.Parallel()
	pool := sold(t)
	store := NewReservations(pool)
	list := func(f reservation.Filter) []*reservation.Reservation {
		t.Helper()
		got, err := store.Reservations(t.Context(), "acme", f)
		require.NoError(t, err)
		return got
	}
	all := list(reservation.Filter{Limit: 100})
	require.Len(t, all, 15)
	soon := time.Now().Add(150 * time.Minute)
	tests := map[string]struct {
		filter reservation.Filter
		keep   func(*reservation.Reservation) bool
		want   int
	}{
		"one order": {reservation.Filter{OrderIDs: []string{"order-1"}}, func(r *reservation.Reservation) bool { return r.Order.OrderID == "order-1" }, 4},
		"either order": {reservation.Filter{OrderIDs: []string{"order-1", "order-2"}}, func(r *reservation.Reservation) bool {
			return r.Order.OrderID < "order-3" && r.Order.OrderID > "order-0"
		}, 8},
		"no such order":    {reservation.Filter{OrderIDs: []string{"ORDER-1"}}, func(*reservation.Reservation) bool { return false }, 0},
		"held and alive":   {reservation.Filter{States: []reservation.State{reservation.StateHeld}}, func(r *reservation.Reservation) bool { return r.State == reservation.StateHeld }, 3},
		"expired and dead": {reservation.Filter{States: []reservation.State{reservation.StateExpired}}, func(r *reservation.Reservation) bool { return r.State == reservation.StateExpired }, 6},
		"either end":       {reservation.Filter{States: []reservation.State{reservation.StateCancelled, reservation.StateConverted}}, func(r *reservation.Reservation) bool { return r.State == "cancelled" || r.State == "converted" }, 6},
		"one server":       {reservation.Filter{ServerIDs: []inventory.ServerID{all[3].Server.ID}}, func(r *reservation.Reservation) bool { return r.Server.ID == all[3].Server.ID }, 1},
		"no server's id":   {reservation.Filter{ServerIDs: []inventory.ServerID{"srv_x"}}, func(*reservation.Reservation) bool { return false }, 0},
		"deadline soon":    {reservation.Filter{ExpiresBefore: soon}, func(r *reservation.Reservation) bool { return r.ExpiresAt.Before(soon) }, 5},
		"all of it at once": {reservation.Filter{OrderIDs: []string{"order-0", "order-1"}, States: []reservation.State{reservation.StateExpired}, ExpiresBefore: soon}, func(r *reservation.Reservation) bool {
			return r.Order.OrderID < "order-2" && r.State == "expired" && r.ExpiresAt.Before(soon)
		}, 2},
	}
	for name, tt := range tests {
		tt.filter.Limit = 100
		var want []*reservation.Reservation
		for _, r := range all {
			if tt.keep(r) {
				want = append(want, r)
			}
		}
		require.Equal(t, reservationIDs(want), reservationIDs(list(tt.filter)), name)
		require.Len(t, want, tt.want, name)
	}
}

func reservationIDs(list []*reservation.Reservation) []reservation.ID {
	ids := []reservation.ID{}
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// Pages put one behind the other are the whole list, each entry once, in the order of ids from the newest on.
func TestListsArePaged(t *testing.T) {
	t.Parallel()
	pool := sold(t)
	reservations, allocations := NewReservations(pool), NewAllocations(pool)
	_, err := pool.Exec(t.Context(), `INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, by_kind, body)
		SELECT org, uuid_v7(), 'order-' || n % 2, '1', 1, 'contended', 'key', '{"walked": []}'
		FROM generate_series(1, 15) n, unnest(ARRAY['acme', 'other']) org`)
	require.NoError(t, err)
	tests := map[string]func(after string, limit int) []string{
		"reservations": func(after string, limit int) (ids []string) {
			list, err := reservations.Reservations(t.Context(), "acme", reservation.Filter{After: reservation.ID(after), Limit: limit})
			require.NoError(t, err)
			for _, r := range list {
				ids = append(ids, string(r.ID))
			}
			return ids
		},
		"bindings": func(after string, limit int) (ids []string) {
			list, err := reservations.Bindings(t.Context(), "acme", reservation.BindingFilter{After: reservation.BindingID(after), Limit: limit})
			require.NoError(t, err)
			for _, b := range list {
				ids = append(ids, string(b.ID))
			}
			return ids
		},
		"decisions": func(after string, limit int) (ids []string) {
			list, err := allocations.Decisions(t.Context(), "acme", allocation.DecisionFilter{After: allocation.DecisionID(after), Limit: limit})
			require.NoError(t, err)
			for _, d := range list {
				ids = append(ids, string(d.ID))
			}
			return ids
		},
	}
	for name, page := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := page("", 100)
			require.NotEmpty(t, all)
			newestFirst := slices.Clone(all)
			slices.Sort(newestFirst)
			slices.Reverse(newestFirst)
			require.Equal(t, newestFirst, all)
			for size := 1; size <= len(all)+1; size++ {
				var put []string
				for after := ""; ; after = put[len(put)-1] {
					next := page(after, size)
					require.LessOrEqual(t, len(next), size)
					put = append(put, next...)
					if len(next) < size {
						break
					}
				}
				require.Equal(t, all, put, "pages of %d", size)
			}
		})
	}
}

// Bindings are found by what they bind, and by whether they still do.
//
// Requirements: R53
func TestBindingsAreFiltered(t *testing.T) {
	t.Parallel()
	pool := sold(t)
	_, err := pool.Exec(t.Context(), `UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE service_id = 'svc-3'`)
	require.NoError(t, err)
	store := NewReservations(pool)
	services := func(f reservation.BindingFilter) (names []string) {
		t.Helper()
		f.Limit = 100
		list, err := store.Bindings(t.Context(), "acme", f)
		require.NoError(t, err)
		for _, b := range list {
			names = append(names, b.ServiceID)
		}
		slices.Sort(names)
		return names
	}
	require.Equal(t, []string{"svc-13", "svc-3", "svc-8"}, services(reservation.BindingFilter{}))
	require.Equal(t, []string{"svc-13", "svc-8"}, services(reservation.BindingFilter{Active: new(true)}))
	require.Equal(t, []string{"svc-3"}, services(reservation.BindingFilter{Active: new(false)}))
	require.Equal(t, []string{"svc-3", "svc-8"}, services(reservation.BindingFilter{ServiceIDs: []string{"svc-3", "svc-8", "svc-1"}}))
	require.Equal(t, []string{"svc-8"}, services(reservation.BindingFilter{OrderIDs: []string{"order-0"}}))
	require.Empty(t, services(reservation.BindingFilter{OrderIDs: []string{"order-0"}, Active: new(false)}))
}

// An id of another organization, of another kind, or of nobody is not found, and nothing tells these apart.
func TestStrangersAreNotFound(t *testing.T) {
	t.Parallel()
	pool := sold(t)
	store, decisions := NewReservations(pool), NewAllocations(pool)
	theirs, err := store.Reservations(t.Context(), "other", reservation.Filter{Limit: 1})
	require.NoError(t, err)
	bound, err := store.Bindings(t.Context(), "other", reservation.BindingFilter{Limit: 1})
	require.NoError(t, err)

	for _, id := range []reservation.ID{theirs[0].ID, reservation.ID(formatID("res_", uuid.Nil)), "res_", "", reservation.ID(bound[0].ID)} {
		_, err := store.Reservation(t.Context(), "acme", id)
		require.Equal(t, reservation.ErrNotFound, err, string(id))
	}
	for _, id := range []reservation.BindingID{bound[0].ID, reservation.BindingID(formatID("bnd_", uuid.Nil)), "bnd_", reservation.BindingID(theirs[0].ID)} {
		_, err := store.Binding(t.Context(), "acme", id)
		require.Equal(t, reservation.ErrNotFound, err, string(id))
	}
	for _, id := range []allocation.DecisionID{allocation.DecisionID(formatID("dec_", newID())), "dec_", "", allocation.DecisionID(theirs[0].ID)} {
		_, err := decisions.Decision(t.Context(), "acme", id)
		require.Equal(t, reservation.ErrNotFound, err, string(id))
		_, err = decisions.FrozenPack(t.Context(), "acme", id)
		require.Equal(t, reservation.ErrNotFound, err, string(id))
	}
	longAgo := uuid.Must(uuid.FromBytes(append([]byte{1, 0x60, 0, 0, 0, 0, 0x70}, make([]byte, 9)...))) // of the year 2017
	_, err = decisions.Decision(t.Context(), "acme", allocation.DecisionID(formatID("dec_", longAgo)))
	require.Equal(t, allocation.ErrDecisionGone, err, "whoever asks: it depends on the id alone")
}
