package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// meter reads what a round costs: processor time of the database's processes and of this one, and bytes of its log.
type meter struct {
	admin      *pgxpool.Pool
	postmaster int // 0: the database runs elsewhere, and its processes cannot be seen
}

// reading is the state of the counters at one instant.
type reading struct {
	server, client time.Duration
	wal            int64
}

func newMeter(ctx context.Context, admin *pgxpool.Pool) (*meter, error) {
	var backend int
	if err := admin.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&backend); err != nil {
		return nil, fmt.Errorf("ask for the database's process: %w", err)
	}
	return &meter{admin: admin, postmaster: postmasterOf(backend)}, nil
}

// read is called outside of the span whose time is taken.
func (m *meter) read(ctx context.Context) (reading, error) {
	r := reading{server: treeCPU(m.postmaster), client: ownCPU()}
	err := m.admin.QueryRow(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`).Scan(&r.wal)
	return r, err
}
