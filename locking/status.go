package locking

import (
	"sync"
	"time"
)

// Status is what there is to know of a job in this process since its start. Times are UTC; zero is never.
type Status struct {
	ID       string
	Interval time.Duration
	Jitter   time.Duration // after the configuration
	Missed   Missed
	Hint     Hint          // after the configuration
	Expected time.Duration // after the configuration
	LockTTL  time.Duration // Expected, Jitter and margin: a longer run is an overrun

	Running     bool
	NextTick    time.Time // zero while the scheduler is not running
	LastStart   time.Time
	LastEnd     time.Time // before LastStart while a run is under way
	LastError   string    // of the last run, or why the lock could not be asked; empty if all was well
	LastFinding string    // of the last run that was no failure; empty if it found nothing

	Runs          int64 // that began
	Errors        int64 // runs that failed: they returned an error that is no *FindingError, or panicked
	Findings      int64 // runs that found what must not be
	Skips         int64 // ticks that another process, or another run here, had
	MissedTicks   int64 // ticks at which the process was away, paused or busy
	BackendErrors int64 // ticks left out because the lock backend was broken: somebody has to look
	Lost          int64 // runs that were told to stop because their lock was gone
	Overruns      int64 // runs longer than LockTTL: the declaration is wrong, not the lock
}

// ledger is a Status that several goroutines write.
type ledger struct {
	mu     sync.Mutex
	status Status
	busy   bool // a run may not begin
}

func (l *ledger) update(change func(s *Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *ledger) read() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// occupy keeps a second run of the job out of this process, whatever its hint. It returns false if there is one.
func (l *ledger) occupy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return false
	}
	l.busy = true
	return true
}

func (l *ledger) vacate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = false
}
