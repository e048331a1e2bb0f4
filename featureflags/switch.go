package featureflags

import (
	"context"
	"fmt"

	"github.com/open-feature/go-sdk/openfeature"
	"github.com/open-feature/go-sdk/openfeature/isolated"
)

// Switch is the Reservations switch as the allocator asks it: through OpenFeature, of whatever provider it was given.
// It shares nothing with other users of OpenFeature in the process. Safe for concurrent use.
type Switch struct {
	api    *openfeature.EvaluationAPI
	client *openfeature.Client
}

// NewSwitch makes the switch over a provider, usually NewProvider's, and waits until that is ready. Close it in the end.
func NewSwitch(ctx context.Context, provider openfeature.FeatureProvider) (*Switch, error) {
	api := isolated.NewAPI()
	if err := api.SetProviderAndWait(ctx, provider); err != nil {
		return nil, fmt.Errorf("the provider of the release switch did not start: %w", err)
	}
	return &Switch{api: api, client: api.NewClient()}, nil
}

// Enabled tells whether the organization may make new reservations. An empty id stands for no organization. It asks no
// database and cannot fail: what cannot be told is off. A request asks once and goes by that answer to its end.
func (s *Switch) Enabled(ctx context.Context, organizationID string) bool {
	return s.client.Boolean(ctx, Reservations, false, openfeature.NewEvaluationContext(organizationID, nil))
}

// Close lets go of the provider.
func (s *Switch) Close(ctx context.Context) error { return s.api.Shutdown(ctx) }
