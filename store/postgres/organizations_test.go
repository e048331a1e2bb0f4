package postgres_test

import (
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/events"
	"allocator/identity"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// person is a member of staff who works on the given organization.
func person(org identity.OrganizationID) identity.Caller {
	caller := identity.LocalCaller(org, identity.Actor{Kind: identity.ActorPerson, ID: "ada"})
	caller.RequestID = "req-1"
	return caller
}

func newOrganizations(pool *pgxpool.Pool) *identity.Organizations {
	return identity.NewOrganizations(postgres.NewOrganizations(pool), identity.MinHoldTime)
}

// createOrganization makes an organization with default settings.
func createOrganization(t *testing.T, pool *pgxpool.Pool, id identity.OrganizationID) identity.Organization {
	t.Helper()
	org, err := newOrganizations(pool).Create(t.Context(), person(""), identity.NewOrganization{ID: id, Name: string(id)})
	require.NoError(t, err)
	return org
}

// auditOf gives the whole audit trail of an organization, without what the database chose.
func auditOf(t *testing.T, pool *pgxpool.Pool, org string) []events.AuditEntry {
	t.Helper()
	page, err := postgres.NewAudit(pool).AuditPage(t.Context(), events.AuditQuery{OrganizationID: org, Limit: 1000})
	require.NoError(t, err)
	for i := range page.Entries {
		require.Regexp(t, `^aud_[0-9a-f]{32}$`, page.Entries[i].ID)
		require.False(t, page.Entries[i].At.IsZero())
		page.Entries[i].ID, page.Entries[i].At = "", page.Entries[0].At
	}
	return page.Entries
}

// actions gives what was done, oldest first.
func actions(entries []events.AuditEntry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Action)
	}
	return list
}

func TestOrganizationIsCreatedWithItsAuditEntry(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	service := newOrganizations(pool)

	created, err := service.Create(t.Context(), person(""), identity.NewOrganization{Name: "Größe & Söhne", HoldSeconds: new(60)})
	require.NoError(t, err)
	require.Equal(t, identity.OrganizationID("gr-e-s-hne"), created.ID)
	require.Equal(t, 60, created.HoldSeconds)
	require.Equal(t, 10, created.HoldLimit)
	require.EqualValues(t, 1, created.Version)
	require.False(t, created.CreatedAt.IsZero())

	read, err := service.Get(t.Context(), created.ID)
	require.NoError(t, err)
	require.Equal(t, created, read)

	trail := auditOf(t, pool, string(created.ID))
	require.Equal(t, []events.AuditEntry{{
		OrganizationID: "gr-e-s-hne",
		At:             trail[0].At,
		ActorKind:      "person",
		ActorID:        "ada",
		Action:         events.ActionOrganizationCreated,
		Subject:        "gr-e-s-hne",
		Outcome:        events.OutcomeDone,
		RequestID:      "req-1",
		Detail:         map[string]string{},
	}}, trail)
}

func TestOneOrganizationPerID(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	service := newOrganizations(pool)

	const tries = 8
	results := make(chan error, tries)
	var start sync.WaitGroup
	start.Add(1)
	for range tries {
		go func() {
			start.Wait()
			_, err := service.Create(t.Context(), person(""), identity.NewOrganization{Name: "Demo"})
			results <- err
		}()
	}
	start.Done()
	created := 0
	for range tries {
		if err := <-results; err == nil {
			created++
		} else {
			require.ErrorIs(t, err, identity.ErrOrganizationExists)
		}
	}
	require.Equal(t, 1, created)
	require.Equal(t, []string{events.ActionOrganizationCreated}, actions(auditOf(t, pool, "demo")))
}

func TestOrganizationIsUpdatedByVersion(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	service := newOrganizations(pool)
	before := createOrganization(t, pool, "demo")

	after, err := service.Update(t.Context(), person(""), "demo", identity.OrganizationPatch{HoldSeconds: new(120), Closing: new(true)}, before.Version)
	require.NoError(t, err)
	require.Equal(t, 120, after.HoldSeconds)
	require.True(t, after.Closing)
	require.Equal(t, before.Name, after.Name)
	require.Equal(t, before.Version+1, after.Version)
	require.True(t, after.UpdatedAt.After(before.UpdatedAt))

	_, err = service.Update(t.Context(), person(""), "demo", identity.OrganizationPatch{HoldLimit: new(3)}, before.Version)
	var changed *identity.VersionError
	require.ErrorAs(t, err, &changed)
	require.Equal(t, after.Version, changed.Current)

	same, err := service.Update(t.Context(), person(""), "demo", identity.OrganizationPatch{HoldSeconds: new(120)}, 0)
	require.NoError(t, err)
	require.Equal(t, after, same, "a patch that changes nothing writes nothing")
	_, err = service.Update(t.Context(), person(""), "nobody", identity.OrganizationPatch{}, 0)
	require.ErrorIs(t, err, identity.ErrOrganizationNotFound)

	trail := auditOf(t, pool, "demo")
	require.Equal(t, []string{events.ActionOrganizationCreated, events.ActionOrganizationUpdated}, actions(trail))
	require.Equal(t, map[string]string{"hold_seconds": "120", "closing": "true"}, trail[1].Detail)
}

func TestOrganizationsAreListedInPages(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	service := newOrganizations(pool)
	for _, id := range []identity.OrganizationID{"b", "a-b", "a", "ab", "c"} {
		createOrganization(t, pool, id)
	}
	var ids []identity.OrganizationID
	for after := identity.OrganizationID(""); ; {
		page, err := service.List(t.Context(), after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, org := range page {
			ids = append(ids, org.ID)
		}
		after = ids[len(ids)-1]
	}
	require.Equal(t, []identity.OrganizationID{"a", "a-b", "ab", "b", "c"}, ids)
	_, err := service.Get(t.Context(), "d")
	require.ErrorIs(t, err, identity.ErrOrganizationNotFound)
}

// Nothing happens that the audit trail does not tell of.
func TestNothingIsWrittenWithoutItsAuditEntry(t *testing.T) {
	t.Parallel()
	pool := postgrestest.New(t)
	createOrganization(t, pool, "demo")
	keys := identity.NewKeys(postgres.NewKeys(pool), clockNow)
	key, _, err := keys.Create(t.Context(), person("demo"), identity.NewKey{Name: "shop", Scopes: []identity.Scope{identity.ScopeCheckout}})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `ALTER TABLE audit RENAME TO audit_away`)
	require.NoError(t, err)
	flags := postgres.NewFlags(pool)
	ctx := t.Context()

	tests := map[string]func() error{
		"create an organization": func() error {
			_, err := newOrganizations(pool).Create(ctx, person(""), identity.NewOrganization{Name: "new"})
			return err
		},
		"change an organization": func() error {
			_, err := newOrganizations(pool).Update(ctx, person(""), "demo", identity.OrganizationPatch{Closing: new(true)}, 0)
			return err
		},
		"create a key": func() error {
			_, _, err := keys.Create(ctx, person("demo"), identity.NewKey{Name: "new", Scopes: []identity.Scope{identity.ScopeAdmin}})
			return err
		},
		"revoke a key": func() error {
			_, err := keys.Revoke(ctx, person("demo"), key.ID)
			return err
		},
		"set a switch":            func() error { return flags.SetFlag(ctx, by, "reservations", 100) },
		"set a switch's override": func() error { return flags.SetFlagOverride(ctx, by, "reservations", "demo", true) },
	}
	for name, write := range tests {
		require.Error(t, write(), name)
	}
	var written int
	require.NoError(t, pool.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM organizations WHERE id <> 'demo' OR closing)
			+ (SELECT count(*) FROM api_keys WHERE name = 'new' OR revoked_at IS NOT NULL)
			+ (SELECT count(*) FROM flags) + (SELECT count(*) FROM flag_overrides)`).Scan(&written))
	require.Zero(t, written)
}
