package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/client"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/store/postgres"
)

// listPage is how many records one read of a list takes.
const listPage = 500

// localAdministration works on the database itself: it is needed before there is any key, and when none works any more.
// Whoever holds the database's password may do everything; the audit trail names the person.
type localAdministration struct {
	organizations *identity.Organizations
	keys          *identity.Keys
	flags         *featureflags.Flags
	caller        identity.Caller
}

func newLocalAdministration(pool *pgxpool.Pool, caller identity.Caller) *localAdministration {
	return &localAdministration{
		organizations: identity.NewOrganizations(postgres.NewOrganizations(pool), identity.MinHoldTime),
		keys:          identity.NewKeys(postgres.NewKeys(pool), time.Now),
		flags:         featureflags.New(postgres.NewFlags(pool)),
		caller:        caller,
	}
}

// everyPage reads a list from its beginning to its end.
func everyPage[T, ID any](read func(after ID) ([]T, error), idOf func(T) ID) ([]T, error) {
	all := []T{}
	var after ID
	for {
		page, err := read(after)
		all = append(all, page...)
		if err != nil || len(page) < listPage {
			return all, err
		}
		after = idOf(page[len(page)-1])
	}
}

func mapped[From, To any](list []From, to func(From) To) []To {
	out := make([]To, len(list))
	for i, one := range list {
		out[i] = to(one)
	}
	return out
}

func (a *localAdministration) Organizations(ctx context.Context) ([]client.Organization, error) {
	all, err := everyPage(func(after identity.OrganizationID) ([]identity.Organization, error) {
		return a.organizations.List(ctx, after, listPage)
	}, func(o identity.Organization) identity.OrganizationID { return o.ID })
	return mapped(all, wireOrganization), err
}

func (a *localAdministration) Organization(ctx context.Context, id string) (client.Organization, error) {
	org, err := a.organizations.Get(ctx, identity.OrganizationID(id))
	return wireOrganization(org), err
}

func (a *localAdministration) CreateOrganization(ctx context.Context, in client.NewOrganization) (client.Organization, error) {
	org, err := a.organizations.Create(ctx, a.caller, identity.NewOrganization{
		ID: identity.OrganizationID(in.ID), Name: in.Name, HoldSeconds: in.HoldSeconds, HoldLimit: in.HoldLimit,
	})
	return wireOrganization(org), err
}

func (a *localAdministration) UpdateOrganization(
	ctx context.Context, id string, patch client.OrganizationPatch,
) (client.Organization, error) {
	org, err := a.organizations.Update(ctx, a.caller, identity.OrganizationID(id), identity.OrganizationPatch{
		Name: patch.Name, HoldSeconds: patch.HoldSeconds, HoldLimit: patch.HoldLimit, Closing: patch.Closing,
	}, 0)
	return wireOrganization(org), err
}

func (a *localAdministration) Keys(ctx context.Context) ([]client.Key, error) {
	if _, err := a.organizations.Get(ctx, a.caller.Organization); err != nil {
		return nil, err // an organization that does not exist is no organization without keys
	}
	all, err := everyPage(func(after identity.KeyID) ([]identity.Key, error) {
		return a.keys.List(ctx, a.caller, after, listPage)
	}, func(k identity.Key) identity.KeyID { return k.ID })
	return mapped(all, wireKey), err
}

func (a *localAdministration) CreateKey(ctx context.Context, in client.NewKey) (client.CreatedKey, error) {
	wanted := identity.NewKey{Name: in.Name}
	for _, scope := range in.Scopes {
		wanted.Scopes = append(wanted.Scopes, identity.Scope(scope))
	}
	if !in.ExpiresAt.IsZero() {
		wanted.ExpiresAt = &in.ExpiresAt
	}
	key, text, err := a.keys.Create(ctx, a.caller, wanted)
	return createdKey(wireKey(key), text), err
}

func (a *localAdministration) RevokeKey(ctx context.Context, id string) (client.Key, error) {
	key, err := a.keys.Revoke(ctx, a.caller, identity.KeyID(id))
	return wireKey(key), err
}

func (a *localAdministration) by() featureflags.By {
	return featureflags.By{ActorKind: string(a.caller.Actor.Kind), ActorID: a.caller.Actor.ID}
}

func (a *localAdministration) Flags(ctx context.Context) ([]client.Flag, error) {
	flags, err := a.flags.List(ctx, "")
	return mapped(flags, wireFlag), err
}

func (a *localAdministration) SetFlag(ctx context.Context, key string, percent int) (client.Flag, error) {
	if err := a.flags.SetGlobal(ctx, a.by(), key, percent); err != nil {
		return client.Flag{}, err
	}
	flag, err := a.flags.Get(ctx, key, "")
	return wireFlag(flag), err
}

func (a *localAdministration) SetOverride(ctx context.Context, key, org string, enabled bool) (client.FlagOverride, error) {
	if err := a.flags.SetOverride(ctx, a.by(), key, org, enabled); err != nil {
		return client.FlagOverride{}, err
	}
	flag, err := a.flags.Get(ctx, key, org)
	if err != nil || len(flag.Overrides) == 0 { // none: somebody took it back a moment later
		return client.FlagOverride{OrganizationID: org, Enabled: enabled}, err
	}
	return wireOverride(flag.Overrides[0]), nil
}

func (a *localAdministration) DeleteOverride(ctx context.Context, key, org string) error {
	return a.flags.DeleteOverride(ctx, a.by(), key, org)
}
