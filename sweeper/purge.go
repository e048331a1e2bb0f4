package sweeper

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

// purgeTimeout bounds one purge; what is left is for the next day's.
const purgeTimeout = 10 * time.Minute

// Trail is the audit trail, whose entries are kept for their time.
type Trail interface {
	// Purge deletes every entry whose time is over, in batches, and says how many there were.
	Purge(ctx context.Context) (int64, error)
}

// PurgeArgs is the job that purges the audit trail.
type PurgeArgs struct{}

// Kind implements river.JobArgs.
func (PurgeArgs) Kind() string { return "purge_audit_trail" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PurgeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByPeriod: time.Hour}}
}

// purgeWorker runs PurgeArgs.
type purgeWorker struct {
	river.WorkerDefaults[PurgeArgs]
	trail Trail
	log   *slog.Logger
}

// Timeout implements river.Worker.
func (*purgeWorker) Timeout(*river.Job[PurgeArgs]) time.Duration { return purgeTimeout }

// Work implements river.Worker.
func (w *purgeWorker) Work(ctx context.Context, _ *river.Job[PurgeArgs]) error {
	gone, err := w.trail.Purge(ctx)
	if gone > 0 {
		w.log.InfoContext(ctx, "old entries of the audit trail deleted", "count", gone)
	}
	return err
}
