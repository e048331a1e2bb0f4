package postgres

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/store/postgres/postgrestest"
)

// judgeAllSQL judges every server of an organization with the expressions that the reservation's statement uses.
var judgeAllSQL = `SELECT s.size, ` + failsSQL + `, ` + unknownSQL + `
	FROM servers s
	CROSS JOIN jsonb_to_record($2::jsonb) AS q (` + questionRecord + `)
	CROSS JOIN LATERAL (
		SELECT EXISTS (SELECT FROM occupancy x WHERE (x.organization_id, x.server_id) = (s.organization_id, s.id) AND x.reservation_id IS NOT NULL) AS held,
		       EXISTS (SELECT FROM occupancy x WHERE (x.organization_id, x.server_id) = (s.organization_id, s.id) AND x.binding_id IS NOT NULL) AS bound) o
	WHERE s.organization_id = $1
	ORDER BY s.id`

// The table of reasons says everything twice, in Go and in SQL. Whatever stands in the inventory and whatever is asked,
// both find the same reasons against every server, and the record is read as it was written.
//
// Requirements: R32, R33
func TestSQLJudgesAsGoDoes(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	seen := findings{}
	rapid.Check(t, func(rt *rapid.T) {
		inTxThatIsRolledBack(rt, pool, func(ctx context.Context, tx pgx.Tx) {
			drawn := drawInventory(rt)
			storeInventory(ctx, rt, tx, drawn)
			facts := readFacts(ctx, rt, tx, drawn)
			for range 4 {
				wanted := drawRequirements(rt)
				judged := judgedByGo(wanted, facts)
				require.Equal(rt, judged, judgedBySQL(ctx, rt, tx, wanted), "%+v", wanted)
				require.Equal(rt, fitting(judged, drawn), passedBySQL(ctx, rt, tx, wanted), "%+v", wanted)
				seen.add(wanted, facts)
			}
		})
	})
	seen.requireEverything(t)
}

// answer is what one side says of one server.
type answer struct {
	Size    int64
	Verdict allocation.Verdict
}

func judgedByGo(wanted *allocation.Requirements, facts []allocation.Facts) []answer {
	answers := make([]answer, len(facts))
	for i := range facts {
		answers[i] = answer{facts[i].Server.Size(), allocation.Judge(wanted, &facts[i])}
	}
	return answers
}

func judgedBySQL(ctx context.Context, rt *rapid.T, tx pgx.Tx, wanted *allocation.Requirements) []answer {
	question, err := json.Marshal(wanted.Arguments())
	require.NoError(rt, err)
	rows, err := tx.Query(ctx, judgeAllSQL, "acme", question)
	require.NoError(rt, err)
	answers, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a answer, err error) {
		err = row.Scan(&a.Size, &a.Verdict.Fails, &a.Verdict.Unknown)
		return a, err
	})
	require.NoError(rt, err)
	return answers
}

// fitting tells of which servers nothing but a hold or a binding speaks against them.
func fitting(judged []answer, drawn []drawnServer) (ids []string) {
	for i, a := range judged {
		for n, rule := range allocation.Rules() {
			if rule.Code == allocation.CodeHeld || rule.Code == allocation.CodeBound {
				a.Verdict.Fails &^= 1 << n
			}
		}
		if a.Verdict.Eligible() {
			ids = append(ids, drawn[i].row.String())
		}
	}
	slices.Sort(ids)
	return ids
}

// passedBySQL asks the same of the condition that is written for the rules that are asked.
func passedBySQL(ctx context.Context, rt *rapid.T, tx pgx.Tx, wanted *allocation.Requirements) []string {
	question, err := json.Marshal(wanted.Arguments())
	require.NoError(rt, err)
	rows, err := tx.Query(ctx, `SELECT s.id::text FROM servers s`+passesSQL(wanted.Asked())+`
		AND s.organization_id = $1 AND $2::text IS NULL ORDER BY s.id`, "acme", nil, question)
	require.NoError(rt, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(rt, err)
	if len(ids) == 0 {
		return nil
	}
	return ids
}

// storeInventory writes servers as the inventory does, and their holders as a checkout and an operator would.
func storeInventory(ctx context.Context, rt *rapid.T, tx pgx.Tx, drawn []drawnServer) {
	records := make([]serverRecord, len(drawn))
	for i := range drawn {
		records[i] = recordOf(drawn[i].row, &drawn[i].Server)
	}
	batch := &pgx.Batch{}
	batch.Queue(insertServers, "acme", records)
	for _, s := range drawn {
		switch s.holder {
		case "held":
			batch.Queue(rawHold, s.row)
		case "bound":
			batch.Queue(rawBinding, s.row)
		}
	}
	require.NoError(rt, tx.SendBatch(ctx, batch).Close())
}

const (
	rawHold = `INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at,
			max_expires_at, idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT s.organization_id, gen_random_uuid(), s.id, s.id::text, '1', 'key', clock_timestamp() + interval '1 hour',
			clock_timestamp() + interval '1 hour', s.id::text, '\x00', 'k1', '{}', '{}', freeze_server(s), s.id
		FROM servers s WHERE s.id = $1`
	rawBinding = `INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
		SELECT s.organization_id, gen_random_uuid(), s.id, s.id::text, 'key', freeze_server(s) FROM servers s WHERE s.id = $1`
)

// One statement over servers and occupancy is one snapshot: two would see a free instant in the middle of a correct
// conversion.
const snapshotSQL = `SELECT ` + serverColumns + `,
		coalesce((extract(epoch FROM h.expires_at) * 1000000)::bigint, 0), o.binding_id IS NOT NULL
	FROM servers s
	LEFT JOIN occupancy o ON o.organization_id = s.organization_id AND o.server_id = s.id
	LEFT JOIN reservations h ON h.organization_id = o.organization_id AND h.id = o.reservation_id
		AND h.expires_at > clock_timestamp()
	WHERE s.organization_id = $1
	ORDER BY s.id`

// snapshot reads every server and what holds it.
func snapshot(ctx context.Context, t require.TestingT, q querier, org string) (all []allocation.Facts) {
	rows, err := q.Query(ctx, snapshotSQL, org)
	require.NoError(t, err)
	var row serverRow
	all, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (f allocation.Facts, err error) {
		if err := r.Scan(append(row.targets(), &f.HeldUntil, &f.Bound)...); err != nil {
			return f, err
		}
		f.Server, err = row.server()
		f.Held = f.HeldUntil != 0
		return f, err
	})
	require.NoError(t, err)
	return all
}

// readFacts reads the inventory, and holds it against what was drawn.
func readFacts(ctx context.Context, rt *rapid.T, tx pgx.Tx, drawn []drawnServer) []allocation.Facts {
	facts := snapshot(ctx, rt, tx, "acme")
	require.Len(rt, facts, len(drawn))
	for i, f := range facts {
		want := drawn[i].Server
		want.CreatedAt, want.UpdatedAt = f.Server.CreatedAt, f.Server.UpdatedAt
		require.Equal(rt, want, f.Server)
		require.Equal(rt, drawn[i].holder == "held", f.Held)
		require.Equal(rt, drawn[i].holder == "bound", f.Bound)
	}
	return facts
}

func inTxThatIsRolledBack(rt *rapid.T, pool *pgxpool.Pool, do func(ctx context.Context, tx pgx.Tx)) {
	ctx := rt.Context()
	tx, err := pool.Begin(ctx)
	require.NoError(rt, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // also when a check ends the test
	do(ctx, tx)
}

// findings are the findings of each rule that a run has met, by its place in the table.
type findings map[int]map[allocation.Finding]int

func (f findings) add(wanted *allocation.Requirements, facts []allocation.Facts) {
	for i, rule := range allocation.Rules() {
		if rule.Arg != nil && rule.Arg(wanted) == nil {
			continue
		}
		if f[i] == nil {
			f[i] = map[allocation.Finding]int{}
		}
		for j := range facts {
			f[i][rule.Check(wanted, &facts[j])]++
		}
	}
}

// requireEverything fails if a rule never passed, never rejected, or never met an attribute that it does not know: such
// a run has compared nothing there.
func (f findings) requireEverything(t *testing.T) {
	t.Helper()
	for i, rule := range allocation.Rules() {
		require.NotZero(t, f[i][allocation.Holds], "%s %s never passed", rule.Code, rule.Requirement)
		require.NotZero(t, f[i][allocation.Fails], "%s %s never rejected", rule.Code, rule.Requirement)
		require.Equal(t, rule.UnknownSQL != "", f[i][allocation.Unknown] > 0, "%s %s: unknown", rule.Code, rule.Requirement)
	}
}

// The generator asks for whatever a rule judges.
//
// Requirements: R32
func TestEveryRequirementIsGenerated(t *testing.T) {
	t.Parallel()
	asked := map[string]bool{"": true}
	for name := range asks {
		asked[name] = true
	}
	for _, rule := range allocation.Rules() {
		require.True(t, asked[rule.Requirement], rule.Requirement)
	}
}

// Groups of drives take distinct drives. The database, the Go check and a search for a matching agree, for every list
// of drives and groups.
//
// Requirements: R32
func TestDrivesAreMatchedAlike(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	fitted := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		var have, want []string
		var expected []bool
		for range 30 {
			drives, groups := drawDrives(rt), drawGroups(rt)
			if drives == nil {
				drives = []inventory.Drive{}
			}
			have, want = append(have, asJSON(rt, drives)), append(want, asJSON(rt, groups))
			expected = append(expected, matching(drives, groups) == demanded(groups))
			fits := allocation.Judge(&allocation.Requirements{Drives: groups}, &allocation.Facts{
				Server: inventory.Server{State: inventory.StateReady, Drives: drives},
			}).Eligible()
			require.Equal(rt, expected[len(expected)-1], fits, "Go: %s for %s", have[len(have)-1], want[len(want)-1])
			fitted[fits]++
		}
		rows, err := pool.Query(rt.Context(),
			`SELECT drives_fit(have::jsonb, want::jsonb) FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x (have, want, n) ORDER BY n`, have, want)
		require.NoError(rt, err)
		got, err := pgx.CollectRows(rows, pgx.RowTo[bool])
		require.NoError(rt, err)
		for i := range got {
			require.Equal(rt, expected[i], got[i], "SQL: %s for %s", have[i], want[i])
		}
	})
	require.NotZero(t, fitted[true])
	require.NotZero(t, fitted[false])
}

func asJSON(rt *rapid.T, value any) string {
	text, err := json.Marshal(value)
	require.NoError(rt, err)
	return string(text)
}

func demanded(groups []allocation.DriveGroup) (n int) {
	for _, g := range groups {
		n += int(g.CountMin)
	}
	return n
}

// matching is the size of a largest assignment of single drives to single demands, found by augmenting paths.
func matching(drives []inventory.Drive, groups []allocation.DriveGroup) (size int) {
	var owner []int // of each single drive: the demand that has it, or -1
	var single []inventory.Drive
	for _, d := range drives {
		single = append(single, slices.Repeat([]inventory.Drive{d}, int(d.Count))...)
	}
	owner = slices.Repeat([]int{-1}, len(single))
	var demands []allocation.DriveGroup
	for _, g := range groups {
		demands = append(demands, slices.Repeat([]allocation.DriveGroup{g}, int(g.CountMin))...)
	}
	var augment func(demand int, tried []bool) bool
	augment = func(demand int, tried []bool) bool {
		for i, d := range single {
			if tried[i] || !serves(d, demands[demand]) {
				continue
			}
			tried[i] = true
			if owner[i] < 0 || augment(owner[i], tried) {
				owner[i] = demand
				return true
			}
		}
		return false
	}
	for demand := range demands {
		if augment(demand, make([]bool, len(single))) {
			size++
		}
	}
	return size
}

func serves(d inventory.Drive, g allocation.DriveGroup) bool {
	switch {
	case d.NominalGB < g.NominalGBMin, g.Medium != "" && d.Medium != g.Medium, g.Interface != "" && d.Interface != g.Interface:
		return false
	}
	return true
}
