package sweeper

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

const (
	// rescueAfter is when a job whose worker was killed counts as lost, far below River's hour.
	rescueAfter = 2 * time.Minute
	// softStop is how long a running job may go on after a stop was asked for.
	softStop = 5 * time.Second
)

// Options settle a Sweeper.
type Options struct {
	Reservations Sweeps
	Partitions   Partitions
	Trail        Trail // nil: the audit trail is not purged here
	Log          *slog.Logger
	Every        time.Duration // default Every; tests sweep more often
	PollOnly     bool          // behind a pooler in transaction mode, which breaks LISTEN
}

// Sweeper is the running worker of one process. Any number of processes may run one; River elects which of them starts
// the periodic jobs.
type Sweeper struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
	log    *slog.Logger
}

// New prepares the worker over the pool, whose database has River's tables.
func New(pool *pgxpool.Pool, o Options) (*Sweeper, error) {
	if o.Every == 0 {
		o.Every = Every
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &sweepWorker{reservations: o.Reservations, log: o.Log})
	river.AddWorker(workers, &partitionWorker{partitions: o.Partitions, log: o.Log})
	if o.Trail != nil {
		river.AddWorker(workers, &purgeWorker{trail: o.Trail, log: o.Log})
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Workers:              workers,
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Logger:               o.Log,
		PeriodicJobs:         periodicJobs(o),
		RescueStuckJobsAfter: rescueAfter,
		PollOnly:             o.PollOnly,
		SoftStopTimeout:      softStop,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the sweeper: %w", err)
	}
	return &Sweeper{client: client, pool: pool, log: o.Log}, nil
}

// periodicJobs run on start as well, so that a restart does not leave what expired meanwhile for another minute.
func periodicJobs(o Options) []*river.PeriodicJob {
	sweep := func() (river.JobArgs, *river.InsertOpts) {
		opts := sweepOpts(o.Every)
		return SweepArgs{}, &opts
	}
	partitions := func() (river.JobArgs, *river.InsertOpts) { return PartitionArgs{}, nil }
	onStart := &river.PeriodicJobOpts{RunOnStart: true}
	jobs := []*river.PeriodicJob{
		river.NewPeriodicJob(river.PeriodicInterval(o.Every), sweep, onStart),
		river.NewPeriodicJob(river.PeriodicInterval(24*time.Hour), partitions, onStart),
	}
	if o.Trail != nil {
		purge := func() (river.JobArgs, *river.InsertOpts) { return PurgeArgs{}, nil }
		jobs = append(jobs, river.NewPeriodicJob(river.PeriodicInterval(24*time.Hour), purge, onStart))
	}
	return jobs
}

// Run works until ctx ends, then lets running jobs finish for a few seconds. It returns nil after an orderly end.
func (s *Sweeper) Run(ctx context.Context) error {
	// River must not see the end of ctx as "drop everything": it is stopped softly below.
	if err := s.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start the sweeper: %w", err)
	}
	correctClocks(ctx, s.pool, s.log)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*softStop)
	defer cancel()
	if err := s.client.Stop(stop); err != nil {
		return fmt.Errorf("stop the sweeper: %w", err)
	}
	return nil
}
