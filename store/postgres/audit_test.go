package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/events"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

func record(t *testing.T, pool *pgxpool.Pool, org, subject string) {
	t.Helper()
	require.NoError(t, postgres.NewAudit(pool).RecordAudit(t.Context(), events.AuditEntry{
		OrganizationID: org, ActorKind: "key", Action: events.ActionRequest, Subject: subject, Outcome: events.OutcomeRefused,
	}))
}

func subjects(page events.AuditPage) []string {
	var list []string
	for _, e := range page.Entries {
		list = append(list, e.Subject)
	}
	return list
}

func TestAuditIsReadInPages(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	audit := postgres.NewAudit(pool)
	for i := range 5 {
		record(t, pool, "demo", fmt.Sprint(i))
		record(t, pool, "other", fmt.Sprint("other ", i))
	}
	record(t, pool, "", "platform")

	var seen []string
	query := events.AuditQuery{OrganizationID: "demo", Limit: 2}
	for {
		page, err := audit.AuditPage(t.Context(), query)
		require.NoError(t, err)
		if len(page.Entries) == 0 {
			require.Equal(t, query.After, page.Next, "a reader can come again from where it stands")
			break
		}
		seen = append(seen, subjects(page)...)
		query.After = page.Next
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, seen)

	record(t, pool, "demo", "5")
	page, err := audit.AuditPage(t.Context(), query)
	require.NoError(t, err)
	require.Equal(t, []string{"5"}, subjects(page))

	all, err := audit.AuditPage(t.Context(), events.AuditQuery{All: true, Limit: 100})
	require.NoError(t, err)
	require.Len(t, all.Entries, 12)
	own, err := audit.AuditPage(t.Context(), events.AuditQuery{Limit: 100})
	require.NoError(t, err)
	require.Equal(t, []string{"platform"}, subjects(own))

	for _, cursor := range []string{"x", "1.aud_x", "-1." + page.Entries[0].ID, "99999999999999999999." + page.Entries[0].ID, "1\x00"} {
		_, err := audit.AuditPage(t.Context(), events.AuditQuery{After: cursor, Limit: 1})
		require.ErrorIs(t, err, events.ErrCursorInvalid, cursor)
	}
}

// A reader that follows the trail never misses an entry whose transaction took its time.
func TestAuditPageEndsBeforeWhatMayStillBeCommitted(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	audit := postgres.NewAudit(pool)
	read := func(after string) events.AuditPage {
		page, err := audit.AuditPage(t.Context(), events.AuditQuery{OrganizationID: "demo", After: after, Limit: 10})
		require.NoError(t, err)
		return page
	}
	idle, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = idle.Rollback(t.Context()) }()
	_, err = idle.Exec(t.Context(), `SELECT 1`)
	require.NoError(t, err)

	record(t, pool, "demo", "before")
	slow, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = slow.Rollback(t.Context()) }()
	_, err = slow.Exec(t.Context(), `
		INSERT INTO audit (organization_id, id, actor_kind, actor_id, action, subject, outcome, request_id)
		VALUES ('demo', gen_random_uuid(), 'key', '', 'request', 'slow', 'refused', '')`)
	require.NoError(t, err)
	record(t, pool, "demo", "fast")

	page := read("")
	require.Equal(t, []string{"before"}, subjects(page), "somebody who only reads holds nothing up, somebody who writes does")
	require.NoError(t, slow.Commit(t.Context()))
	require.Equal(t, []string{"slow", "fast"}, subjects(read(page.Next)))
}

func TestAuditIsPurgedAfterItsTimeOnly(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	_, err := pool.Exec(t.Context(), `
		INSERT INTO audit (organization_id, id, at, actor_kind, actor_id, action, subject, outcome, request_id)
		SELECT 'demo', gen_random_uuid(), clock_timestamp() - days * interval '1 day', 'key', '', 'x', outcome || ' ' || days, outcome, ''
		FROM unnest(ARRAY[401, 399, 91, 89, 0]) AS days, unnest(ARRAY['done', 'refused']) AS outcome`)
	require.NoError(t, err)

	n, err := events.NewAudit(postgres.NewAudit(pool), clockNow).Purge(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 4, n)
	page, err := postgres.NewAudit(pool).AuditPage(t.Context(), events.AuditQuery{OrganizationID: "demo", Limit: 100})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"done 399", "done 91", "done 89", "done 0", "refused 89", "refused 0"}, subjects(page))
}

func TestAuditTakesWhateverItIsGiven(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	require.NoError(t, events.NewAudit(postgres.NewAudit(pool), clockNow).Record(t.Context(), events.AuditEntry{
		ActorID: "\x00\xff", Subject: strings.Repeat("\U0001F600", 5000), Detail: map[string]string{"\x00": strings.Repeat("\"", 5000)},
	}))
	require.Len(t, auditOf(t, pool, ""), 1)
}

// Whoever types SQL is told the rule by its name.
func TestRulesThatRawSQLMeets(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	createOrganization(t, pool, "demo")
	_, err := pool.Exec(t.Context(), `
		INSERT INTO api_keys (organization_id, id, name, scopes, secret_hash, created_by_kind, created_by_id)
		SELECT 'demo', gen_random_uuid(), name, '{admin}', sha256('x'), 'person', 'ada' FROM unnest(ARRAY['revoked', 'working']) AS name`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		UPDATE api_keys SET revoked_at = now(), revoked_by_kind = 'person', revoked_by_id = 'ada' WHERE name = 'revoked'`)
	require.NoError(t, err)

	tests := map[string]string{
		`DELETE FROM organizations`:                                    "organizations_are_kept",
		`TRUNCATE organizations CASCADE`:                               "organizations_are_kept_all",
		`UPDATE organizations SET id = 'x'`:                            "organizations_identity_fixed",
		`UPDATE organizations SET hold_seconds = 0`:                    "organizations_hold_seconds_within_a_day",
		`UPDATE organizations SET hold_seconds = 86401`:                "organizations_hold_seconds_within_a_day",
		`UPDATE organizations SET hold_limit = 0`:                      "organizations_hold_limit_is_positive",
		`UPDATE organizations SET name = ''`:                           "organizations_name_has_1_to_200_characters",
		`INSERT INTO organizations (id, name) VALUES ('Demo', 'x')`:    "organizations_id_is_a_short_name",
		`INSERT INTO organizations (id, name) VALUES (E'demo\n', 'x')`: "organizations_id_is_a_short_name",
		`UPDATE api_keys SET revoked_at = NULL, revoked_by_kind = NULL, revoked_by_id = NULL WHERE name = 'revoked'`: "api_keys_revocation_final",
		`UPDATE api_keys SET scopes = '{platform}' WHERE name = 'working'`:                                           "api_keys_rights_fixed",
		`UPDATE api_keys SET expires_at = 'infinity' WHERE name = 'working'`:                                         "api_keys_rights_fixed",
		`UPDATE api_keys SET secret_hash = sha256('y') WHERE name = 'working'`:                                       "api_keys_rights_fixed",
		`UPDATE api_keys SET revoked_at = now() WHERE name = 'working'`:                                              "api_keys_revocation_says_when_and_who",
		`UPDATE api_keys SET name = '' WHERE name = 'working'`:                                                       "api_keys_name_has_1_to_100_characters",
		insertKey("'{}'", "sha256('x')"):                                                                             "api_keys_scopes_exist",
		insertKey("'{root}'", "sha256('x')"):                                                                         "api_keys_scopes_exist",
		insertKey("'{admin}'", `'\x00'`):                                                                             "api_keys_secret_hash_is_a_sha256",
		`INSERT INTO flags VALUES ('reservations', 101, now(), '', '')`:                                              "flags_percent_lies_between_0_and_100",
		`INSERT INTO flags VALUES ('Reservations', 1, now(), '', '')`:                                                "flags_key_is_a_short_name",
		`INSERT INTO flag_overrides VALUES ('demo', '', true, now(), '', '')`:                                        "flag_overrides_key_is_a_short_name",
		`INSERT INTO flag_overrides VALUES ('nobody', 'x', true, now(), '', '')`:                                     "flag_overrides_organization_id_fkey",
		`UPDATE audit SET actor_id = 'x'`:                                                                            "audit_is_final",
		`DELETE FROM audit`:                                                                                          "audit_is_kept_for_its_time",
		`TRUNCATE audit`:                                                                                             "audit_is_kept",
		`INSERT INTO audit VALUES ('', gen_random_uuid(), now(), '', '', '', '', 'perhaps', '')`:                     "audit_outcome_is_done_or_refused",
		`INSERT INTO audit VALUES ('', gen_random_uuid(), now(), '', '', '', repeat('x', 201), 'done', '')`:          "audit_texts_have_at_most_200_characters",
		`INSERT INTO audit VALUES ('', gen_random_uuid(), now(), '', '', '', '', 'done', '', '[]')`:                  "audit_detail_is_a_small_object",
	}
	for sql, want := range tests {
		_, err := pool.Exec(t.Context(), sql)
		var refused *pgconn.PgError
		require.ErrorAsf(t, err, &refused, "%s", sql)
		require.Equalf(t, want, refused.ConstraintName, "%s: %v", sql, err)
	}
}

func insertKey(scopes, hash string) string {
	return `INSERT INTO api_keys (organization_id, id, name, scopes, secret_hash, created_by_kind, created_by_id)
		VALUES ('demo', gen_random_uuid(), 'x', ` + scopes + `, ` + hash + `, '', '')`
}
