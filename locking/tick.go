package locking

import (
	"context"
	"errors"
	"time"
)

// longestWait is after how long a waiting loop looks at the clock again, which somebody may have set.
const longestWait = time.Minute

// errTooLate says that the lock was had when its tick was as good as over.
var errTooLate = errors.New("the backend took too long for this tick")

// loop takes a job from tick to tick until ctx ends.
func (s *Scheduler) loop(ctx context.Context, j *scheduled) {
	last := j.tickAt(time.Now()) // the present slot counts as seen, unless its tick is to be made up for
	if j.Missed == MissedRunOnce {
		last--
	}
	for {
		tick := j.following(last, time.Now())
		j.update(func(s *Status) {
			s.NextTick = j.start(tick)
			s.MissedTicks += max(0, tick-last-1)
		})
		// 1. Give up the claim of the tick before.
		if !waitUntil(ctx, j.start(tick).Add(-j.lead())) {
			break
		}
		giveUpClaim(ctx, j)
		// 2. Wait for the tick, each process a little longer than the others.
		if !waitUntil(ctx, j.start(tick).Add(s.jitter(j.Jitter))) {
			break
		}
		// 3. Run, unless this process woke up too late for it.
		if last = tick; j.due(tick, time.Now()) {
			s.tick(ctx, j, tick)
		} else {
			j.update(func(s *Status) { s.MissedTicks++ })
		}
	}
	j.update(func(s *Status) { s.NextTick = time.Time{} })
}

// following is the tick to wait for: the one whose slot it is if it has to be made up for, otherwise the next. A clock
// that was set back does not bring the same tick twice in a row.
func (j *scheduled) following(last int64, now time.Time) int64 {
	current := j.tickAt(now)
	switch {
	case j.Missed == MissedRunOnce && current > last && j.due(current, now):
		return current
	case current+1 == last:
		return last + 1
	default:
		return current + 1
	}
}

// waitUntil returns false when ctx ends first. The time is that of the wall clock, so it is looked at again and again.
func waitUntil(ctx context.Context, t time.Time) bool {
	for {
		wait := time.Until(t)
		if wait <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(min(wait, longestWait))
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// tick runs the job for one tick if its hint lets it.
func (s *Scheduler) tick(ctx context.Context, j *scheduled, tick int64) {
	if !j.occupy() {
		j.update(func(s *Status) { s.Skips++ })
		return
	}
	defer j.vacate()
	if j.locker == nil {
		_ = s.run(ctx, j) // recorded and logged there
		return
	}
	var claimed bool
	var claimErr error
	ran, err := While(ctx, j.locker, j.lockKey(), j.ttl, func(ctx context.Context) error {
		claimed, claimErr = s.runClaimed(ctx, j, tick)
		return nil
	})
	s.record(ctx, j, ran && claimed, errors.Join(err, claimErr))
}

// record counts what became of a tick under the lock. A run's own error is not seen here.
func (s *Scheduler) record(ctx context.Context, j *scheduled, ran bool, err error) {
	switch {
	case errors.Is(err, ErrBackend):
		j.update(func(s *Status) { s.BackendErrors++; s.LastError = err.Error() })
		s.log.ErrorContext(ctx, "the lock backend is broken, so a job was left out, or may be run again by another process",
			"job", j.ID, "ran", ran, "error", err)
	case errors.Is(err, ErrNotOwner) && ran:
		j.update(func(s *Status) { s.Lost++ })
		s.log.WarnContext(ctx, "a job lost its lock while it ran", "job", j.ID)
	case errors.Is(err, errTooLate):
		j.update(func(s *Status) { s.MissedTicks++ })
	case !ran && ctx.Err() == nil:
		j.update(func(s *Status) { s.Skips++ }) // silently: somebody else has this tick
	}
}

// runClaimed runs the job under its lock, unless another process has run this tick already: the tick itself is claimed,
// not only the moment, because a short run is over before the next process comes to the same tick.
func (s *Scheduler) runClaimed(ctx context.Context, j *scheduled, tick int64) (claimed bool, err error) {
	claim, err := j.locker.Try(ctx, j.claimKey(tick), j.ttl)
	if claim == nil {
		return false, err
	}
	if !j.beforeNext(tick, time.Now()) { // asking took long: another's claim may have been given up meanwhile
		return false, errors.Join(errTooLate, release(ctx, j.locker, claim))
	}
	_ = s.run(ctx, j)                 // recorded and logged there
	_ = release(ctx, j.locker, claim) // after a long run it has expired, which is as good
	if ctx.Err() == nil {             // a run that was cut short gives its tick back
		err = keepClaim(ctx, j, tick)
	}
	return true, err
}

// keepClaim claims a tick that was run until shortly before the next one. The claim that runClaimed took was for the time
// of a run only, so that a process that dies in the middle does not keep the tick. Nobody can come in between: who
// wants the claim needs the job's lock first.
func keepClaim(ctx context.Context, j *scheduled, tick int64) error {
	rest := time.Until(j.start(tick + 1).Add(-j.lead())).Truncate(time.Millisecond)
	if rest < MinTTL {
		return nil
	}
	claim, err := j.locker.Try(ctx, j.claimKey(tick), rest)
	j.claim = claim
	return err
}

// giveUpClaim lets go of the claim of a past tick. Where a backend has no time to live nobody else would.
func giveUpClaim(ctx context.Context, j *scheduled) {
	if j.claim != nil {
		_ = release(ctx, j.locker, j.claim) // expired by itself, or gone with its backend: it is over either way
		j.claim = nil
	}
}
