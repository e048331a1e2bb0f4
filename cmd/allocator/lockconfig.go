package main

import (
	"fmt"
	"strings"
	"time"

	"allocator/locking"
)

// lockSettings say where the locks of the periodic jobs are kept, and what this installation settles otherwise about
// the jobs. Locks that other programs take are always in the service's database.
type lockSettings struct {
	LockBackend    string        `name:"lock-backend" default:"pg" enum:"pg,redis,memory,none" placeholder:"NAME" setting:"LOCK_BACKEND" help:"What keeps the jobs of several processes apart: pg, redis, memory or none."`
	LockPGURL      secret        `name:"lock-pg-url" placeholder:"URL" setting:"LOCK_PG_URL" secret:"" help:"PostgreSQL for the locks, not through a pooler; the service's own if left out."`
	LockPGMax      int           `name:"lock-pg-max" default:"20" placeholder:"N" setting:"LOCK_PG_MAX" help:"The most connections for locks, one each."`
	LockRedisURL   secret        `name:"lock-redis-url" placeholder:"URL" setting:"LOCK_REDIS_URL" secret:"" help:"Redis for the locks: redis://user:password@host:6379/0."`
	LockRedisKeys  string        `name:"lock-redis-key-prefix" default:"allocator:lock:" placeholder:"TEXT" setting:"LOCK_REDIS_KEY_PREFIX" help:"What stands before every key in Redis."`
	LockSingleNode bool          `name:"lock-single-node" setting:"LOCK_SINGLE_NODE" help:"There is one process only, so that locks in its memory are enough."`
	LockMargin     time.Duration `name:"lock-margin" default:"10s" placeholder:"TIME" setting:"LOCK_MARGIN" help:"How much longer than a job's expected run time its lock lives."`
	Jobs           []string      `name:"job" sep:";" placeholder:"ID:NAME=VALUE,…" setting:"JOBS" help:"Settle a job otherwise: audit_oversell:expected=5m,jitter=20s,hint=prefer_global; repeat it, or separate by semicolons."`
}

// config is the same in the words of package locking.
func (s *lockSettings) config(database string, behindPooler bool) (locking.Config, error) {
	c := locking.Config{
		Backend: s.LockBackend, SingleNode: s.LockSingleNode, Margin: s.LockMargin,
		Redis: locking.RedisConfig{URL: string(s.LockRedisURL), KeyPrefix: s.LockRedisKeys},
		PG:    locking.PostgresConfig{URL: string(s.LockPGURL), MaxLocks: s.LockPGMax},
		Jobs:  map[string]locking.JobConfig{},
	}
	switch {
	case c.Backend == "none":
		c.Backend = ""
	case c.Backend == locking.BackendPostgres && c.PG.URL == "" && behindPooler:
		return c, usagef("the database URL leads to a pooler, which gives the sessions that locks hang on to others: " +
			"set ALLOCATOR_LOCK_PG_URL to the address of PostgreSQL itself, or choose another --lock-backend")
	case c.Backend == locking.BackendPostgres && c.PG.URL == "":
		c.PG.URL = database
	}
	for _, text := range s.Jobs {
		id, own, err := parseJob(text)
		if _, twice := c.Jobs[id]; err == nil && twice {
			err = fmt.Errorf("%s is given twice", id)
		}
		if err != nil {
			return c, usagef("--job %q: %v; write ID:hint=HINT,expected=TIME,jitter=TIME", text, err)
		}
		c.Jobs[id] = own
	}
	return c, nil
}

// parseJob reads "audit_oversell:expected=5m,hint=prefer_global". What the values must be like, the scheduler says.
func parseJob(text string) (id string, own locking.JobConfig, err error) {
	id, rest, _ := strings.Cut(text, ":")
	id = strings.TrimSpace(id)
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "hint":
			own.Hint = locking.Hint(value)
		case "expected":
			own.Expected, err = time.ParseDuration(value)
		case "jitter":
			own.Jitter, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("%q is none of hint, expected and jitter", name)
		}
		if err != nil {
			return "", own, err
		}
	}
	return id, own, nil
}
