package sweeper

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// correctEvery is how often what a clock left in the queue is corrected, and correctTimeout how long that may take.
const (
	correctEvery   = 10 * time.Second
	correctTimeout = 5 * time.Second
)

// The queue writes times by two clocks: its leader's term by the database's, a job's time by the process's. After the
// database's clock was set back a dead leader's term lasts for hours, and while the process's is ahead each job waits. A
// term is of seconds, and a job that is available is due: whatever says otherwise was written by another clock.
const (
	endTermsSQL = `DELETE FROM river_leader WHERE expires_at > clock_timestamp() + interval '1 minute'`
	makeDueSQL  = `UPDATE river_job SET scheduled_at = clock_timestamp() WHERE state = 'available' AND scheduled_at > clock_timestamp() + interval '2 seconds'`
)

// correctClocks works until ctx ends. What it cannot do now it does at its next turn.
func correctClocks(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) {
	for {
		for what, sql := range map[string]string{"leader": endTermsSQL, "jobs": makeDueSQL} {
			bounded, cancel := context.WithTimeout(ctx, correctTimeout)
			tag, err := pool.Exec(bounded, sql)
			cancel()
			if err == nil && tag.RowsAffected() > 0 {
				log.WarnContext(ctx, "clocks disagree: times of the queue were corrected", "of", what, "rows", tag.RowsAffected())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(correctEvery):
		}
	}
}
