package httpapi

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// readings is work on what is so: it notes what it sees when it begins, and goes on when the test lets it.
type readings struct {
	crowd *crowd[string, int64]
	now   atomic.Int64 // what is so
	calls atomic.Int64
	goOn  chan struct{}
}

func newReadings() *readings {
	return &readings{crowd: newCrowd[string, int64](), goOn: make(chan struct{})}
}

// ask asks in the background, and returns when that waits for something.
func (r *readings) ask(ctx context.Context, key string) <-chan any {
	answer := make(chan any, 1)
	go func() {
		seen, err := r.crowd.do(ctx, key, func(ctx context.Context) (int64, error) {
			r.calls.Add(1)
			seen := r.now.Load()
			<-r.goOn
			return seen, ctx.Err()
		})
		if err != nil {
			answer <- err
		} else {
			answer <- seen
		}
	}()
	synctest.Wait()
	return answer
}

// Who asks while an answer is worked on gets the next one, with everybody else who does: an answer that began before the
// question may be of before the last change.
//
// Requirements: E14, E31.
func TestAnswersAreSharedByThoseWhoAskBeforeTheyBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReadings()
		first := r.ask(t.Context(), "rack")
		r.now.Store(1)
		second, third := r.ask(t.Context(), "rack"), r.ask(t.Context(), "rack")
		other := r.ask(t.Context(), "another rack")
		require.Equal(t, int64(2), r.calls.Load(), "what is about something else waits for nobody")
		r.goOn <- struct{}{}
		r.goOn <- struct{}{}
		synctest.Wait()
		r.now.Store(2)
		r.goOn <- struct{}{}
		require.Equal(t, []any{int64(0), int64(1), int64(1), int64(1)}, []any{<-first, <-second, <-third, <-other})
		require.Equal(t, int64(3), r.calls.Load())

		fourth := r.ask(t.Context(), "rack")
		r.goOn <- struct{}{}
		require.Equal(t, int64(2), <-fourth, "nothing is remembered")
		require.Empty(t, r.crowd.next)
		require.Empty(t, r.crowd.running)
	})
}

// The work belongs to all who share it: a caller that goes away takes nobody along, and waits for nothing itself.
//
// Requirements: E31.
func TestSharedAnswerOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReadings()
		before := r.ask(t.Context(), "rack")
		ctx, leave := context.WithCancel(t.Context())
		first, second, third := r.ask(ctx, "rack"), r.ask(ctx, "rack"), r.ask(t.Context(), "rack")
		leave()
		require.ErrorIs(t, (<-second).(error), context.Canceled)
		r.goOn <- struct{}{}
		r.goOn <- struct{}{}
		require.Equal(t, []any{int64(0), int64(0)}, []any{<-before, <-third})
		<-first
		require.Equal(t, int64(2), r.calls.Load())
	})
}

// An answer that is stuck holds nobody up for long.
//
// Requirements: E31.
func TestStuckAnswerIsPassedBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReadings()
		stuck := r.ask(t.Context(), "rack")
		begin := time.Now()
		second := r.ask(t.Context(), "rack")
		require.Equal(t, int64(1), r.calls.Load())
		<-time.After(crowdPatience) // by the bubble's clock
		synctest.Wait()
		require.Equal(t, int64(2), r.calls.Load(), "after %s", time.Since(begin))
		third := r.ask(t.Context(), "rack")
		r.goOn <- struct{}{} // lets one of the two go, whichever
		r.goOn <- struct{}{}
		r.goOn <- struct{}{}
		require.Equal(t, []any{int64(0), int64(0), int64(0)}, []any{<-stuck, <-second, <-third})
		require.Empty(t, r.crowd.running)
	})
}

// A panic is its caller's; the others are told that there is no answer.
//
// Requirements: E31.
func TestPanicOfASharedAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newReadings()
		before := r.ask(t.Context(), "rack")
		panicked := make(chan any)
		go func() {
			defer func() { panicked <- recover() }()
			_, _ = r.crowd.do(t.Context(), "rack", func(context.Context) (int64, error) { panic("on purpose") })
		}()
		synctest.Wait()
		second := r.ask(t.Context(), "rack")
		r.goOn <- struct{}{}
		require.Equal(t, int64(0), <-before)
		require.Equal(t, "on purpose", <-panicked)
		require.Equal(t, errAbandoned, <-second)
	})
}
