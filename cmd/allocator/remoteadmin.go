package main

import (
	"context"

	"allocator/client"
)

// remoteAdministration asks the service, whose key decides what may be done.
type remoteAdministration struct{ api *client.ClientWithResponses }

func (a *remoteAdministration) Organizations(ctx context.Context) ([]client.Organization, error) {
	return everyItem(0, func(token string) ([]client.Organization, string, error) {
		res, err := a.api.ListOrganizationsWithResponse(ctx, &client.ListOrganizationsParams{PageSize: listPage, PageToken: token})
		if err != nil {
			return nil, "", err
		}
		page, err := value(res.JSON200)
		return page.Items, page.NextPageToken, err
	})
}

func (a *remoteAdministration) Organization(ctx context.Context, id string) (client.Organization, error) {
	res, err := a.api.GetOrganizationWithResponse(ctx, id)
	if err != nil {
		return client.Organization{}, err
	}
	return value(res.JSON200)
}

func (a *remoteAdministration) CreateOrganization(ctx context.Context, in client.NewOrganization) (client.Organization, error) {
	res, err := a.api.CreateOrganizationWithResponse(ctx, in)
	if err != nil {
		return client.Organization{}, err
	}
	return value(res.JSON201)
}

func (a *remoteAdministration) UpdateOrganization(
	ctx context.Context, id string, patch client.OrganizationPatch,
) (client.Organization, error) {
	res, err := a.api.UpdateOrganizationWithResponse(ctx, id, &client.UpdateOrganizationParams{IfMatch: "*"}, patch)
	if err != nil {
		return client.Organization{}, err
	}
	return value(res.JSON200)
}

func (a *remoteAdministration) Keys(ctx context.Context) ([]client.Key, error) {
	return everyItem(0, func(token string) ([]client.Key, string, error) {
		res, err := a.api.ListKeysWithResponse(ctx, &client.ListKeysParams{PageSize: listPage, PageToken: token})
		if err != nil {
			return nil, "", err
		}
		page, err := value(res.JSON200)
		return page.Items, page.NextPageToken, err
	})
}

func (a *remoteAdministration) CreateKey(ctx context.Context, in client.NewKey) (client.CreatedKey, error) {
	res, err := a.api.CreateKeyWithResponse(ctx, in)
	if err != nil {
		return client.CreatedKey{}, err
	}
	return value(res.JSON201)
}

func (a *remoteAdministration) RevokeKey(ctx context.Context, id string) (client.Key, error) {
	res, err := a.api.RevokeKeyWithResponse(ctx, id)
	if err != nil {
		return client.Key{}, err
	}
	return value(res.JSON200)
}

func (a *remoteAdministration) Flags(ctx context.Context) ([]client.Flag, error) {
	res, err := a.api.ListFlagsWithResponse(ctx)
	if err != nil {
		return nil, err
	}
	list, err := value(res.JSON200)
	return list.Items, err
}

func (a *remoteAdministration) SetFlag(ctx context.Context, key string, percent int) (client.Flag, error) {
	res, err := a.api.SetFlagWithResponse(ctx, key, client.FlagValue{Percent: percent})
	if err != nil {
		return client.Flag{}, err
	}
	return value(res.JSON200)
}

func (a *remoteAdministration) SetOverride(ctx context.Context, key, org string, enabled bool) (client.FlagOverride, error) {
	res, err := a.api.SetFlagOverrideWithResponse(ctx, key, org, client.FlagOverrideValue{Enabled: enabled})
	if err != nil {
		return client.FlagOverride{}, err
	}
	return value(res.JSON200)
}

func (a *remoteAdministration) DeleteOverride(ctx context.Context, key, org string) error {
	_, err := a.api.DeleteFlagOverrideWithResponse(ctx, key, org)
	return err
}
