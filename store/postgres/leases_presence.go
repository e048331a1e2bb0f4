package postgres

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/lease"
)

// LeasePresence reads who edits a resource, in one statement: the clock, whether the writer may know it, and the leases. It
// implements lease.PresenceReader.
type LeasePresence struct{ pool *pgxpool.Pool }

var _ lease.PresenceReader = (*LeasePresence)(nil)

// NewLeasePresence makes the reader. Its policy is that of LeasePolicy.
func NewLeasePresence(pool *pgxpool.Pool) *LeasePresence { return &LeasePresence{pool: pool} }

// presenceSQL says the clock and the right once, and also without any lease. Credentials and versions are for claims.
const presenceSQL = `SELECT clock_timestamp(), CAST(NULL AS timestamptz), CASE WHEN ` + mayEditTest + ` THEN 'may' END, '', '' UNION ALL
	SELECT l.acquired_at, l.expires_at, l.part, l.holder_id, l.holder_name
	FROM leases l WHERE l.organization_id = $1 AND l.resource = $4`

// Presence implements lease.PresenceReader.
func (p *LeasePresence) Presence(ctx context.Context, w lease.Writer, resource string) (lease.Standing, bool, error) {
	id, _ := parseID(keyIDPrefix, w.Credential) // another text names no key
	rows, err := p.pool.Query(ctx, presenceSQL, w.Organization, w.Credential, id, resource)
	if err != nil {
		return lease.Standing{}, false, wrapped("read who edits a resource", err)
	}
	seen, may, err := readPresence(rows, resource)
	if err != nil || !may {
		return lease.Standing{}, false, wrapped("read who edits a resource", err)
	}
	return seen, true, nil
}

// readPresence reads an answer of presenceSQL, in no order. A busy rack has a hundred rows, of which Scan would make most of the work.
func readPresence(rows pgx.Rows, resource string) (seen lease.Standing, may bool, err error) {
	defer rows.Close()
	for first := true; rows.Next(); first = false {
		raw := rows.RawValues()
		from, err := timeIn(rows, 0)
		if err != nil {
			return seen, false, err
		}
		if first {
			seen.Now, may = from, raw[2] != nil
			continue
		}
		until, err := timeIn(rows, 1)
		if err != nil {
			return seen, false, err
		}
		seen.Leases = append(seen.Leases, lease.Lease{
			Key:        lease.Key{Resource: resource, Part: string(raw[2])},
			Holder:     lease.Holder{ID: string(raw[3]), Name: string(raw[4])},
			AcquiredAt: from, ExpiresAt: until,
		})
	}
	return seen, may, rows.Err()
}

// microsecondsTo2000 is the time from 1970 to 2000, from when PostgreSQL counts microseconds.
var microsecondsTo2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// timeIn reads a finite time, which is eight bytes except where statements travel as text.
func timeIn(rows pgx.Rows, column int) (time.Time, error) {
	field, raw := rows.FieldDescriptions()[column], rows.RawValues()[column]
	if field.Format == pgx.BinaryFormatCode && len(raw) == 8 {
		return time.UnixMicro(microsecondsTo2000 + int64(binary.BigEndian.Uint64(raw))).UTC(), nil //nolint:gosec // negative before 2000
	}
	var at pgtype.Timestamptz
	err := rows.Conn().TypeMap().Scan(field.DataTypeOID, field.Format, raw, &at)
	return at.Time.UTC(), err
}
