package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"allocator/allocation"
	"allocator/identity"
	"allocator/store/postgres"
	"allocator/transport/httpapi"
)

// organizationsAtATime is how many organizations are listed at once.
const organizationsAtATime = 100

// warming reads the inventories before the service says that it is ready, since the first request for a large one would
// wait longer than its caller. Whoever asks earlier is served all the same. It implements httpapi.Readiness.
type warming struct {
	health        *postgres.Health
	organizations *identity.Organizations
	allocator     *allocation.Allocator
	read          atomic.Int64 // inventories so far
	over          atomic.Bool
}

func newWarming(a *app) *warming {
	return &warming{health: postgres.NewHealth(a.pool), organizations: a.organizations, allocator: a.allocator}
}

// Run reads every inventory once. What cannot be read is left to the first request that needs it: a catalog is a help and
// never needed, so the service does not wait for it longer than that.
func (w *warming) Run(ctx context.Context, log *slog.Logger) {
	defer w.over.Store(true)
	began := time.Now()
	for after, more := identity.OrganizationID(""), true; more; {
		page, err := w.organizations.List(ctx, after, organizationsAtATime)
		if err != nil {
			log.WarnContext(ctx, "the inventories are not read ahead: requests do it", "error", err)
			return
		}
		for _, o := range page {
			if err := w.allocator.Warm(ctx, o.ID); err != nil {
				log.WarnContext(ctx, "an inventory is not read ahead: its first request does it", "organization", o.ID, "error", err)
				if ctx.Err() != nil {
					return
				}
			}
			w.read.Add(1)
			after = o.ID
		}
		more = len(page) == organizationsAtATime
	}
	log.InfoContext(ctx, "the inventories are read", "organizations", w.read.Load(), "seconds", time.Since(began).Seconds())
}

// Ready implements httpapi.Readiness.
func (w *warming) Ready(ctx context.Context) error {
	if err := w.health.Ready(ctx); err != nil {
		return err
	}
	if !w.over.Load() {
		return httpapi.NotYetError(fmt.Sprintf("The inventories are being read, %d so far: this process takes requests when it knows them.", w.read.Load()))
	}
	return nil
}
