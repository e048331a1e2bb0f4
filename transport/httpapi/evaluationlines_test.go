package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/transport/httpapi/wire"
)

// stock is a store of so many servers, which nobody holds and which never change.
type stock struct {
	allocation.Store

	servers int
}

func (s stock) Everything(ctx context.Context, _ identity.OrganizationID, page func(allocation.News)) (allocation.News, error) {
	var all []inventory.Server
	for i := range s.servers {
		all = append(all, inventory.Server{
			ID: inventory.ServerID(fmt.Sprintf("srv_%032x", i)), Name: fmt.Sprint("m", i), Site: "FSN1", State: inventory.StateReady, Version: 1,
			Memory: inventory.Memory{MiB: int64(1024 * (1 + i%20))},
		})
	}
	page(allocation.News{Servers: all})
	return s.News(ctx, "", allocation.Horizon{})
}

func (stock) News(context.Context, identity.OrganizationID, allocation.Horizon) (allocation.News, error) {
	return allocation.News{At: time.UnixMicro(1), Horizon: allocation.Horizon{Next: 1}, Epoch: "1"}, nil
}

type on struct{}

func (on) Enabled(context.Context, identity.OrganizationID) bool { return true }

// slowReader is the caller's end of an answer. It is told of every write before it is done.
type slowReader struct {
	header   http.Header
	written  int
	tail     []byte
	before   func(write int) error // may wait
	writes   int
	deadline time.Time
}

func (r *slowReader) Header() http.Header { return r.header }
func (r *slowReader) WriteHeader(int)     {}
func (r *slowReader) Flush()              {}

func (r *slowReader) SetWriteDeadline(at time.Time) error {
	r.deadline = at
	return nil
}

func (r *slowReader) Write(p []byte) (int, error) {
	r.writes++
	if r.before != nil {
		if err := r.before(r.writes); err != nil {
			return 0, err
		}
	}
	r.written += len(p)
	r.tail = append(r.tail[:0], p[max(0, len(p)-200):]...)
	return len(p), nil
}

func (r *slowReader) whole() bool { return bytes.Contains(r.tail, []byte(`{"complete":{`)) }

// lists is a door that evaluates a stock.
type lists struct {
	*handlers

	ending chan struct{}
}

func listsOf(servers int) *lists {
	ending := make(chan struct{})
	deps := Deps{Evaluator: allocation.New(stock{servers: servers}, on{}, nil), Log: quiet()}
	return &lists{&handlers{Deps: deps, ending: ending, lists: make(chan struct{}, maxLists)}, ending}
}

// ask begins a list, which is written when its answer is visited.
func (l *lists) ask(line context.Context) (wire.EvaluateResponseObject, error) {
	k := &call{
		line: line, accept: []string{linesType},
		caller: identity.Caller{Organization: "acme", Scopes: identity.NewScopeSet(identity.ScopeSupport)},
	}
	body := wire.EvaluationRequest{Requirements: wire.Requirements{Memory: wire.MemoryRequirements{MibMin: 1 << 20}}}
	return l.Evaluate(k.into(line), wire.EvaluateRequestObject{Body: &body})
}

func (l *lists) read(t *testing.T, line context.Context, reader *slowReader) {
	t.Helper()
	answer, err := l.ask(line)
	require.NoError(t, err)
	reader.header = http.Header{}
	require.NoError(t, answer.VisitEvaluateResponse(reader))
	require.Empty(t, l.lists, "its place is free again")
}

// However long the list is, writing it takes little beside what is written: a few bytes for each server, and the reasons
// that many of them have in common once.
//
//nolint:paralleltest // it counts what the whole process allocates
func TestMemoryOfWritingAList(t *testing.T) {
	share := map[int]float64{}
	for _, n := range []int{5_000, 50_000} {
		l := listsOf(n)
		l.read(t, t.Context(), &slowReader{}) // fills the catalog
		var before, after runtime.MemStats
		reader := &slowReader{}
		runtime.ReadMemStats(&before)
		l.read(t, t.Context(), reader)
		runtime.ReadMemStats(&after)
		require.True(t, reader.whole())
		require.Greater(t, reader.written, n*100)
		share[n] = float64(after.TotalAlloc-before.TotalAlloc) / float64(reader.written)
	}
	require.Less(t, share[50_000], 0.05, "of what is written")
	require.Less(t, share[50_000], share[5_000])
}

// Each write has a time, and whatever ends a list before its end leaves it without its last line: the caller that goes away
// or reads too slowly, a list that takes longer than lists may, a process that ends. In every case its place is free again.
func TestListsThatAreCut(t *testing.T) {
	t.Parallel()
	l := listsOf(3000)
	reader := &slowReader{}
	reader.before = func(int) error {
		if left := time.Until(reader.deadline); left <= 0 || left > streamWriteTimeout {
			return fmt.Errorf("a write has %s", left)
		}
		reader.deadline = time.Time{}
		return nil
	}
	l.read(t, t.Context(), reader)
	require.True(t, reader.whole())
	whole := reader.writes

	for name, cut := range map[string]func(l *lists, hangUp func(), s *evaluationLines) func(write int) error{
		"the caller goes away": func(_ *lists, hangUp func(), _ *evaluationLines) func(int) error {
			return func(write int) error {
				if write == 3 {
					hangUp()
				}
				return nil
			}
		},
		"the caller reads too slowly": func(*lists, func(), *evaluationLines) func(int) error {
			return func(write int) error {
				if write == 4 {
					return errors.New("i/o timeout")
				}
				return nil
			}
		},
		"it takes too long": func(_ *lists, _ func(), s *evaluationLines) func(int) error {
			return func(write int) error {
				if write == 3 {
					s.until = time.Now()
				}
				return nil
			}
		},
		"the process ends": func(l *lists, _ func(), s *evaluationLines) func(int) error {
			return func(write int) error {
				switch write {
				case 2:
					close(l.ending)
				case 3:
					if left := time.Until(s.until); left > listEndGrace {
						return nil // and the test fails
					}
					s.until = time.Now() // as if the grace were over
				}
				return nil
			}
		},
	} {
		l := listsOf(3000)
		line, hangUp := context.WithCancel(t.Context())
		answer, err := l.ask(line)
		require.NoError(t, err)
		require.Len(t, l.lists, 1)
		reader := &slowReader{header: http.Header{}, before: cut(l, hangUp, answer.(*evaluationLines))}
		require.NoError(t, answer.VisitEvaluateResponse(reader))
		require.False(t, reader.whole(), name)
		require.Less(t, reader.writes, whole, name)
		require.LessOrEqual(t, reader.writes, 4, name)
		require.Empty(t, l.lists, name)
		hangUp()
	}
}

// No more than so many lists are kept for slow readers; one more is told to come back, and can when another has ended. One
// that could not even begin takes no place.
func TestTooManyLists(t *testing.T) {
	t.Parallel()
	l := listsOf(10)
	var open []wire.EvaluateResponseObject
	for range maxLists {
		answer, err := l.ask(t.Context())
		require.NoError(t, err)
		open = append(open, answer)
	}
	_, err := l.ask(t.Context())
	p, ok := errors.AsType[*problem](err)
	require.True(t, ok)
	require.Equal(t, "unavailable", p.code)
	require.NotEmpty(t, p.header.Get("Retry-After"))
	require.NoError(t, open[0].VisitEvaluateResponse(&slowReader{header: http.Header{}}))
	again, err := l.ask(t.Context())
	require.NoError(t, err)
	for _, answer := range append(open[1:], again) {
		require.NoError(t, answer.VisitEvaluateResponse(&slowReader{header: http.Header{}}))
	}
	l.Evaluator = never{}
	_, err = l.ask(t.Context())
	require.ErrorIs(t, err, allocation.ErrFeatureDisabled)
	require.Empty(t, l.lists)
}

type never struct{}

func (never) Evaluate(context.Context, identity.Caller, string, allocation.Requirements) (*allocation.Evaluation, error) {
	return nil, allocation.ErrFeatureDisabled
}

// Texts are written as encoding/json writes them, whatever is in them.
func TestTextsOfLines(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "web-1", "a<b", "a>b", "a&b", `a"b`, `a\b`, "a\tb", "a\u007fb", `"quoted" \ <b> & 'x'`, "ü漢🖥", "a\nb\x00\x7f", "\u2028", string([]byte{0xff, 'a'})} {
		require.Equal(t, string(mustJSON(text)), string(appendText(nil, text)), text)
	}
}

// More lists of reasons than are remembered are written as the first ones are.
func TestReasonsAreWrittenAlikeHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	l := &lineWriter{}
	for i := range uint64(2*maxSaid + 10) {
		v := allocation.Verdict{Fails: i % (maxSaid + 5)}
		require.Equal(t, string(mustJSON(each(v.Reasons(), viewReason))), string(l.reasons(v)))
		require.LessOrEqual(t, len(l.said), maxSaid)
	}
	require.True(t, strings.HasPrefix(string(l.reasons(allocation.Verdict{Fails: 1})), "[{"))
}
