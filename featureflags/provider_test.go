package featureflags

import (
	"context"
	"testing"

	"github.com/open-feature/go-sdk/openfeature"
	"github.com/open-feature/go-sdk/openfeature/isolated"
	"github.com/stretchr/testify/require"
)

// client gives an OpenFeature client of the provider, as any other part of a company's software would use it.
func client(t *testing.T, provider openfeature.FeatureProvider) *openfeature.Client {
	t.Helper()
	api := isolated.NewAPI()
	require.NoError(t, api.SetProviderAndWait(t.Context(), provider))
	t.Cleanup(func() { require.NoError(t, api.Shutdown(context.WithoutCancel(t.Context()))) })
	return api.NewClient()
}

// Requirements: R62, R63.
func TestProviderAnswersOpenFeature(t *testing.T) {
	t.Parallel()
	flags := New(&storeFake{})
	of := client(t, NewProvider(flags))
	ask := func(org string, fallback bool) openfeature.BooleanEvaluationDetails {
		details, err := of.BooleanValueDetails(t.Context(), Reservations, fallback, openfeature.NewEvaluationContext(org, nil))
		require.NoError(t, err)
		return details
	}

	unread := ask("demo", true)
	require.False(t, unread.Value, "what is not known is off, whatever default the caller would like")
	require.Equal(t, openfeature.UnknownReason, unread.Reason)

	require.NoError(t, flags.SetGlobal(t.Context(), By{}, Reservations, 100))
	everybody := ask("demo", false)
	require.True(t, everybody.Value)
	require.Equal(t, openfeature.StaticReason, everybody.Reason)
	require.Equal(t, "on", everybody.Variant)
	require.True(t, ask("", false).Value, "100 % is everybody, also without an organization")

	require.NoError(t, flags.SetOverride(t.Context(), By{}, Reservations, "demo", false))
	overridden := ask("demo", true)
	require.False(t, overridden.Value)
	require.Equal(t, openfeature.TargetingMatchReason, overridden.Reason)
	require.Equal(t, "off", overridden.Variant)

	require.NoError(t, flags.SetGlobal(t.Context(), By{}, Reservations, 50))
	require.Equal(t, openfeature.SplitReason, ask("other", false).Reason)
	require.NoError(t, flags.DeleteOverride(t.Context(), By{}, Reservations, "demo"))
	require.Equal(t, openfeature.SplitReason, ask("demo", false).Reason)
}

func TestProviderRefusesWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	of := client(t, NewProvider(New(&storeFake{})))
	ctx, none := t.Context(), openfeature.NewTargetlessEvaluationContext(nil)

	unknown, err := of.BooleanValueDetails(ctx, "reservation", true, none)
	require.Error(t, err)
	require.True(t, unknown.Value)
	require.Equal(t, openfeature.FlagNotFoundCode, unknown.ErrorCode)

	text, err := of.StringValueDetails(ctx, Reservations, "x", none)
	require.Error(t, err)
	require.Equal(t, "x", text.Value)
	require.Equal(t, openfeature.TypeMismatchCode, text.ErrorCode)
	number, err := of.IntValueDetails(ctx, Reservations, 7, none)
	require.Error(t, err)
	require.EqualValues(t, 7, number.Value)
	share, err := of.FloatValueDetails(ctx, Reservations, 0.5, none)
	require.Error(t, err)
	require.InDelta(t, 0.5, share.Value, 0)
	object, err := of.ObjectValueDetails(ctx, Reservations, nil, none)
	require.Error(t, err)
	require.Nil(t, object.Value)
}

// Requirements: R62.
func TestSwitchAsksWhateverProviderItIsGiven(t *testing.T) {
	t.Parallel()
	release, err := NewSwitch(t.Context(), &elsewhere{Provider: NewProvider(New(&storeFake{}))})
	require.NoError(t, err)
	defer func() { require.NoError(t, release.Close(context.WithoutCancel(t.Context()))) }()
	require.True(t, release.Enabled(t.Context(), "demo"))
	require.False(t, release.Enabled(t.Context(), "other"))
}

// elsewhere stands for a company's own system of switches.
type elsewhere struct{ *Provider }

func (*elsewhere) BooleanEvaluation(
	_ context.Context, _ string, _ bool, flat openfeature.FlattenedContext,
) openfeature.BoolResolutionDetail {
	return openfeature.BoolResolutionDetail{Value: flat[openfeature.TargetingKey] == "demo"}
}
