package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/lease"
)

// What raw SQL cannot put into the table.
//
// Requirements: E02, E03, E18.
func TestLeaseRowsAreReadable(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	const insert = `INSERT INTO leases (organization_id, resource, part, holder_id, holder_name, credential, acquired_at, expires_at)
		VALUES ('acme', $1, $2, $3, '', '', $4::timestamptz, $5::timestamptz)`
	const whole = "2031-01-01 00:00Z"
	for name, row := range map[string][]any{
		"leases_resource_has_1_to_255_bytes":        {"", "", "anna", whole, whole},
		"leases_resource_has_no_control_characters": {"a\tb", "", "anna", whole, whole},
		"leases_part_is_a_short_name":               {"a", "u.5", "anna", whole, whole},
		"leases_holder_has_1_to_255_bytes":          {"a", "", "", whole, whole},
		"leases_times_are_whole_seconds":            {"a", "", "anna", whole, "2031-01-01 00:00:00.5Z"},
	} {
		_, err := b.pool.Exec(t.Context(), insert, row...)
		require.Equal(t, name, constraintOf(err))
	}
}

// Whatever the database takes for a control character the service does too: what it lets through can be stored.
//
// Requirements: E02.
func TestTheDatabaseTakesWhatTheServiceLetsThrough(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	rows, err := b.pool.Query(t.Context(), `SELECT c FROM generate_series(1, 65535) c
		WHERE c NOT BETWEEN 55296 AND 57343 AND chr(c) ~ '[[:cntrl:]]' UNION SELECT c FROM generate_series(917504, 917631) c WHERE chr(c) ~ '[[:cntrl:]]'`)
	require.NoError(t, err)
	codes, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	require.NoError(t, err)
	require.NotEmpty(t, codes)
	for _, code := range codes {
		_, err := b.one.Presence(t.Context(), writer("anna"), "a"+string(code))
		var invalid *lease.InvalidError
		require.ErrorAs(t, err, &invalid, "U+%04X", code)
	}
}

// Each write is a compare-and-swap: an insertion onto a key that is taken and a replacement or removal of a version that is
// no longer there change nothing and answer no, and the transaction around them goes on.
//
// Requirements: E22, E24.
func TestEveryWriteOfALeaseCompares(t *testing.T) {
	t.Parallel()
	b := setupLeases(t)
	mine := b.acquire("anna", keyOf("rack:A12"), 60)
	theirs := mine
	theirs.Holder.ID = "bob"
	around := b.begin(t)
	require.NoError(t, LeasesIn(around).Change(t.Context(), org, "rack:A12", func(ctx context.Context, tx lease.Tx) error {
		stored, err := tx.Insert(ctx, theirs)
		require.NoError(t, err)
		require.False(t, stored, "the key is taken")
		for _, version := range []int64{mine.Version - 1, mine.Version + 1} {
			theirs.Version = version
			stored, err = tx.Replace(ctx, theirs)
			require.NoError(t, err)
			require.False(t, stored)
			stored, err = tx.Remove(ctx, theirs)
			require.NoError(t, err)
			require.False(t, stored)
		}
		seen, err := tx.Standing(ctx)
		require.NoError(t, err, "the transaction goes on")
		require.Equal(t, []lease.Lease{mine}, seen.Leases)
		theirs.Version = mine.Version
		stored, err = tx.Replace(ctx, theirs)
		require.NoError(t, err)
		require.True(t, stored)
		stored, err = tx.Remove(ctx, theirs)
		require.NoError(t, err)
		require.False(t, stored, "it has moved on by that")
		return nil
	}))
	require.NoError(t, around.Commit(t.Context()))
	require.Equal(t, []string{":bob"}, b.present("rack:A12"))
	_, err := b.pool.Exec(t.Context(), `UPDATE leases SET holder_id = 'eve'`)
	require.Equal(t, "leases_version_grows", constraintOf(err))
}
