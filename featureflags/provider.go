package featureflags

import (
	"context"
	"slices"

	"github.com/open-feature/go-sdk/openfeature"
)

// Provider answers OpenFeature evaluations from Flags. The targeting key of an evaluation is the organization's id.
//
// Every switch is a boolean, and what is not known is off: the default value that a caller passes along is used for an
// unknown switch only, as OpenFeature demands.
type Provider struct {
	flags *Flags
}

// NewProvider makes a provider over the service.
func NewProvider(flags *Flags) *Provider { return &Provider{flags: flags} }

// Metadata names the provider.
func (p *Provider) Metadata() openfeature.Metadata {
	return openfeature.Metadata{Name: "allocator-postgresql"}
}

// Hooks are none.
func (p *Provider) Hooks() []openfeature.Hook { return nil }

// BooleanEvaluation gives a switch's value for the organization, from memory.
func (p *Provider) BooleanEvaluation(
	_ context.Context, key string, defaultValue bool, flat openfeature.FlattenedContext,
) openfeature.BoolResolutionDetail {
	if mustExist(key) != nil {
		return unresolved(defaultValue, openfeature.NewFlagNotFoundResolutionError(ErrUnknownFlag.Error()))
	}
	organizationID, _ := flat[openfeature.TargetingKey].(string)
	flag, known := p.flags.value(key)
	on := flag.EnabledFor(organizationID)

	detail := openfeature.BoolResolutionDetail{Value: on}
	detail.Variant = variant(on)
	detail.Reason = reason(flag, known, organizationID)
	return detail
}

func variant(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// reason says where a value came from.
func reason(flag Flag, known bool, organizationID string) openfeature.Reason {
	overridden := slices.ContainsFunc(flag.Overrides, func(o Override) bool { return o.OrganizationID == organizationID })
	switch {
	case !known:
		return openfeature.UnknownReason
	case overridden:
		return openfeature.TargetingMatchReason
	case flag.Percent > 0 && flag.Percent < 100:
		return openfeature.SplitReason
	default:
		return openfeature.StaticReason
	}
}

// StringEvaluation refuses: no switch is a text.
func (p *Provider) StringEvaluation(
	_ context.Context, _ string, defaultValue string, _ openfeature.FlattenedContext,
) openfeature.StringResolutionDetail {
	return unresolved(defaultValue, errNotBoolean)
}

// FloatEvaluation refuses: no switch is a number.
func (p *Provider) FloatEvaluation(
	_ context.Context, _ string, defaultValue float64, _ openfeature.FlattenedContext,
) openfeature.FloatResolutionDetail {
	return unresolved(defaultValue, errNotBoolean)
}

// IntEvaluation refuses: no switch is a number.
func (p *Provider) IntEvaluation(
	_ context.Context, _ string, defaultValue int64, _ openfeature.FlattenedContext,
) openfeature.IntResolutionDetail {
	return unresolved(defaultValue, errNotBoolean)
}

// ObjectEvaluation refuses: no switch is an object.
func (p *Provider) ObjectEvaluation(
	_ context.Context, _ string, defaultValue any, _ openfeature.FlattenedContext,
) openfeature.InterfaceResolutionDetail {
	return unresolved(defaultValue, errNotBoolean)
}

var errNotBoolean = openfeature.NewTypeMismatchResolutionError("every switch is a boolean: ask for a boolean")

func unresolved[T any](defaultValue T, why openfeature.ResolutionError) openfeature.GenericResolutionDetail[T] {
	detail := openfeature.GenericResolutionDetail[T]{Value: defaultValue}
	detail.ResolutionError = why
	detail.Reason = openfeature.ErrorReason
	return detail
}
