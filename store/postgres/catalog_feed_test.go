package postgres

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/postgrestest"
)

// changesBetweenPages are of the servers 1 to 7, of which the pages before may have told already or not.
var changesBetweenPages = []string{
	`UPDATE servers SET state = 'maintenance', state_reason = 'fan' WHERE external_id = '1'`,
	`UPDATE servers SET site = 'HEL1' WHERE external_id = '7'`,
	`INSERT INTO servers (organization_id, id, source, external_id, site, state) VALUES ('acme', '00000000-0000-7000-8000-000000000000', 'test', 'first', 'FSN1', 'ready')`,
	`INSERT INTO servers (organization_id, id, source, external_id, site, state) VALUES ('acme', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'test', 'last', 'FSN1', 'ready')`,
	`UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE server_id = (SELECT id FROM servers WHERE external_id = '2')`,
	`UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE server_id = (SELECT id FROM servers WHERE external_id = '5')`,
	`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
			idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
		SELECT 'acme', uuid_v7(), id, external_id || clock_timestamp(), '1', 'key', clock_timestamp() + interval '1 hour', clock_timestamp() + interval '1 day',
			'k' || external_id || clock_timestamp(), '\x00', 'k1', '{}', '{}', '{"v": 1}', id FROM servers WHERE external_id IN ('3', '6')`,
	`UPDATE bindings SET ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE server_id = (SELECT id FROM servers WHERE external_id = '4')`,
}

// paging is the store, which lets a test work before each page.
type paging struct {
	*Allocations

	before func(page int)
	pages  int
}

// Everything implements allocation.Store.
func (p *paging) Everything(
	ctx context.Context, org identity.OrganizationID, page func(allocation.News),
) (allocation.News, error) {
	start, err := p.Allocations.Everything(ctx, org, func(n allocation.News) {
		page(n)
		p.before(p.pages)
		p.pages++
	})
	return start, err
}

func fewServers(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := postgrestest.New(t)
	for _, sql := range []string{
		`INSERT INTO organizations (id, name) VALUES ('acme', 'x')`,
		`INSERT INTO servers (organization_id, id, source, external_id, site, state)
			SELECT 'acme', uuid_v7(), 'test', n::text, 'FSN1', 'ready' FROM generate_series(1, 7) n`,
		`INSERT INTO reservations (organization_id, id, server_id, order_id, order_line, created_by_kind, expires_at, max_expires_at,
				idempotency_key, fingerprint, token_key, requirements, reason, server, decision_id)
			SELECT 'acme', uuid_v7(), id, external_id, '1', 'key', clock_timestamp() + interval '1 hour', clock_timestamp() + interval '1 day',
				external_id, '\x00', 'k1', '{}', '{}', '{"v": 1}', id FROM servers WHERE external_id IN ('2', '5')`,
		`INSERT INTO bindings (organization_id, id, server_id, service_id, created_by_kind, server)
			SELECT 'acme', uuid_v7(), id, 'svc', 'person', '{"v": 1}' FROM servers WHERE external_id = '4'`,
	} {
		execute(t, pool, sql)
	}
	return pool
}

func (p *paging) allocator(t *testing.T) *allocation.Allocator {
	t.Helper()
	tokens, err := reservation.ParseTokenKeys("k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	require.NoError(t, err)
	return allocation.New(p, open{}, tokens)
}

func acmeCounts(t *testing.T, pool *pgxpool.Pool) []allocation.CapacityGroup {
	t.Helper()
	rows, err := pool.Query(t.Context(), capacitySQL, "acme")
	require.NoError(t, err)
	groups, err := pgx.CollectRows(rows, scanCounted)
	require.NoError(t, err)
	return groups
}

var acme = identity.LocalCaller("acme", identity.Actor{Kind: identity.ActorSystem, ID: "test"})

// The first read of a catalog goes by pages that are statements of their own. Whatever changes before any of them, nothing is
// lost, and nothing is believed that is over.
func TestFirstReadLosesNothingBetweenPages(t *testing.T) {
	t.Parallel()
	for at := range 5 {
		pool := fewServers(t)
		store := &paging{Allocations: NewAllocations(pool)}
		store.feedPage = 2
		store.before = func(page int) {
			if page != at {
				return
			}
			for _, sql := range changesBetweenPages {
				_, err := pool.Exec(t.Context(), sql)
				require.NoError(t, err, sql)
			}
		}
		got, err := store.allocator(t).Capacity(t.Context(), acme, allocation.Grouping{Site: true, Model: true})
		require.NoError(t, err)
		require.Greater(t, store.pages, at, "the change was made")
		require.Equal(t, acmeCounts(t, pool), got.Groups, "changed before page %d", at+1)
	}
}

// When more has changed than one read may bring, everything is read anew, by pages, and whoever asks is answered from that.
//
// Requirements: R32.
func TestMoreNewsThanOneReadMayBring(t *testing.T) {
	t.Parallel()
	for what, sql := range map[string]string{
		"servers":      `UPDATE servers SET site = 'HEL1'`,
		"reservations": `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE state = 'held'`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pool := fewServers(t)
			store := &paging{Allocations: NewAllocations(pool), before: func(int) {}}
			store.maxNews = 1
			allocator := store.allocator(t)
			capacity := func() []allocation.CapacityGroup {
				got, err := allocator.Capacity(t.Context(), acme, allocation.Grouping{Site: true, Model: true})
				require.NoError(t, err)
				return got.Groups
			}
			capacity()
			first := store.pages
			require.Equal(t, acmeCounts(t, pool), capacity())
			require.Equal(t, first, store.pages, "nothing is new")
			execute(t, pool, sql)
			require.Equal(t, acmeCounts(t, pool), capacity())
			require.Greater(t, store.pages, first, "read anew")
		})
	}
}

// Pages together are everything, whether the last one is full or not.
func TestPagesAreEverything(t *testing.T) {
	t.Parallel()
	pool := fewServers(t)
	execute(t, pool, `INSERT INTO servers (organization_id, id, source, external_id, site, state)
		VALUES ('acme', '00000000-0000-0000-0000-000000000000', 'test', 'nil', 'FSN1', 'ready'), ('acme', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'test', 'last', 'FSN1', 'ready')`)
	store := NewAllocations(pool)
	for _, store.feedPage = range []int{1, 3, 4, 9, 100} {
		seen, held := map[inventory.ServerID]int{}, 0
		start, err := store.Everything(t.Context(), "acme", func(n allocation.News) {
			require.LessOrEqual(t, max(len(n.Servers), len(n.Holdings)), store.feedPage)
			require.Zero(t, n.Horizon, "nobody may go on from the middle")
			for _, s := range n.Servers {
				seen[s.ID]++
			}
			held += len(n.Holdings)
		})
		require.NoError(t, err)
		require.False(t, start.Horizon.IsZero())
		require.Len(t, seen, 9)
		for id, times := range seen {
			require.Equal(t, 1, times, id)
		}
		require.Equal(t, 3, held)
	}
}

// A caller that cannot wait as long as the first read takes does not end it: those who come later find it done.
func TestFirstReadOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	pool := fewServers(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	store := &paging{Allocations: NewAllocations(pool)}
	store.before = func(page int) {
		if page == 0 {
			close(begun)
			<-goOn
		}
	}
	allocator := store.allocator(t)
	hasty, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := allocator.Capacity(hasty, acme, allocation.Grouping{})
		left <- err
	}()
	<-begun
	leave()
	require.ErrorIs(t, <-left, context.Canceled)
	patient, failed := make(chan *allocation.Outcome, 1), make(chan error, 1)
	go func() {
		outcome, err := allocator.Reserve(t.Context(), acme, allocation.Request{
			IdempotencyKey: "k", Order: reservation.OrderLine{OrderID: "o", Line: "1", Unit: 1},
		})
		failed <- err
		patient <- outcome
	}()
	close(goOn)
	require.NoError(t, <-failed)
	require.Equal(t, allocation.OutcomeReserved, (<-patient).Code)
	require.Equal(t, 2, store.pages, "the servers and what holds them, once")
}

// What a read brought that failed in the middle is not kept: the next one may be of another database.
func TestFailedFirstReadLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := fewServers(t)
	store := &paging{Allocations: NewAllocations(pool)}
	store.feedPage = 2
	whole := store.Allocations
	closed := postgrestest.New(t)
	closed.Close()
	store.before = func(page int) {
		if page == 1 {
			store.pool = closed
		}
	}
	allocator := store.allocator(t)
	_, err := allocator.Capacity(t.Context(), acme, allocation.Grouping{})
	require.Error(t, err)
	store.before = func(int) {}
	whole.pool = pool
	_, err = pool.Exec(t.Context(), `SET session_replication_role = replica; DELETE FROM servers WHERE external_id = '1';
		RESET session_replication_role`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	got, err := allocator.Capacity(t.Context(), acme, allocation.Grouping{Site: true, Model: true})
	require.NoError(t, err)
	require.Equal(t, acmeCounts(t, pool), got.Groups)
}

// newsAfter reads what is new since then, and moves on.
func newsAfter(t *testing.T, store *Allocations, since *allocation.Horizon) (servers []string, holdings int) {
	t.Helper()
	news, err := store.News(t.Context(), "acme", *since)
	require.NoError(t, err)
	for i := range news.Servers {
		servers = append(servers, news.Servers[i].ExternalID)
	}
	slices.Sort(servers)
	*since = news.Horizon
	return servers, len(news.Holdings)
}

// Somebody's transaction stands open for hours, in this database or in another of the server. What others change meanwhile is
// told once all the same, and what it changed is told when it is over.
//
// Requirements: R32. Faults: F-L6.
func TestNewsAreToldOnceBesideATransactionThatStaysOpen(t *testing.T) {
	t.Parallel()
	pool := fewServers(t)
	store := NewAllocations(pool)
	slow, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = slow.Exec(t.Context(), `UPDATE servers SET state = 'failed' WHERE external_id = '1'`)
	require.NoError(t, err)
	start, err := store.Everything(t.Context(), "acme", func(allocation.News) {})
	require.NoError(t, err)
	at := start.Horizon
	execute(t, pool, `UPDATE servers SET state = 'maintenance', state_reason = 'fan' WHERE external_id = '6'`)
	execute(t, pool, `UPDATE reservations SET state = 'cancelled', ended_at = clock_timestamp(), ended_by_kind = 'person' WHERE state = 'held'`)
	servers, holdings := newsAfter(t, store, &at)
	require.Equal(t, []string{"6"}, servers)
	require.Equal(t, 2, holdings)
	for range 3 {
		servers, holdings = newsAfter(t, store, &at)
		require.Empty(t, servers, "told before")
		require.Zero(t, holdings, "told before")
	}
	require.NoError(t, slow.Commit(t.Context()))
	servers, holdings = newsAfter(t, store, &at)
	require.Equal(t, []string{"1"}, servers)
	require.Zero(t, holdings)
	servers, _ = newsAfter(t, store, &at)
	require.Empty(t, servers)
}

// A walk that has changed something reads the news in its own transaction, and goes on to change more. Whoever goes on from
// what it read is told of that.
//
// Requirements: R32.
func TestNewsOfTheTransactionThatReadsThem(t *testing.T) {
	t.Parallel()
	pool := fewServers(t)
	store := NewAllocations(pool)
	start, err := store.Everything(t.Context(), "acme", func(allocation.News) {})
	require.NoError(t, err)
	at := start.Horizon
	require.NoError(t, store.InTx(t.Context(), func(ctx context.Context, tx allocation.Tx) error {
		walk := tx.(*reserving)
		fail := func(server string) {
			require.NoError(t, walk.send(ctx, step{sql: `UPDATE servers SET state = 'failed' WHERE external_id = $1`, args: []any{server}}))
		}
		fail("1")
		_, err := pool.Exec(ctx, `UPDATE servers SET state = 'failed' WHERE external_id = '7'`) // younger, and over
		require.NoError(t, err)
		news, err := walk.News(ctx, "acme", at)
		require.NoError(t, err)
		require.Len(t, news.Servers, 2)
		at = news.Horizon
		fail("2")
		return nil
	}))
	servers, _ := newsAfter(t, store, &at)
	require.Equal(t, []string{"1", "2"}, servers)
}
