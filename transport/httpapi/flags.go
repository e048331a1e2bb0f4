package httpapi

import (
	"context"
	"slices"
	"time"

	"allocator/featureflags"
	"allocator/identity"
	"allocator/transport/httpapi/wire"
)

// Flags sets the release switches and shows them.
type Flags interface {
	// List reads every switch, with the overrides of one organization, or of all if none is named.
	List(ctx context.Context, organizationID string) ([]featureflags.Flag, error)
	// Get reads one as List does. Errors: featureflags.ErrUnknownFlag.
	Get(ctx context.Context, key, organizationID string) (featureflags.Flag, error)
	// SetGlobal sets the global value. Errors: featureflags.ErrUnknownFlag, ErrPercentOutOfRange.
	SetGlobal(ctx context.Context, by featureflags.By, key string, percent int) error
	// SetOverride sets an organization's value. Errors: featureflags.ErrUnknownFlag, ErrOrganizationNotFound.
	SetOverride(ctx context.Context, by featureflags.By, key, organizationID string, enabled bool) error
	// DeleteOverride lets the global value hold again. Errors: featureflags.ErrUnknownFlag, ErrOverrideNotFound.
	DeleteOverride(ctx context.Context, by featureflags.By, key, organizationID string) error
}

func flagBy(caller identity.Caller) featureflags.By {
	return featureflags.By{ActorKind: string(caller.Actor.Kind), ActorID: caller.Actor.ID, RequestID: caller.RequestID}
}

// visibleOverrides names the organization whose overrides the caller sees; empty is all of them.
func visibleOverrides(caller identity.Caller) string {
	if caller.Scopes.Has(identity.ScopePlatform) {
		return ""
	}
	return string(caller.Organization)
}

// mayOverride keeps an admin to its own organization: another one is answered as if it were not there.
func mayOverride(caller identity.Caller, organizationID string) error {
	if caller.Scopes.Has(identity.ScopePlatform) || string(caller.Organization) == organizationID {
		return nil
	}
	return featureflags.ErrOverrideNotFound
}

// ListFlags implements wire.StrictServerInterface.
func (h *handlers) ListFlags(ctx context.Context, _ wire.ListFlagsRequestObject) (wire.ListFlagsResponseObject, error) {
	caller := callerOf(ctx)
	list, err := h.Flags.List(ctx, visibleOverrides(caller))
	if err != nil {
		return nil, err
	}
	views := each(list, func(f featureflags.Flag) wire.Flag { return viewFlag(caller, f) })
	return wire.ListFlags200JSONResponse{Items: views}, nil
}

// GetFlag implements wire.StrictServerInterface.
func (h *handlers) GetFlag(ctx context.Context, r wire.GetFlagRequestObject) (wire.GetFlagResponseObject, error) {
	caller := callerOf(ctx)
	f, err := h.Flags.Get(ctx, r.FlagKey, visibleOverrides(caller))
	if err != nil {
		return nil, err
	}
	return wire.GetFlag200JSONResponse(viewFlag(caller, f)), nil
}

// SetFlag implements wire.StrictServerInterface.
func (h *handlers) SetFlag(ctx context.Context, r wire.SetFlagRequestObject) (wire.SetFlagResponseObject, error) {
	caller := callerOf(ctx)
	if err := h.Flags.SetGlobal(ctx, flagBy(caller), r.FlagKey, r.Body.Percent); err != nil {
		return nil, err
	}
	f, err := h.Flags.Get(ctx, r.FlagKey, visibleOverrides(caller))
	if err != nil {
		return nil, err
	}
	return wire.SetFlag200JSONResponse(viewFlag(caller, f)), nil
}

// GetFlagOverride implements wire.StrictServerInterface.
func (h *handlers) GetFlagOverride(
	ctx context.Context, r wire.GetFlagOverrideRequestObject,
) (wire.GetFlagOverrideResponseObject, error) {
	view, err := h.override(ctx, r.FlagKey, r.OrganizationID)
	return wire.GetFlagOverride200JSONResponse(view), err
}

// SetFlagOverride implements wire.StrictServerInterface.
func (h *handlers) SetFlagOverride(
	ctx context.Context, r wire.SetFlagOverrideRequestObject,
) (wire.SetFlagOverrideResponseObject, error) {
	caller := callerOf(ctx)
	if err := mayOverride(caller, r.OrganizationID); err != nil {
		return nil, err
	}
	if err := h.Flags.SetOverride(ctx, flagBy(caller), r.FlagKey, r.OrganizationID, r.Body.Enabled); err != nil {
		return nil, err
	}
	view, err := h.override(ctx, r.FlagKey, r.OrganizationID)
	return wire.SetFlagOverride200JSONResponse(view), err
}

// DeleteFlagOverride implements wire.StrictServerInterface.
func (h *handlers) DeleteFlagOverride(
	ctx context.Context, r wire.DeleteFlagOverrideRequestObject,
) (wire.DeleteFlagOverrideResponseObject, error) {
	caller := callerOf(ctx)
	if err := mayOverride(caller, r.OrganizationID); err != nil {
		return nil, err
	}
	err := h.Flags.DeleteOverride(ctx, flagBy(caller), r.FlagKey, r.OrganizationID)
	return wire.DeleteFlagOverride204Response{}, err
}

// override reads one organization's own value.
func (h *handlers) override(ctx context.Context, key, organizationID string) (wire.FlagOverride, error) {
	if err := mayOverride(callerOf(ctx), organizationID); err != nil {
		return wire.FlagOverride{}, err
	}
	f, err := h.Flags.Get(ctx, key, organizationID)
	if err != nil {
		return wire.FlagOverride{}, err
	}
	i := slices.IndexFunc(f.Overrides, func(o featureflags.Override) bool { return o.OrganizationID == organizationID })
	if i < 0 {
		return wire.FlagOverride{}, featureflags.ErrOverrideNotFound
	}
	return viewOverride(f.Overrides[i]), nil
}

func viewFlag(caller identity.Caller, f featureflags.Flag) wire.Flag {
	at, by := viewChange(f.Changed)
	return wire.Flag{
		Key: f.Key, Purpose: f.Purpose, Percent: f.Percent, Enabled: f.EnabledFor(string(caller.Organization)),
		ChangedAt: at, ChangedBy: by, Overrides: each(f.Overrides, viewOverride),
	}
}

func viewOverride(o featureflags.Override) wire.FlagOverride {
	at, by := viewChange(o.Changed)
	return wire.FlagOverride{OrganizationID: o.OrganizationID, Enabled: o.Enabled, ChangedAt: at, ChangedBy: by}
}

func viewChange(c featureflags.Change) (time.Time, wire.Actor) {
	if c.At.IsZero() {
		return time.Time{}, wire.Actor{}
	}
	return c.At.UTC(), wire.Actor{Kind: c.ActorKind, ID: c.ActorID}
}
