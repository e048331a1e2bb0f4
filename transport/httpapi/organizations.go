package httpapi

import (
	"context"

	"allocator/identity"
	"allocator/transport/httpapi/wire"
)

// Organizations creates organizations and keeps their settings.
type Organizations interface {
	// Create adds one. Errors: identity.InvalidError, ErrOrganizationExists.
	Create(ctx context.Context, by identity.Caller, in identity.NewOrganization) (identity.Organization, error)
	// Get reads one. Errors: identity.ErrOrganizationNotFound.
	Get(ctx context.Context, id identity.OrganizationID) (identity.Organization, error)
	// List reads in the order of ids, beginning after one.
	List(ctx context.Context, after identity.OrganizationID, limit int) ([]identity.Organization, error)
	// Update changes one if it is still at ifVersion; 0 is any. Errors: identity.InvalidError, ErrOrganizationNotFound,
	// VersionError.
	Update(
		ctx context.Context, by identity.Caller, id identity.OrganizationID, patch identity.OrganizationPatch, ifVersion int64,
	) (identity.Organization, error)
}

// ListOrganizations implements wire.StrictServerInterface.
func (h *handlers) ListOrganizations(
	ctx context.Context, r wire.ListOrganizationsRequestObject,
) (wire.ListOrganizationsResponseObject, error) {
	p, err := newPage(callerOf(ctx), "organizations", nil, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	after := identity.OrganizationID(p.after)
	if after != "" && !after.Valid() {
		return nil, errPageToken()
	}
	list, err := h.Organizations.List(ctx, after, p.limit+1)
	if err != nil {
		return nil, err
	}
	list, next := cut(p, list, func(o identity.Organization) string { return string(o.ID) })
	return wire.ListOrganizations200JSONResponse{Items: each(list, viewOrganization), NextPageToken: next}, nil
}

// CreateOrganization implements wire.StrictServerInterface.
func (h *handlers) CreateOrganization(
	ctx context.Context, r wire.CreateOrganizationRequestObject,
) (wire.CreateOrganizationResponseObject, error) {
	made, err := h.Organizations.Create(ctx, callerOf(ctx), identity.NewOrganization{
		ID: identity.OrganizationID(r.Body.ID), Name: r.Body.Name, HoldSeconds: r.Body.HoldSeconds, HoldLimit: r.Body.HoldLimit,
	})
	if err != nil {
		return nil, err
	}
	return wire.CreateOrganization201JSONResponse{Body: viewOrganization(made), Headers: wire.CreateOrganization201ResponseHeaders{
		ETag: etag(made.Version), Location: "/v1/organizations/" + string(made.ID),
	}}, nil
}

// GetOrganization implements wire.StrictServerInterface.
func (h *handlers) GetOrganization(
	ctx context.Context, r wire.GetOrganizationRequestObject,
) (wire.GetOrganizationResponseObject, error) {
	o, err := h.Organizations.Get(ctx, identity.OrganizationID(r.OrganizationID))
	if err != nil {
		return nil, err
	}
	return wire.GetOrganization200JSONResponse{
		Body: viewOrganization(o), Headers: wire.GetOrganization200ResponseHeaders{ETag: etag(o.Version)},
	}, nil
}

// UpdateOrganization implements wire.StrictServerInterface.
func (h *handlers) UpdateOrganization(
	ctx context.Context, r wire.UpdateOrganizationRequestObject,
) (wire.UpdateOrganizationResponseObject, error) {
	patch := identity.OrganizationPatch{
		Name: r.Body.Name, HoldSeconds: r.Body.HoldSeconds, HoldLimit: r.Body.HoldLimit, Closing: r.Body.Closing,
	}
	id := identity.OrganizationID(r.OrganizationID)
	o, err := h.Organizations.Update(ctx, callerOf(ctx), id, patch, version(r.Params.IfMatch))
	if err != nil {
		return nil, err
	}
	return wire.UpdateOrganization200JSONResponse{
		Body: viewOrganization(o), Headers: wire.UpdateOrganization200ResponseHeaders{ETag: etag(o.Version)},
	}, nil
}

func viewOrganization(o identity.Organization) wire.Organization {
	return wire.Organization{
		ID: string(o.ID), Name: o.Name, HoldSeconds: o.HoldSeconds, HoldLimit: o.HoldLimit, Closing: o.Closing,
		CreatedAt: o.CreatedAt.UTC(), UpdatedAt: o.UpdatedAt.UTC(),
	}
}
