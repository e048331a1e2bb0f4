package main

import (
	"context"
	"errors"
	"fmt"

	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/inventory/importer"
)

// demoOrganization is the organization of a first look.
const demoOrganization = identity.OrganizationID("demo")

// furnish makes sure that there is an organization to try things with: its release switch on, the sample inventory, and
// a key with every scope of an organization. It changes nothing that somebody has changed since, and may be repeated.
func furnish(ctx context.Context, a *app, dataDir string) (key string, err error) {
	caller := identity.LocalCaller(demoOrganization, identity.Actor{Kind: identity.ActorSystem, ID: "up"})
	_, err = a.organizations.Create(ctx, caller, identity.NewOrganization{ID: demoOrganization, Name: "Demo"})
	if err != nil && !errors.Is(err, identity.ErrOrganizationExists) {
		return "", fmt.Errorf("make the organization demo: %w", err)
	}
	if err := switchOnce(ctx, a, caller); err != nil {
		return "", fmt.Errorf("turn the release switch of demo on: %w", err)
	}
	if err := stock(ctx, a, caller); err != nil {
		return "", fmt.Errorf("add the sample inventory: %w", err)
	}
	return demoKey(ctx, a, caller, dataDir)
}

// switchOnce turns the release switch on, unless somebody has set it already.
func switchOnce(ctx context.Context, a *app, caller identity.Caller) error {
	flag, err := a.flags.Get(ctx, featureflags.Reservations, string(caller.Organization))
	if err != nil || len(flag.Overrides) > 0 {
		return err
	}
	by := featureflags.By{ActorKind: string(caller.Actor.Kind), ActorID: caller.Actor.ID}
	return a.flags.SetOverride(ctx, by, featureflags.Reservations, string(caller.Organization), true)
}

// stock adds those servers of the sample that are not there yet.
func stock(ctx context.Context, a *app, caller identity.Caller) error {
	sample, err := importer.Sample()
	if err != nil {
		return err
	}
	by := inventory.Change{Organization: string(caller.Organization), ActorKind: string(caller.Actor.Kind), ActorID: caller.Actor.ID}
	_, err = a.servers.CreateMany(ctx, by, sample)
	return err
}

// demoScopes are all scopes of one organization.
var demoScopes = []identity.Scope{
	identity.ScopeCheckout, identity.ScopeOrders, identity.ScopeSupport, identity.ScopeOperator, identity.ScopeAdmin,
}

// demoKey gives the key of the last start if this database still accepts it, else a new one.
func demoKey(ctx context.Context, a *app, by identity.Caller, dataDir string) (string, error) {
	text, err := keepsake(dataDir, apiKeyFile)
	if err != nil {
		return "", err
	}
	holder, err := a.keys.Authenticate(ctx, text)
	lacking := holder.Scopes.Missing(identity.NewScopeSet(demoScopes...))
	switch {
	case err == nil && holder.Organization == by.Organization && len(lacking) == 0:
		return text, nil
	case err != nil && !errors.Is(err, identity.ErrUnauthenticated):
		return "", err
	}
	if _, text, err = a.keys.Create(ctx, by, identity.NewKey{Name: "allocator up", Scopes: demoScopes}); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return text, keep(dataDir, apiKeyFile, text)
}
