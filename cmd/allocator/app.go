package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/allocation"
	"allocator/events"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
	"allocator/reservation"
	"allocator/store/postgres"
)

// app is the services of the product over one database.
type app struct {
	pool          *pgxpool.Pool
	organizations *identity.Organizations
	keys          *identity.Keys
	flags         *featureflags.Flags
	release       *featureflags.Switch
	audit         *events.Audit
	servers       *inventory.Service
	allocator     *allocation.Allocator
	reservations  *reservation.Service
	leaseStore    *postgres.Leases
	leases        *lease.Service
}

// appOptions settle what differs between processes.
type appOptions struct {
	tokens  reservation.TokenKeys
	minHold time.Duration // the shortest hold time an organization may have; 0: identity.MinHoldTime
	ceiling time.Duration // how long heartbeats keep an edit lease; 0: for ever
}

// newApp wires the services. The release switch knows its values before the first request is served.
func newApp(ctx context.Context, pool *pgxpool.Pool, o appOptions) (*app, error) {
	if o.minHold == 0 {
		o.minHold = identity.MinHoldTime
	}
	flags := featureflags.New(postgres.NewFlags(pool))
	if err := flags.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("read the release switch: %w", err)
	}
	release, err := featureflags.NewSwitch(ctx, featureflags.NewProvider(flags))
	if err != nil {
		return nil, err
	}
	allocator := allocation.New(postgres.NewAllocations(pool), releaseSwitch{release}, o.tokens,
		allocation.NotingEdits(postgres.NewUnderEdit(pool)))
	leaseStore := postgres.NewLeases(pool)
	return &app{
		pool:          pool,
		organizations: identity.NewOrganizations(postgres.NewOrganizations(pool), o.minHold),
		keys:          identity.NewKeys(postgres.NewKeys(pool), time.Now),
		flags:         flags,
		release:       release,
		audit:         events.NewAudit(postgres.NewAudit(pool), time.Now),
		servers:       inventory.NewService(postgres.NewServers(pool)),
		allocator:     allocator,
		reservations:  reservation.NewService(postgres.NewReservations(pool), o.tokens).WatchedBy(allocator.Watcher()),
		leaseStore:    leaseStore,
		leases: lease.NewService(leaseStore, postgres.NewLeasePolicy(pool), lease.Ceiling(o.ceiling),
			lease.ReadPresenceBy(postgres.NewLeasePresence(pool))),
	}, nil
}

func (a *app) close(ctx context.Context) error { return a.release.Close(ctx) }

// releaseSwitch lets the allocator, which knows organizations, ask a switch, which knows texts.
type releaseSwitch struct{ *featureflags.Switch }

// Enabled implements allocation.Switch.
func (s releaseSwitch) Enabled(ctx context.Context, org identity.OrganizationID) bool {
	return s.Switch.Enabled(ctx, string(org))
}

// parseTokenKeys says how to make keys when there are none.
func parseTokenKeys(text secret) (reservation.TokenKeys, error) {
	if text == "" {
		return reservation.TokenKeys{}, usagef("%s", "ALLOCATOR_HOLD_TOKEN_KEYS is not set, so hold tokens could not be signed: "+
			`make a key once, keep it, and give every replica the same: ALLOCATOR_HOLD_TOKEN_KEYS="k1:$(openssl rand -hex 32)"`)
	}
	keys, err := reservation.ParseTokenKeys(string(text))
	if err != nil {
		return keys, usagef("ALLOCATOR_HOLD_TOKEN_KEYS: %v", err)
	}
	return keys, nil
}
