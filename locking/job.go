package locking

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Hint says what a job asks of the lock.
type Hint string

// The hints.
const (
	// NodeLocal jobs run on every process and never touch a lock: they see to something of the process itself.
	NodeLocal Hint = "node_local"
	// RequireGlobal jobs run on one process at a time and not at all without a lock that all processes share.
	RequireGlobal Hint = "require_global"
	// PreferGlobal jobs run on one process where a backend is configured, and on each where none is: running them twice
	// is a waste and no harm. A configured backend that is broken is not the same as none: then they do not run.
	PreferGlobal Hint = "prefer_global"
)

var hints = []Hint{NodeLocal, RequireGlobal, PreferGlobal}

// Missed says what becomes of ticks at which the job could not run: the process was down or paused, or the run before
// took too long.
type Missed string

// The policies for missed ticks.
const (
	MissedSkip    Missed = "skip"     // they are left out; the job runs at its next tick
	MissedRunOnce Missed = "run_once" // one run makes up for all of them, at once, and after a start as well
)

var missedPolicies = []Missed{MissedSkip, MissedRunOnce}

// Job is a declared periodic job. Its ticks are at whole multiples of its interval since 1970 in UTC, so that every
// process knows the same ones; a daily job ticks at midnight.
type Job struct {
	ID       string        // 1 to 64 of a-z, 0-9, _ and -
	Interval time.Duration // whole milliseconds, from 10 ms to 24 h
	Jitter   time.Duration // each process waits a random part of it after a tick; less than half of Interval
	Missed   Missed        // default MissedSkip
	Hint     Hint          // without a default: a job says what it needs
	Expected time.Duration // how long a run takes at most when all is well
	Run      func(ctx context.Context) error
}

// FindingError is the error of a run that did its work and found what must not be. It is no failure of the job. The text is
// shown to whoever may see the jobs, of whatever organization: it names nobody's records.
type FindingError struct{ Text string }

// Error implements error.
func (f *FindingError) Error() string { return f.Text }

const (
	minInterval = 10 * time.Millisecond
	maxInterval = 24 * time.Hour
)

var jobID = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// check returns every mistake of the declaration.
func (j Job) check() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("job %q: "+format, append([]any{j.ID}, args...)...))
	}
	if !jobID.MatchString(j.ID) {
		wrong("id must have 1 to 64 of a-z, 0-9, _ and -")
	}
	if j.Interval < minInterval || j.Interval > maxInterval || j.Interval%time.Millisecond != 0 {
		wrong("interval must be whole milliseconds from %v to %v, and is %v", minInterval, maxInterval, j.Interval)
	}
	if j.Jitter < 0 || j.Jitter*2 >= j.Interval {
		wrong("jitter must be less than half of the interval, and is %v of %v", j.Jitter, j.Interval)
	}
	if !slices.Contains(missedPolicies, j.Missed) {
		wrong("missed-run policy must be one of %v, and is %q", missedPolicies, j.Missed)
	}
	if !slices.Contains(hints, j.Hint) {
		wrong("hint must be one of %v, and is %q", hints, j.Hint)
	}
	if j.Expected < time.Millisecond || j.Expected > maxInterval {
		wrong("expected run time must be from 1 ms to %v, and is %v", maxInterval, j.Expected)
	}
	if j.Run == nil {
		wrong("it has nothing to run")
	}
	return errors.Join(errs...)
}

// tickAt is the number of the tick whose slot holds t; the slot ends with the next tick.
func (j Job) tickAt(t time.Time) int64 { return floorDiv(t.UnixMilli(), j.Interval.Milliseconds()) }

// start is the moment of a tick, and the beginning of its slot.
func (j Job) start(tick int64) time.Time {
	return time.UnixMilli(tick * j.Interval.Milliseconds()).UTC()
}

// lead is how long before the next tick the claim of a tick is given up, so that processes whose clocks differ a little
// meet a free key at the next one.
func (j Job) lead() time.Duration { return min(j.Interval/10, time.Second) }

// due tells whether a run for the tick may still begin.
func (j Job) due(tick int64, now time.Time) bool {
	if !j.beforeNext(tick, now) {
		return false
	}
	return j.Missed == MissedRunOnce || now.Sub(j.start(tick)) < j.Interval/2+j.Jitter
}

// beforeNext tells whether nobody's claim of the tick can have been given up yet, clocks that differ by lead included.
func (j Job) beforeNext(tick int64, now time.Time) bool {
	return now.Before(j.start(tick + 1).Add(-2 * j.lead()))
}

func floorDiv(a, b int64) int64 {
	if a < 0 && a%b != 0 {
		return a/b - 1
	}
	return a / b
}
