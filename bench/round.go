package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// contender is one way to do something, measured beside others.
type contender struct {
	name string
	// prepare is called before each round, unmeasured.
	prepare func(ctx context.Context, round string) error
	// do does it once. i counts from 0 within the round, and no two calls have the same; false is an honest refusal.
	do func(ctx context.Context, i int) (bool, error)
	// most is how often it can be done before the stock runs low; 0: without end.
	most int
	// alone, if set, is used instead of do: another program does it, and says how often and in what time.
	alone func(ctx context.Context, callers int) (done int, elapsed time.Duration, err error)
}

// measure is what one round of one contender came to.
type measure struct {
	done, refused  int
	elapsed        time.Duration
	server, client time.Duration
	wal            int64
	latencies      []time.Duration
}

func (m *measure) perSecond() float64 { return float64(m.done) / m.elapsed.Seconds() }

// metered reads what a turn costs around it.
func metered(ctx context.Context, meter *meter, turn func() (*measure, error)) (*measure, error) {
	before, err := meter.read(ctx)
	if err != nil {
		return nil, err
	}
	m, err := turn()
	if err != nil {
		return nil, err
	}
	after, err := meter.read(ctx)
	if err != nil {
		return nil, err
	}
	m.server, m.client, m.wal = after.server-before.server, after.client-before.client, after.wal-before.wal
	return m, nil
}

// closedLoop lets callers do it one after the other until time or stock is over.
func closedLoop(ctx context.Context, c *contender, callers int, duration time.Duration) (*measure, error) {
	if c.alone != nil {
		done, elapsed, err := c.alone(ctx, callers)
		return &measure{done: done, elapsed: elapsed}, err
	}
	begin := time.Now()
	loop := &loop{contender: c, until: begin.Add(duration)}
	parts := make([]measure, callers)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() { loop.run(ctx, &parts[i]) })
	}
	all.Wait()
	whole := sum(parts)
	whole.elapsed = time.Since(begin)
	return whole, loop.failure(ctx)
}

// loop is what the callers of one round share.
type loop struct {
	*contender

	until  time.Time
	next   atomic.Int64
	failed atomic.Pointer[error]
}

func (l *loop) run(ctx context.Context, into *measure) {
	for ctx.Err() == nil && l.failed.Load() == nil {
		i := int(l.next.Add(1)) - 1
		begin := time.Now()
		if begin.After(l.until) || l.most > 0 && i >= l.most {
			return
		}
		l.once(ctx, i, begin, into)
	}
}

// once does it and takes the time from when it was due.
func (l *loop) once(ctx context.Context, i int, due time.Time, into *measure) {
	ok, err := l.do(ctx, i)
	if err != nil {
		l.failed.CompareAndSwap(nil, &err)
		return
	}
	into.latencies = append(into.latencies, time.Since(due))
	if ok {
		into.done++
	} else {
		into.refused++
	}
}

// failure is what ended the round before its time.
func (l *loop) failure(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func sum(parts []measure) *measure {
	whole := &measure{}
	for i := range parts {
		whole.done += parts[i].done
		whole.refused += parts[i].refused
		whole.latencies = append(whole.latencies, parts[i].latencies...)
	}
	return whole
}
