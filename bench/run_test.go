package bench

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// empty is a database that nobody has used.
func empty(t *testing.T) string {
	t.Helper()
	return postgrestest.EmptyURL(t)
}

func admin(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := openAdmin(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// Everything that can be asked for, as small as it goes.
func TestRunMeasuresEverything(t *testing.T) {
	t.Parallel()
	url := empty(t)
	var last string
	report, err := Run(t.Context(), url, Options{
		Servers: []int{300}, Stocks: []Stock{AllFree}, Callers: []int{2}, Duration: 50 * time.Millisecond, Repetitions: 1,
		TraceTime: time.Second, History: 300, MaxConns: 4, Seed: 1, Trips: true,
		Progress: func(_, _ int, what string) { last = what },
	})
	require.NoError(t, err)
	require.NotEmpty(t, last)
	require.False(t, report.Stopped)
	measured := map[string]bool{"trace": true} // a table, looked for below
	for _, table := range report.Tables {
		for _, row := range table.Rows {
			measured[row.Name] = true
			require.Positive(t, row.Done, "%s of %s, %s, history %d", row.Name, table.Name, table.Stock, table.History)
			require.Positive(t, row.PerSecond.Median, row.Name)
		}
		require.InDelta(t, 1, table.Rows[0].Ratio.Median, 0, "the first row is what the others are compared with")
	}
	for _, figure := range report.Figures {
		measured[figure.ID] = true
	}
	for _, name := range Names() {
		missing := name == "pgbench" || strings.Contains(name, "redis") // where they are not installed
		require.True(t, measured[name] || missing, name)
	}
	limit := report.Tables[0].Rows[0]
	require.Equal(t, "limit", limit.Name)
	require.Equal(t, &Trips{1, 1}, limit.Trips, "the limit is one statement")
	require.NoError(t, mustBeEmpty(t.Context(), admin(t, url)), "the database is given back as it was")

	var text strings.Builder
	report.Print(&text)
	require.Contains(t, text.String(), "holding a server: 300 servers, free, 300 ended reservations, 2 callers, 1 rounds")
	require.Contains(t, text.String(), "arrivals of the Azure trace, 1 s of it in each round: 300 servers, free, 1 rounds")
	require.Contains(t, text.String(), "target")
}

// A run fills and empties its database, so it takes none in which there is something.
func TestRunRefusesADatabaseThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a table": `CREATE TABLE mine ()`, "a view": `CREATE VIEW mine AS SELECT 1`, "a schema": `CREATE SCHEMA mine`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := empty(t)
			pool := admin(t, url)
			_, err := pool.Exec(t.Context(), sql)
			require.NoError(t, err)
			_, err = Run(t.Context(), url, Options{Servers: []int{10}, Stocks: []Stock{AllFree}, Callers: []int{1}, Duration: 1, Repetitions: 1})
			require.ErrorContains(t, err, "the database is not empty")
			_, err = pool.Exec(t.Context(), `DROP `+strings.Fields(sql)[1]+` mine`)
			require.NoError(t, err, "it is still there")
		})
	}
}

// Interrupted, a run says what it has measured so far, and leaves nothing behind.
func TestRunStopsWithWhatItHas(t *testing.T) {
	t.Parallel()
	url := empty(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	report, err := Run(ctx, url, Options{
		Servers: []int{200}, Stocks: []Stock{AllFree}, Callers: []int{2}, Duration: 20 * time.Millisecond, Repetitions: 1000,
		Only: []string{"limit", "reserve"}, MaxConns: 2,
		Progress: func(done, _ int, _ string) {
			if done == 2 {
				cancel()
			}
		},
	})
	require.NoError(t, err)
	require.True(t, report.Stopped)
	require.Len(t, report.Tables, 1)
	require.Equal(t, 2, report.Tables[0].Rounds)
	require.NoError(t, mustBeEmpty(t.Context(), admin(t, url)))
}

// worldOf is a small world for looking at what is made in it.
func worldOf(t *testing.T, servers int) *world {
	t.Helper()
	url := empty(t)
	w, err := newWorld(t.Context(), admin(t, url), url, servers, &Options{MaxConns: 2, Seed: 1, Duration: time.Second})
	require.NoError(t, err)
	t.Cleanup(w.close)
	return w
}

func (w *world) count(t *testing.T, sql string) int {
	t.Helper()
	var n int
	require.NoError(t, w.admin.QueryRow(t.Context(), `SELECT count(*) FROM (`+sql+`) x`).Scan(&n))
	return n
}

// A history is what the product would have left behind: each question has the answer 0.
func TestHistoryIsWhatTheProductLeaves(t *testing.T) {
	t.Parallel()
	w := worldOf(t, 150)
	require.NoError(t, w.warm(t.Context(), "pattern"))
	require.NoError(t, w.reset(t.Context()))
	before := w.count(t, `SELECT FROM reservations`)
	require.NoError(t, fillHistory(t.Context(), w.admin, 1000, func(int) {}))
	require.Equal(t, 1000, w.count(t, `SELECT FROM reservations`)-before)
	for what, sql := range map[string]string{
		"something is held or sold":          `SELECT FROM occupancy`,
		"a reservation without its decision": `SELECT FROM reservations r WHERE NOT EXISTS (SELECT FROM decisions d WHERE d.id = r.decision_id)`,
		"not one event for each transition": `SELECT FROM reservations r WHERE order_id LIKE 'history-%' AND ARRAY['reservation.' || r.state, 'reservation.held']::text[]
			IS DISTINCT FROM (SELECT array_agg(type ORDER BY type IN ('reservation.held')) FROM event_feed e WHERE e.reservation_id = r.id)`,
		"converted without a binding":  `SELECT FROM reservations r WHERE (state = 'converted') <> EXISTS (SELECT FROM bindings b WHERE b.reservation_id = r.id)`,
		"a binding that has not ended": `SELECT FROM bindings WHERE ended_at IS NULL`,
		"a row of no month":            `SELECT FROM events_default UNION ALL SELECT FROM decisions_default`,
		"an id of another time":        `SELECT FROM reservations WHERE order_id LIKE 'history-%' AND id NOT BETWEEN uuid_v7_floor(created_at - interval '1 s') AND uuid_v7_floor(created_at + interval '1 s')`,
		"a fence that does not grow":   `SELECT FROM (SELECT fence, lag(fence) OVER (PARTITION BY server_id ORDER BY id) AS before FROM reservations WHERE order_id LIKE 'history-%') f WHERE fence <= before`,
	} {
		require.Zero(t, w.count(t, sql), what)
	}
	read, err := w.reservations.Reservations(t.Context(), w.caller, reservation.Filter{Limit: 500})
	require.NoError(t, err)
	require.Len(t, read, 500, "the product reads them")
	require.True(t, slices.ContainsFunc(read, func(r *reservation.Reservation) bool { return r.State == reservation.StateConverted }))
}

// A stock that is nearly sold has one free server of twenty, and the product finds it.
func TestNearlySoldIsNearlySold(t *testing.T) {
	t.Parallel()
	w := worldOf(t, 200)
	require.NoError(t, w.servers.sell(t.Context(), w.admin, leftOfNearlySold))
	require.Len(t, w.servers.free, 10)
	require.Equal(t, 190, w.count(t, `SELECT FROM occupancy`))
	c := w.limit()
	require.NoError(t, c.prepare(t.Context(), "r"))
	for i := range c.most {
		ok, err := c.do(t.Context(), i)
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.NoError(t, w.reset(t.Context()))
	require.Equal(t, 190, w.count(t, `SELECT FROM occupancy`), "a reset gives back what a contender took, and nothing else")
}

// What the alternatives choose by SQL is what the product would choose among.
func TestClassesMeanTheSameInSQL(t *testing.T) {
	t.Parallel()
	w := worldOf(t, 300)
	for i := range classes {
		evaluation, err := w.allocator.Evaluate(t.Context(), w.caller, "key", classes[i].wanted)
		require.NoError(t, err)
		require.NotZero(t, evaluation.Eligible, classes[i].name)
		rows, err := w.admin.Query(t.Context(), choosing(&classes[i]), org, "key")
		require.NoError(t, err)
		ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var id [16]byte
			err := row.Scan(&id)
			return "srv_" + hex.EncodeToString(id[:]), err
		})
		require.NoError(t, err)
		var ranked []string
		for c := range evaluation.Ranked() {
			ranked = append(ranked, string(c.Server.ID))
		}
		require.ElementsMatch(t, ranked, ids, classes[i].name)
	}
}
