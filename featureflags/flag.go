package featureflags

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Reservations is the release switch of the whole module: while it is off for an organization, nobody makes a new
// reservation or evaluation for it. It goes away once every organization has run with it on for a release; until then
// the product's owner keeps it.
const Reservations = "reservations"

// purposes names every switch there is, and what it is for.
var purposes = map[string]string{
	Reservations: "new reservations and evaluations of dedicated servers",
}

// Keys lists every switch there is.
func Keys() []string { return []string{Reservations} }

// The ways in which a wish about a switch is refused.
var (
	ErrUnknownFlag          = errors.New("there is no switch with this name")
	ErrPercentOutOfRange    = errors.New("the percentage of a switch lies between 0 (nobody) and 100 (everybody)")
	ErrOrganizationNotFound = errors.New("no organization has this id")
	ErrOverrideNotFound     = errors.New("the organization has no override of this switch")
)

// By says who sets a switch, and in which request, for the audit trail.
type By struct {
	ActorKind string
	ActorID   string
	RequestID string
}

// Change says when something was set last, and by whom.
type Change struct {
	At        time.Time // the database's clock; zero: never
	ActorKind string
	ActorID   string
}

// Flag is one switch as it is set.
type Flag struct {
	Key       string
	Purpose   string
	Percent   int // the global value: of how many in a hundred organizations it is on
	Changed   Change
	Overrides []Override // in the order of their organizations' ids
}

// Override is an organization's own value of a switch, which wins over the global one both ways.
type Override struct {
	OrganizationID string
	Enabled        bool
	Changed        Change
}

// EnabledFor gives the value that holds for the organization, if its override is among Overrides or it has none.
func (f Flag) EnabledFor(organizationID string) bool {
	i := slices.IndexFunc(f.Overrides, func(o Override) bool { return o.OrganizationID == organizationID })
	if i >= 0 {
		return f.Overrides[i].Enabled
	}
	return inPercentage(f.Key, organizationID, f.Percent)
}

// Store keeps what was set. Each write leaves an entry in the audit trail, in the same transaction: of the organization
// for an override, of the platform for the global value.
type Store interface {
	// Flags reads every switch that was ever set, global values and overrides as of one instant. Purpose stays empty.
	Flags(ctx context.Context) ([]Flag, error)
	// SetFlag sets the global value.
	SetFlag(ctx context.Context, by By, key string, percent int) error
	// SetFlagOverride sets an organization's value, or answers ErrOrganizationNotFound.
	SetFlagOverride(ctx context.Context, by By, key, organizationID string, enabled bool) error
	// DeleteFlagOverride makes the global value hold again, or answers ErrOverrideNotFound.
	DeleteFlagOverride(ctx context.Context, by By, key, organizationID string) error
}
