package httpapi

import (
	"context"
	"time"

	"allocator/identity"
	"allocator/lease"
	"allocator/transport/httpapi/wire"
)

// Leases keeps edit leases. Errors of all: lease.InvalidError, and of all but the last two lease.ErrEditRefused.
type Leases interface {
	// Acquire grants or renews one. Errors: lease.HeldError, ErrCeiling.
	Acquire(ctx context.Context, w lease.Writer, key lease.Key, seconds int64) (lease.Granted, error)
	// Heartbeat keeps one. Errors: lease.LostError, HeldError, ErrCeiling.
	Heartbeat(ctx context.Context, w lease.Writer, key lease.Key, seconds int64) (lease.Granted, error)
	// TakeOver takes one from others. Errors: lease.HeldError, ErrCeiling.
	TakeOver(ctx context.Context, w lease.Writer, key lease.Key, seconds int64, reason string) (lease.TakeOver, error)
	// Presence tells who edits a resource.
	Presence(ctx context.Context, w lease.Writer, resource string) (lease.Presence, error)
	// Release gives one back.
	Release(ctx context.Context, w lease.Writer, key lease.Key) (lease.Released, error)
	// Leave gives everything of a resource back.
	Leave(ctx context.Context, w lease.Writer, resource string) ([]lease.Lease, error)
}

// holderID is who works: the key, and whom its user says to be. A stated name counts within its key alone, so that nobody
// can pass for somebody who works with another.
func holderID(caller identity.Caller, stated string) string {
	if stated == "" {
		return caller.Actor.ID
	}
	return caller.Actor.ID + "/" + stated
}

func writerOf(ctx context.Context, stated, name string) lease.Writer {
	caller := callerOf(ctx)
	return lease.Writer{
		Organization: string(caller.Organization), Holder: lease.Holder{ID: holderID(caller, stated), Name: name},
		Credential: string(caller.KeyID), Rights: caller.Scopes.Names(),
		ActorKind: string(caller.Actor.Kind), ActorID: caller.Actor.ID, RequestID: caller.RequestID,
	}
}

// leaseKey is what a lease is on. No part is the whole; an empty one is refused by the contract, since a mistake would take
// too much.
func leaseKey(resource string, part *string) lease.Key {
	key := lease.Key{Resource: resource}
	if part != nil {
		key.Part = *part
	}
	return key
}

// AcquireLease implements wire.StrictServerInterface.
func (h *handlers) AcquireLease(ctx context.Context, r wire.AcquireLeaseRequestObject) (wire.AcquireLeaseResponseObject, error) {
	key := leaseKey(r.Resource, r.Params.Part)
	got, err := h.Leases.Acquire(ctx, writerOf(ctx, r.Params.LeaseHolder, r.Body.Name), key, r.Body.Seconds)
	if err != nil {
		return nil, err
	}
	return wire.AcquireLease200JSONResponse(viewLease(got.Lease, got.Now)), nil
}

// KeepLease implements wire.StrictServerInterface.
func (h *handlers) KeepLease(ctx context.Context, r wire.KeepLeaseRequestObject) (wire.KeepLeaseResponseObject, error) {
	key := leaseKey(r.Resource, r.Params.Part)
	got, err := h.Leases.Heartbeat(ctx, writerOf(ctx, r.Params.LeaseHolder, r.Body.Name), key, r.Body.Seconds)
	if err != nil {
		return nil, err
	}
	return wire.KeepLease200JSONResponse(viewLease(got.Lease, got.Now)), nil
}

// TakeOverLease implements wire.StrictServerInterface.
func (h *handlers) TakeOverLease(ctx context.Context, r wire.TakeOverLeaseRequestObject) (wire.TakeOverLeaseResponseObject, error) {
	key := leaseKey(r.Resource, r.Params.Part)
	got, err := h.Leases.TakeOver(ctx, writerOf(ctx, r.Params.LeaseHolder, r.Body.Name), key, r.Body.Seconds, r.Body.Reason)
	if err != nil {
		return nil, err
	}
	return wire.TakeOverLease200JSONResponse{Lease: viewLease(got.Lease, got.Now), Removed: viewLeases(got.Removed, got.Now)}, nil
}

// ReleaseLease implements wire.StrictServerInterface.
func (h *handlers) ReleaseLease(ctx context.Context, r wire.ReleaseLeaseRequestObject) (wire.ReleaseLeaseResponseObject, error) {
	key := leaseKey(r.Resource, r.Params.Part)
	back, err := h.Leases.Release(ctx, writerOf(ctx, r.Params.LeaseHolder, ""), key)
	if err != nil {
		return nil, err
	}
	return wire.ReleaseLease200JSONResponse{Released: back.Held, Lapsed: back.Lapsed}, nil
}

// LeaveResource implements wire.StrictServerInterface.
func (h *handlers) LeaveResource(ctx context.Context, r wire.LeaveResourceRequestObject) (wire.LeaveResourceResponseObject, error) {
	left, err := h.Leases.Leave(ctx, writerOf(ctx, r.Params.LeaseHolder, ""), r.Resource)
	if err != nil {
		return nil, err
	}
	return wire.LeaveResource200JSONResponse{Leases: viewLeases(left, time.Time{})}, nil
}

func viewLeases(list []lease.Lease, now time.Time) []wire.Lease {
	return each(list, func(l lease.Lease) wire.Lease { return viewLease(l, now) })
}

// viewLease shows a lease as it is at an instant; at none, it is over.
func viewLease(l lease.Lease, now time.Time) wire.Lease {
	view := wire.Lease{
		Resource: l.Key.Resource, Part: l.Key.Part, Holder: wire.LeaseOwner{ID: l.Holder.ID, Name: l.Holder.Name},
		AcquiredAt: l.AcquiredAt.UTC(), ExpiresAt: l.ExpiresAt.UTC(),
	}
	if !now.IsZero() {
		view.SecondsLeft = l.SecondsLeftAt(now)
	}
	return view
}
