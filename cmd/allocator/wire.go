package main

import (
	"time"

	"allocator/client"
	"allocator/featureflags"
	"allocator/identity"
)

// Records read from the database itself, in the words of the HTTP answers.

func wireOrganization(o identity.Organization) client.Organization {
	return client.Organization{
		ID: string(o.ID), Name: o.Name, HoldSeconds: o.HoldSeconds, HoldLimit: o.HoldLimit, Closing: o.Closing,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
	}
}

func wireKey(k identity.Key) client.Key {
	key := client.Key{
		ID: string(k.ID), Name: k.Name, Scopes: []client.Scope{}, CreatedAt: k.CreatedAt, CreatedBy: wireActor(k.CreatedBy),
		ExpiresAt: orZero(k.ExpiresAt), LastUsedAt: orZero(k.LastUsedAt), RevokedAt: orZero(k.RevokedAt),
	}
	for _, scope := range k.Scopes.List() {
		key.Scopes = append(key.Scopes, client.Scope(scope))
	}
	if k.RevokedBy != nil {
		key.RevokedBy = wireActor(*k.RevokedBy)
	}
	return key
}

func createdKey(k client.Key, text string) client.CreatedKey {
	return client.CreatedKey{
		ID: k.ID, Name: k.Name, Scopes: k.Scopes, CreatedAt: k.CreatedAt, CreatedBy: k.CreatedBy, ExpiresAt: k.ExpiresAt, Key: text,
	}
}

func wireFlag(f featureflags.Flag) client.Flag {
	return client.Flag{
		Key: f.Key, Purpose: f.Purpose, Percent: f.Percent, Enabled: f.EnabledFor(""), Overrides: mapped(f.Overrides, wireOverride),
		ChangedAt: f.Changed.At, ChangedBy: client.Actor{Kind: f.Changed.ActorKind, ID: f.Changed.ActorID},
	}
}

func wireOverride(o featureflags.Override) client.FlagOverride {
	return client.FlagOverride{
		OrganizationID: o.OrganizationID, Enabled: o.Enabled, ChangedAt: o.Changed.At,
		ChangedBy: client.Actor{Kind: o.Changed.ActorKind, ID: o.Changed.ActorID},
	}
}

func wireActor(a identity.Actor) client.Actor { return client.Actor{Kind: string(a.Kind), ID: a.ID} }

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
