package identity

import (
	"context"
	"time"
)

// OrganizationStore keeps organizations. Each write leaves an entry by the caller in the audit trail of the
// organization, in the same transaction.
type OrganizationStore interface {
	// CreateOrganization stores a new organization, or answers ErrOrganizationExists.
	CreateOrganization(ctx context.Context, by Caller, org Organization) (Organization, error)
	// Organization reads one, or answers ErrOrganizationNotFound.
	Organization(ctx context.Context, id OrganizationID) (Organization, error)
	// Organizations lists at most limit organizations whose ids sort after the given one.
	Organizations(ctx context.Context, after OrganizationID, limit int) ([]Organization, error)
	// UpdateOrganization applies the patch if the stored version is ifVersion (0: whatever it is), or answers
	// ErrOrganizationNotFound or a VersionError. A patch that changes nothing writes nothing.
	UpdateOrganization(ctx context.Context, by Caller, id OrganizationID, patch OrganizationPatch, ifVersion int64) (Organization, error)
}

// Organizations creates organizations and keeps their settings. Which caller may do so is decided at the door: all of
// it needs ScopePlatform. Safe for concurrent use.
type Organizations struct {
	store   OrganizationStore
	minHold time.Duration
}

// NewOrganizations makes the service. minHold is the shortest hold time accepted, MinHoldTime everywhere but in demos
// and tests, which cannot wait for a minute; nothing below a second is possible.
func NewOrganizations(store OrganizationStore, minHold time.Duration) *Organizations {
	return &Organizations{store: store, minHold: max(minHold, time.Second)}
}

// Create makes an organization. Errors: InvalidError, ErrOrganizationExists.
func (s *Organizations) Create(ctx context.Context, by Caller, in NewOrganization) (Organization, error) {
	org := Organization{ID: in.ID, Name: in.Name, HoldSeconds: int(DefaultHoldTime.Seconds()), HoldLimit: DefaultHoldLimit}
	if org.ID == "" {
		org.ID = slug(in.Name)
	}

	var bad faults
	bad.add(checkOrganizationName(in.Name))
	if !org.ID.Valid() {
		bad.add(&FieldError{
			Pointer: "/id",
			Code:    CodeMalformed,
			Detail:  "must have 1 to 63 characters, small letters, digits and inner dashes; give one if none can be derived from the name",
		})
	}
	bad.add(checkHoldSeconds(in.HoldSeconds, s.minHold))
	bad.add(checkHoldLimit(in.HoldLimit))
	if err := bad.err(); err != nil {
		return Organization{}, err
	}

	org, _ = OrganizationPatch{HoldSeconds: in.HoldSeconds, HoldLimit: in.HoldLimit}.Apply(org)
	return s.store.CreateOrganization(ctx, by, org)
}

// Get reads one organization. Errors: ErrOrganizationNotFound.
func (s *Organizations) Get(ctx context.Context, id OrganizationID) (Organization, error) {
	if !id.Valid() {
		return Organization{}, ErrOrganizationNotFound
	}
	return s.store.Organization(ctx, id)
}

// List gives at most limit organizations in the order of their ids, beginning after the given id ("" for the first).
func (s *Organizations) List(ctx context.Context, after OrganizationID, limit int) ([]Organization, error) {
	if after != "" && !after.Valid() {
		return nil, ErrOrganizationNotFound
	}
	return s.store.Organizations(ctx, after, limit)
}

// Update changes settings, closing among them. With ifVersion other than 0 it does so only if the record is still at
// that version. Errors: InvalidError, ErrOrganizationNotFound, VersionError.
func (s *Organizations) Update(
	ctx context.Context, by Caller, id OrganizationID, patch OrganizationPatch, ifVersion int64,
) (Organization, error) {
	if !id.Valid() {
		return Organization{}, ErrOrganizationNotFound
	}
	var bad faults
	if patch.Name != nil {
		bad.add(checkOrganizationName(*patch.Name))
	}
	bad.add(checkHoldSeconds(patch.HoldSeconds, s.minHold))
	bad.add(checkHoldLimit(patch.HoldLimit))
	if err := bad.err(); err != nil {
		return Organization{}, err
	}
	return s.store.UpdateOrganization(ctx, by, id, patch, ifVersion)
}
