package httpapi

import (
	"context"
	"time"

	"allocator/identity"
	"allocator/transport/httpapi/wire"
)

// Keys makes, shows and revokes API keys.
type Keys interface {
	// Create makes one and returns its text. Errors: identity.InvalidError, ScopeError.
	Create(ctx context.Context, by identity.Caller, in identity.NewKey) (identity.Key, string, error)
	// Get reads one. Errors: identity.ErrKeyNotFound.
	Get(ctx context.Context, by identity.Caller, id identity.KeyID) (identity.Key, error)
	// List reads oldest first, beginning after one.
	List(ctx context.Context, by identity.Caller, after identity.KeyID, limit int) ([]identity.Key, error)
	// Revoke ends one for ever. Errors: identity.ErrKeyNotFound.
	Revoke(ctx context.Context, by identity.Caller, id identity.KeyID) (identity.Key, error)
}

// ListKeys implements wire.StrictServerInterface.
func (h *handlers) ListKeys(ctx context.Context, r wire.ListKeysRequestObject) (wire.ListKeysResponseObject, error) {
	p, err := newPage(callerOf(ctx), "keys", nil, r.Params.PageSize, r.Params.PageToken)
	if err != nil {
		return nil, err
	}
	if !p.isID("key_") {
		return nil, errPageToken()
	}
	list, err := h.Keys.List(ctx, callerOf(ctx), identity.KeyID(p.after), p.limit+1)
	if err != nil {
		return nil, err
	}
	list, next := cut(p, list, func(k identity.Key) string { return string(k.ID) })
	return wire.ListKeys200JSONResponse{Items: each(list, viewKey), NextPageToken: next}, nil
}

// CreateKey implements wire.StrictServerInterface. Its answer is the only place where a key's text ever stands.
func (h *handlers) CreateKey(ctx context.Context, r wire.CreateKeyRequestObject) (wire.CreateKeyResponseObject, error) {
	in := identity.NewKey{
		Name: r.Body.Name, Scopes: each(r.Body.Scopes, func(s wire.Scope) identity.Scope { return identity.Scope(s) }),
		ExpiresAt: timeOrNil(r.Body.ExpiresAt),
	}
	made, text, err := h.Keys.Create(ctx, callerOf(ctx), in)
	if err != nil {
		return nil, err
	}
	note(ctx, "key_id", made.ID)
	k := viewKey(made)
	return wire.CreateKey201JSONResponse{
		Body: wire.CreatedKey{
			ID: k.ID, Name: k.Name, Scopes: k.Scopes, CreatedAt: k.CreatedAt, CreatedBy: k.CreatedBy, ExpiresAt: k.ExpiresAt, Key: text,
		},
		Headers: wire.CreateKey201ResponseHeaders{Location: "/v1/keys/" + k.ID},
	}, nil
}

// GetKey implements wire.StrictServerInterface.
func (h *handlers) GetKey(ctx context.Context, r wire.GetKeyRequestObject) (wire.GetKeyResponseObject, error) {
	k, err := h.Keys.Get(ctx, callerOf(ctx), identity.KeyID(r.KeyID))
	if err != nil {
		return nil, err
	}
	return wire.GetKey200JSONResponse(viewKey(k)), nil
}

// RevokeKey implements wire.StrictServerInterface.
func (h *handlers) RevokeKey(ctx context.Context, r wire.RevokeKeyRequestObject) (wire.RevokeKeyResponseObject, error) {
	k, err := h.Keys.Revoke(ctx, callerOf(ctx), identity.KeyID(r.KeyID))
	if err != nil {
		return nil, err
	}
	return wire.RevokeKey200JSONResponse(viewKey(k)), nil
}

func viewKey(k identity.Key) wire.Key {
	return wire.Key{
		ID: string(k.ID), Name: k.Name, Scopes: each(k.Scopes.List(), func(s identity.Scope) wire.Scope { return wire.Scope(s) }),
		CreatedAt: k.CreatedAt.UTC(), CreatedBy: viewActor(&k.CreatedBy), ExpiresAt: viewTime(k.ExpiresAt),
		LastUsedAt: viewTime(k.LastUsedAt), RevokedAt: viewTime(k.RevokedAt), RevokedBy: viewActor(k.RevokedBy),
	}
}

func timeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}
