package locking

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Config chooses the backend and tunes the jobs. Choosing another backend is changing Backend, and no calling code.
type Config struct {
	Backend    string // memory, redis or pg; empty: none is configured
	SingleNode bool   // the operator says that there is one process only, for which memory is enough
	Redis      RedisConfig
	PG         PostgresConfig
	Margin     time.Duration        // added to a job's expected run time; default DefaultMargin
	Jobs       map[string]JobConfig // by the job's id
}

// JobConfig is what an operator settles otherwise than the job's declaration. Zero fields leave it as declared.
type JobConfig struct {
	Hint     Hint
	Expected time.Duration // the longest expected run time on this installation
	Jitter   time.Duration // the most that a process waits after a tick
}

// DefaultMargin is the safety margin of a job's lock: a slow database, a paused process, clocks that differ.
const DefaultMargin = 10 * time.Second

var backends = []string{BackendMemory, BackendRedis, BackendPostgres}

// Validate returns a sentence for each mistake that can be seen without connecting, naming the setting.
func (c Config) Validate() error {
	var errs []error
	if c.Backend != "" && !slices.Contains(backends, c.Backend) {
		errs = append(errs, fmt.Errorf("backend must be one of %v, or empty for none, and is %q", backends, c.Backend))
	}
	if c.Backend == BackendRedis {
		_, err := redisOptions(c.Redis.URL)
		errs = append(errs, err)
	}
	if c.Backend == BackendRedis && c.Redis.KeyPrefix != "" && checkKey(c.Redis.KeyPrefix) != nil {
		errs = append(errs, fmt.Errorf("redis.key_prefix: %w", checkKey(c.Redis.KeyPrefix)))
	}
	if c.Backend == BackendPostgres {
		_, err := postgresConnection(c.PG.URL)
		errs = append(errs, err)
	}
	if c.PG.MaxLocks < 0 {
		errs = append(errs, fmt.Errorf("pg.max_locks must not be negative, and is %d", c.PG.MaxLocks))
	}
	if c.Margin < 0 {
		errs = append(errs, fmt.Errorf("margin must not be negative, and is %v", c.Margin))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Jobs)) {
		if hint := c.Jobs[id].Hint; hint != "" && !slices.Contains(hints, hint) {
			errs = append(errs, fmt.Errorf("jobs.%s.hint must be one of %v, and is %q", id, hints, hint))
		}
	}
	return errors.Join(errs...)
}

// Open makes the configured backend, or nil if none is configured. A backend that cannot be reached now is no reason not
// to start: it is a warning, and jobs that need it are skipped until it is back. One that could never work is an error.
func Open(ctx context.Context, c Config, log *slog.Logger) (Locker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	switch c.Backend {
	case BackendMemory:
		log.WarnContext(ctx, "locks are kept in the memory of this process: other processes do not see them, so run no second one", "single_node", c.SingleNode)
		return NewMemory(), nil
	case BackendRedis:
		return orNil(OpenRedis(c.Redis, log))
	case BackendPostgres:
		return orNil(openChecked(ctx, c.PG, log))
	}
	return nil, nil
}

// orNil keeps a nil of one backend's type from looking like a Locker.
func orNil[L Locker](l L, err error) (Locker, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

func openChecked(ctx context.Context, config PostgresConfig, log *slog.Logger) (*Postgres, error) {
	p, err := OpenPostgres(config, log)
	if err != nil {
		return nil, err
	}
	switch err := p.Check(ctx); {
	case errors.Is(err, ErrPooled):
		return nil, err
	case err != nil:
		log.WarnContext(ctx, "the lock backend does not answer yet: jobs that need it are skipped until it does", "error", err)
	}
	return p, nil
}
