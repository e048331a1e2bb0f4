package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/identity"
	"allocator/lease"
)

// LeasePolicy says who may edit the inventory. It implements lease.Policy. The database is asked each time, and not what a
// door remembers of a key, so that a revoked key edits nothing from that instant on.
type LeasePolicy struct{ pool *pgxpool.Pool }

var _ lease.Policy = (*LeasePolicy)(nil)

// NewLeasePolicy makes the policy.
func NewLeasePolicy(pool *pgxpool.Pool) *LeasePolicy { return &LeasePolicy{pool: pool} }

// mayEditTest: the key is live and has the scope operator. Who works on the database itself has no key, and may.
const mayEditTest = `($2::text = '' OR EXISTS (
	SELECT FROM api_keys k WHERE k.organization_id = $1 AND k.id = $3 AND k.revoked_at IS NULL
		AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()) AND 'operator' = ANY (k.scopes)))`

// MayEdit implements lease.Policy: whoever has a live key with the scope operator edits everything of its organization.
func (p *LeasePolicy) MayEdit(ctx context.Context, w lease.Writer, _ lease.Key) (bool, error) {
	may, err := mayEdit(ctx, p.pool, w.Organization, w.Credential)
	return may, wrapped("ask whether somebody may edit", err)
}

func mayEdit(ctx context.Context, q querier, organization, credential string) (may bool, err error) {
	id, _ := parseID(keyIDPrefix, credential) // another text names no key
	err = q.QueryRow(ctx, `SELECT `+mayEditTest, organization, credential, id).Scan(&may)
	return may, err
}

// MayTakeOver implements lease.Policy: from a holder who works with the same key everybody may take over, and from
// everybody else an admin or who works on the database itself.
func (p *LeasePolicy) MayTakeOver(w lease.Writer, from lease.Lease) bool {
	return w.Credential == from.Credential || w.Credential == "" || slices.Contains(w.Rights, string(identity.ScopeAdmin))
}
