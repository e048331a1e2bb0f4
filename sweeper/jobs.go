package sweeper

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"allocator/reservation"
)

const (
	// Every is how often expired reservations are swept.
	Every = time.Minute
	// batch is how many reservations one statement moves: few enough to be short, many enough to be quick.
	batch = 500
	// sweepTimeout ends a sweep that hangs; the next one goes on where it stood.
	sweepTimeout = 50 * time.Second
	// PartitionMonths is how many months ahead of the present one have partitions.
	PartitionMonths = 3
)

// Sweeps is what a sweep needs of the reservations.
type Sweeps interface {
	// Sweep moves what is past its deadline to expired, in batches of at most that many.
	Sweep(ctx context.Context, batch int) (reservation.Swept, error)
}

// Partitions keeps the tables that are kept by month supplied, and takes away the old ones.
type Partitions interface {
	// MakeMonths makes the partitions that are missing for this month and those ahead, and says how many it made.
	MakeMonths(ctx context.Context, ahead int) (int, error)
	// DropOld drops the months that are older than they must be kept, and says how many partitions that were.
	DropOld(ctx context.Context) (int, error)
}

// SweepArgs is the job that sweeps.
type SweepArgs struct{}

// Kind implements river.JobArgs.
func (SweepArgs) Kind() string { return "sweep_reservations" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (SweepArgs) InsertOpts() river.InsertOpts { return sweepOpts(Every) }

// sweepOpts makes the jobs of several processes in one period one job, and gives it one attempt: the next period's job is
// the retry. The slot is well below the period, and never "the same arguments" alone: a job whose worker was killed stays
// "running", and would keep out every later one.
func sweepOpts(every time.Duration) river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, Priority: 1, UniqueOpts: river.UniqueOpts{ByPeriod: max(every/2, time.Second)}}
}

// sweepWorker runs SweepArgs.
type sweepWorker struct {
	river.WorkerDefaults[SweepArgs]
	reservations Sweeps
	log          *slog.Logger
}

// Timeout implements river.Worker.
func (*sweepWorker) Timeout(*river.Job[SweepArgs]) time.Duration { return sweepTimeout }

// Work implements river.Worker. A failure is the job's failure, shown with the rows that could not be moved.
func (w *sweepWorker) Work(ctx context.Context, _ *river.Job[SweepArgs]) error {
	swept, err := w.reservations.Sweep(ctx, batch)
	if err != nil {
		w.log.ErrorContext(ctx, "sweep failed; the next one tries again", "expired", swept.Expired, "failed", swept.Failed, "error", err)
		return err
	}
	w.log.DebugContext(ctx, "sweep", "expired", swept.Expired)
	return nil
}

// PartitionArgs is the job that makes partitions and drops old ones.
type PartitionArgs struct{}

// Kind implements river.JobArgs.
func (PartitionArgs) Kind() string { return "make_month_partitions" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PartitionArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 3, UniqueOpts: river.UniqueOpts{ByPeriod: time.Hour}}
}

// partitionWorker runs PartitionArgs.
type partitionWorker struct {
	river.WorkerDefaults[PartitionArgs]
	partitions Partitions
	log        *slog.Logger
}

// Work implements river.Worker.
func (w *partitionWorker) Work(ctx context.Context, _ *river.Job[PartitionArgs]) error {
	made, err := w.partitions.MakeMonths(ctx, PartitionMonths)
	if made > 0 {
		w.log.InfoContext(ctx, "month partitions made", "count", made)
	}
	dropped, failed := w.partitions.DropOld(ctx) // also when the others could not be made
	if dropped > 0 {
		w.log.InfoContext(ctx, "old months dropped", "partitions", dropped)
	}
	return errors.Join(err, failed)
}
