package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// trail keeps entries in memory.
type trail struct {
	AuditStore

	mu      sync.Mutex
	entries []AuditEntry
	old     int64
	down    error
}

func (f *trail) RecordAudit(_ context.Context, entry AuditEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return f.down
	}
	f.entries = append(f.entries, entry)
	return nil
}

func (f *trail) PurgeAudit(_ context.Context, limit int) (int64, error) {
	n := min(f.old, int64(limit))
	f.old -= n
	return n, f.down
}

// setup gives the service over a trail, and a clock to move.
func setup() (audit *Audit, store *trail, advance func(time.Duration)) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	store = &trail{}
	return NewAudit(store, func() time.Time { return now }), store, func(d time.Duration) { now = now.Add(d) }
}

func stranger(address string) AuditEntry {
	return AuditEntry{ActorKind: "stranger", ActorID: address, Action: ActionRequest, Subject: "POST /v1/reservations"}
}

func TestRecordBoundsAStorm(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		attempts func(i int) AuditEntry
		written  int
	}{
		"one source without end": {
			func(int) AuditEntry { return stranger("192.0.2.1") }, budgetPerSource,
		},
		"a new source for each attempt": {
			func(i int) AuditEntry { return stranger(fmt.Sprintf("192.0.2.%d", i)) }, budgetPerProcess,
		},
		"keys of many organizations": {
			func(i int) AuditEntry { return AuditEntry{OrganizationID: fmt.Sprintf("org-%d", i), ActorKind: "key"} }, budgetPerProcess,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const attempts = 1000
			audit, store, advance := setup()
			for i := range attempts {
				require.NoError(t, audit.Record(t.Context(), test.attempts(i)))
			}
			require.Len(t, store.entries, test.written)

			require.NoError(t, audit.FlushSuppressed(t.Context()))
			summaries := store.entries[test.written:]
			require.NotEmpty(t, summaries)
			require.LessOrEqual(t, len(summaries), budgetForSummary+1)
			suppressed := 0
			for _, s := range summaries {
				var n int
				_, err := fmt.Sscan(s.Detail["count"], &n)
				require.NoError(t, err)
				require.Equal(t, ActionRequestsSuppressed, s.Action)
				suppressed += n
			}
			require.Equal(t, attempts, test.written+suppressed, "every attempt is written or counted")

			advance(budgetWindow)
			require.NoError(t, audit.Record(t.Context(), test.attempts(0)))
			require.Len(t, store.entries, test.written+len(summaries)+1, "the next minute has its own budget")
			require.NoError(t, audit.FlushSuppressed(t.Context()))
			require.Len(t, store.entries, test.written+len(summaries)+1, "a count is written once")
		})
	}
}

func TestStrangersDoNotHideAnOrganizationsAttempts(t *testing.T) {
	t.Parallel()
	audit, store, _ := setup()
	for i := range 1000 {
		require.NoError(t, audit.Record(t.Context(), stranger(fmt.Sprint(i))))
	}
	require.NoError(t, audit.Record(t.Context(), AuditEntry{OrganizationID: "demo", ActorKind: "key", ActorID: "key_1"}))
	require.Equal(t, "demo", store.entries[len(store.entries)-1].OrganizationID)
	require.Len(t, audit.budget.bySource, budgetPerProcess+1, "no more sources are remembered than attempts are written")
}

func TestRecordStoresWhateverAStrangerSends(t *testing.T) {
	t.Parallel()
	audit, store, _ := setup()
	detail := map[string]string{"agent": "a\r\nb\u2028\x00\xff" + strings.Repeat("é", 500)}
	for i := range 100 {
		detail[fmt.Sprint("x", i)] = ""
	}
	require.NoError(t, audit.Record(t.Context(), AuditEntry{
		Subject: strings.Repeat("ö", 1000), RequestID: "a\x1b[31m", Outcome: OutcomeDone, Detail: detail,
	}))

	got := store.entries[0]
	require.Equal(t, OutcomeRefused, got.Outcome, "only refused attempts are recorded this way")
	require.Equal(t, maxEntryText, utf8.RuneCountInString(got.Subject))
	require.Equal(t, "a\uFFFD[31m", got.RequestID)
	require.Len(t, got.Detail, maxEntryDetails)
	agent := got.Detail["agent"]
	require.True(t, strings.HasPrefix(agent, "a\uFFFD\uFFFDb\uFFFD\uFFFD\uFFFDéé"), agent)
	require.Equal(t, maxEntryText, utf8.RuneCountInString(agent))
}

func TestRecordTellsThatTheStoreFailed(t *testing.T) {
	t.Parallel()
	audit, store, _ := setup()
	store.down = errors.New("connection refused")
	require.ErrorIs(t, audit.Record(t.Context(), stranger("192.0.2.1")), store.down)
}

func TestRunWritesCountsWhenItEnds(t *testing.T) {
	t.Parallel()
	audit, store, _ := setup()
	for range budgetPerSource + 3 {
		require.NoError(t, audit.Record(t.Context(), stranger("192.0.2.1")))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	audit.Run(ctx, slog.New(slog.DiscardHandler))
	require.Equal(t, "3", store.entries[len(store.entries)-1].Detail["count"])
}

func TestPurgeWorksInBatchesToTheEnd(t *testing.T) {
	t.Parallel()
	audit, store, _ := setup()
	store.old = 2*purgeBatch + 7
	n, err := audit.Purge(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2*purgeBatch+7, n)

	store.old, store.down = 5, errors.New("connection refused")
	_, err = audit.Purge(t.Context())
	require.ErrorIs(t, err, store.down)
}

func TestTypesAreDistinct(t *testing.T) {
	t.Parallel()
	for i, kind := range Types() {
		require.Equal(t, i, slices.Index(Types(), kind), "%s stands twice", kind)
		require.Regexp(t, `^[a-z]+\.[a-z_]+$`, string(kind))
	}
}
