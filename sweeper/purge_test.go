package sweeper

import (
	"context"
	"errors"
	"testing"

	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"
)

type purgeFunc func(ctx context.Context) (int64, error)

func (f purgeFunc) Purge(ctx context.Context) (int64, error) { return f(ctx) }

// The audit trail is purged by a job that tries again when it fails, and only where there is a trail to purge.
func TestPurgeWorker(t *testing.T) {
	t.Parallel()
	done, err := work(t, &purgeWorker{trail: purgeFunc(func(context.Context) (int64, error) { return 7, nil }), log: quiet}, PurgeArgs{})
	require.NoError(t, err)
	require.Equal(t, rivertype.JobStateCompleted, done.Job.State)

	broken := errors.New("away")
	failed, err := work(t, &purgeWorker{trail: purgeFunc(func(context.Context) (int64, error) { return 0, broken }), log: quiet}, PurgeArgs{})
	require.ErrorIs(t, err, broken)
	require.NotEqual(t, rivertype.JobStateDiscarded, failed.Job.State, "it is tried again")

	require.Len(t, periodicJobs(Options{Every: Every}), 2)
	require.Len(t, periodicJobs(Options{Every: Every, Trail: purgeFunc(nil)}), 3)
}
