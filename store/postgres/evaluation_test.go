package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// evaluateSQL judges every server by SQL alone, and knows nothing of a catalog.
var evaluateSQL = `SELECT s.id, s.size, coalesce((s.price_amount * 10000)::bigint, -1), coalesce(s.price_currency, ''), ` + failsSQL + `, ` + unknownSQL + `, o.until
	FROM servers s
	CROSS JOIN jsonb_to_record($2::jsonb) AS q (` + questionRecord + `)
	CROSS JOIN LATERAL (
		SELECT h.until, h.until IS NOT NULL AS held,
			EXISTS (SELECT FROM bindings b WHERE (b.organization_id, b.server_id) = (s.organization_id, s.id) AND b.ended_at IS NULL) AS bound
		FROM (SELECT max(r.expires_at) AS until FROM reservations r WHERE (r.organization_id, r.server_id) = (s.organization_id, s.id)
			AND r.state = 'held' AND r.expires_at > clock_timestamp()) h) o
	WHERE s.organization_id = $1
	ORDER BY s.id`

// judgedRow is one server as SQL judges it.
type judgedRow struct {
	id       inventory.ServerID
	size     int64
	amount   int64 // -1: it has no price
	currency string
	verdict  allocation.Verdict
	until    *time.Time
}

func evaluatedBySQL(t require.TestingT, pool *pgxpool.Pool, org identity.OrganizationID, wanted *allocation.Requirements) []judgedRow {
	question, err := json.Marshal(wanted.Arguments())
	require.NoError(t, err)
	rows, err := pool.Query(context.Background(), evaluateSQL, org, question)
	require.NoError(t, err)
	judged, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (j judgedRow, err error) {
		var id uuid.UUID
		err = row.Scan(&id, &j.size, &j.amount, &j.currency, &j.verdict.Fails, &j.verdict.Unknown, &j.until)
		j.id = inventory.ServerID(formatID(serverIDPrefix, id))
		return j, err
	})
	require.NoError(t, err)
	return judged
}

// An evaluation by a catalog that was filled long ago, and by one that knows nothing yet, says of every server what SQL says,
// with every reason, whatever happened to the servers meanwhile that no word of this process tells of.
//
// Requirements: R32, R33, R36, R61.
func TestEvaluationIsWhatSQLSays(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	tokens, err := reservation.ParseTokenKeys("k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	newAllocator := func() *allocation.Allocator { return allocation.New(NewAllocations(pool), open{}, tokens) }
	organization := 0
	met := map[allocation.Cause]int{}
	rapid.Check(t, func(rt *rapid.T) {
		organization++
		org := identity.OrganizationID(fmt.Sprint("org-", organization))
		caller := identity.LocalCaller(org, identity.Actor{Kind: identity.ActorSystem, ID: "test"})
		drawn := drawInventory(rt)
		addDrawn(rt, pool, org, drawn)
		old := newAllocator()
		for range rapid.IntRange(1, 3).Draw(rt, "answers") {
			wanted, key := drawRequirements(rt), pick(rt, "key", "", "a", "b")
			for _, a := range []*allocation.Allocator{old, newAllocator()} {
				e, err := a.Evaluate(t.Context(), caller, key, *wanted)
				require.NoError(rt, err)
				judged := evaluatedBySQL(rt, pool, org, wanted)
				sameServers(rt, e, judged, snapshot(t.Context(), rt, pool, string(org)))
				sameSummary(rt, e, judged)
				met[e.Cause]++
			}
			for range rapid.IntRange(0, 6).Draw(rt, "changes") {
				change := rapid.SampledFrom([]string{"hold", "cancel", "die", "sell", "end", "ready", "broken", "model", "no model"}).Draw(rt, "change")
				_, _ = pool.Exec(t.Context(), capacityChanges[change], org, rapid.SampledFrom(drawn).Draw(rt, "server").row)
			}
		}
	})
	for _, cause := range []allocation.Cause{"", allocation.CauseNothingMatches, allocation.CauseAllHeld, allocation.CauseAllSold} {
		require.NotZero(t, met[cause], cause)
	}
}

func addDrawn(rt *rapid.T, pool *pgxpool.Pool, org identity.OrganizationID, drawn []drawnServer) {
	ctx := context.Background()
	_, err := pool.Exec(ctx, `INSERT INTO organizations (id, name) VALUES ($1, 'x')`, org)
	require.NoError(rt, err)
	records := make([]serverRecord, len(drawn))
	for i := range drawn {
		records[i] = recordOf(drawn[i].row, &drawn[i].Server)
	}
	_, err = pool.Exec(ctx, insertServers, org, records)
	require.NoError(rt, err)
	for _, s := range drawn {
		if change := map[string]string{"held": "hold", "bound": "sell"}[s.holder]; change != "" {
			_, err := pool.Exec(ctx, capacityChanges[change], org, s.row)
			require.NoError(rt, err)
		}
	}
}

// sameServers holds the lists against what SQL judges and against the records: each server once, the ranked ones in the
// order of size and price, the others in that of their ids with every reason.
func sameServers(rt *rapid.T, e *allocation.Evaluation, judged []judgedRow, facts []allocation.Facts) {
	rows := map[inventory.ServerID]judgedRow{}
	records := map[inventory.ServerID]inventory.Server{}
	var fitting []inventory.ServerID
	var rejected []allocation.Rejected
	for i, j := range judged {
		s := facts[i].Server
		rows[j.id], records[j.id] = j, s
		if j.verdict.Eligible() {
			fitting = append(fitting, j.id)
			continue
		}
		rejected = append(rejected, allocation.Rejected{Server: j.id, Name: s.Name, Site: s.Site, Verdict: j.verdict})
	}
	require.Equal(rt, rejected, slices.Collect(e.Rejected()))
	var ranked []inventory.ServerID
	for c := range e.Ranked() {
		require.Equal(rt, len(ranked)+1, c.Rank)
		if n := len(ranked); n > 0 {
			require.LessOrEqual(rt, compareJudged(rows[ranked[n-1]], rows[c.Server.ID]), 0, "%s before %s", ranked[n-1], c.Server.ID)
		}
		ranked = append(ranked, c.Server.ID)
		want := records[c.Server.ID]
		want.Source, want.ExternalID, want.Version, want.CreatedAt, want.UpdatedAt = "", "", 0, time.Time{}, time.Time{}
		require.Equal(rt, want, *c.Server)
	}
	require.ElementsMatch(rt, fitting, ranked)
}

// compareJudged is the ranking but for equals: the smallest machine, then the cheapest, the unpriced last.
func compareJudged(a, b judgedRow) int {
	unpriced := func(j judgedRow) int { return map[bool]int{true: 1}[j.amount < 0] }
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(unpriced(a), unpriced(b)), cmp.Compare(a.currency, b.currency), cmp.Compare(a.amount, b.amount))
}

// sameSummary counts anew from what SQL judges.
func sameSummary(rt *rapid.T, e *allocation.Evaluation, judged []judgedRow) {
	var counts []allocation.ReasonCount
	eligible, matching, held := 0, 0, 0
	var next *time.Time
	for _, j := range judged {
		for _, r := range j.verdict.Reasons() {
			i := slices.IndexFunc(counts, func(c allocation.ReasonCount) bool { return c.Reason == r })
			if i < 0 {
				text, remedy := allocation.Describe(r)
				i, counts = len(counts), append(counts, allocation.ReasonCount{Reason: r, Text: text, Remedy: remedy})
			}
			counts[i].Servers++
		}
		if j.verdict.Eligible() {
			eligible++
		}
		if j.verdict.Matches() {
			matching++
			if j.until != nil {
				if held++; next == nil || j.until.Before(*next) {
					next = j.until
				}
			}
		}
	}
	require.Equal(rt, []int{len(judged), eligible}, []int{e.Servers, e.Eligible})
	require.ElementsMatch(rt, counts, e.Counts)
	require.True(rt, slices.IsSortedFunc(e.Counts, func(a, b allocation.ReasonCount) int { return cmp.Compare(b.Servers, a.Servers) }))
	var cause allocation.Cause
	switch {
	case eligible > 0:
		require.Nil(rt, e.Nearest)
		next = nil
	case matching == 0:
		cause = allocation.CauseNothingMatches
	case held > 0:
		cause = allocation.CauseAllHeld
	default:
		cause = allocation.CauseAllSold
	}
	require.Equal(rt, cause, e.Cause)
	require.Equal(rt, next == nil, e.NextExpiryAt == nil)
	if next != nil {
		require.WithinDuration(rt, *next, *e.NextExpiryAt, 0)
	}
	if eligible == 0 {
		sameNearest(rt, e.Nearest, judged)
	}
}

// sameNearest relaxes each requirement in turn.
func sameNearest(rt *rapid.T, got *allocation.Nearest, judged []judgedRow) {
	without := map[string]int{}
	most := 0
	for _, j := range judged {
		requirements := map[string]bool{}
		for _, r := range j.verdict.Reasons() {
			requirements[r.Requirement] = true
		}
		if len(requirements) != 1 || requirements[""] {
			continue
		}
		for name := range requirements {
			without[name]++
			most = max(most, without[name])
		}
	}
	if most == 0 {
		require.Nil(rt, got)
		return
	}
	require.Equal(rt, []int{most, most}, []int{got.Servers, without[got.Requirement]})
}
