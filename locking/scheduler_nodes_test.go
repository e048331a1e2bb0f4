package locking

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runs records which node ran when, within a bubble's time.
type runs struct {
	mu   sync.Mutex
	list []run
}

type run struct {
	node string
	at   time.Duration // since the bubble's beginning, which is midnight
}

func (r *runs) add(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, run{node, time.Since(midnight)})
}

func (r *runs) all() []run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// times are the moments of all runs, in order.
func (r *runs) times() []time.Duration {
	var times []time.Duration
	for _, one := range r.all() {
		times = append(times, one.at)
	}
	slices.Sort(times)
	return times
}

// midnight is when a bubble begins.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// shared is the configuration of tests in which a Memory plays the backend that all nodes share.
var shared = Config{Backend: BackendMemory, SingleNode: true}

// audit is a job that takes 5 ms each 10 s.
func audit(hint Hint) Job {
	return Job{ID: "audit", Interval: 10 * time.Second, Hint: hint, Expected: time.Second, Run: func(context.Context) error { after(5 * time.Millisecond); return nil }}
}

// journal is a log that is read while it is written.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// node is one process's scheduler of one job.
type node struct {
	*Scheduler

	log  journal
	stop context.CancelFunc
	over chan struct{}
}

// start starts the job on a node of that name and records its runs.
func start(t *testing.T, name string, l Locker, c Config, job Job, r *runs) *node {
	t.Helper()
	n := prepare(t, name, l, c, job, r)
	n.begin(t)
	return n
}

func prepare(t *testing.T, name string, l Locker, c Config, job Job, r *runs) *node {
	t.Helper()
	work := job.Run
	job.Run = func(ctx context.Context) error {
		r.add(name)
		return work(ctx)
	}
	n := &node{over: make(chan struct{})}
	var err error
	n.Scheduler, err = NewScheduler(SchedulerOptions{Jobs: []Job{job}, Locker: l, Config: c, Log: slog.New(slog.NewTextHandler(&n.log, nil))})
	require.NoError(t, err)
	return n
}

func (n *node) begin(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	n.stop = cancel
	go func() {
		defer close(n.over)
		n.Run(ctx)
	}()
}

// end stops the node and returns when it has stopped.
func (n *node) end() {
	n.stop()
	<-n.over
}

func (n *node) status() Status { return n.Jobs()[0] }

// named is a Locker that says it is another.
type named struct {
	Locker

	name string
}

func (n *named) Name() string { return n.name }

func tickName(at time.Time) string {
	return strings.TrimPrefix((&scheduled{Job: audit(NodeLocal)}).claimKey(audit(NodeLocal).tickAt(at)), "job:audit@")
}
