package main

import (
	"context"
	"errors"

	"allocator/client"
	"allocator/identity"
	"allocator/store/postgres"
)

// administration is what orgs, keys and flags ask for, in the words of the HTTP answers, so that --json prints the same
// however it was asked.
type administration interface {
	Organizations(ctx context.Context) ([]client.Organization, error)
	Organization(ctx context.Context, id string) (client.Organization, error)
	CreateOrganization(ctx context.Context, wanted client.NewOrganization) (client.Organization, error)
	UpdateOrganization(ctx context.Context, id string, patch client.OrganizationPatch) (client.Organization, error)

	Keys(ctx context.Context) ([]client.Key, error)
	CreateKey(ctx context.Context, wanted client.NewKey) (client.CreatedKey, error)
	RevokeKey(ctx context.Context, id string) (client.Key, error)

	Flags(ctx context.Context) ([]client.Flag, error)
	SetFlag(ctx context.Context, key string, percent int) (client.Flag, error)
	SetOverride(ctx context.Context, key, org string, enabled bool) (client.FlagOverride, error)
	DeleteOverride(ctx context.Context, key, org string) error
}

// adminSettings choose the way: the database itself if its URL is given, else the service.
type adminSettings struct {
	databaseSettings
	clientSettings
}

// administer runs do over the one way or the other. org is whose keys are meant; over HTTP the API key decides that.
func (s *adminSettings) administer(ctx context.Context, org string, do func(a administration) error) (err error) {
	if s.DatabaseURL == "" {
		api, err := s.client()
		if err != nil {
			return err
		}
		return do(&remoteAdministration{api})
	}
	db, err := connect(ctx, s.databaseSettings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close(ctx)) }()
	if err := postgres.CheckServer(ctx, db.pool); err != nil {
		return err
	}
	return do(newLocalAdministration(db.pool, identity.LocalCaller(identity.OrganizationID(org), localPerson())))
}
