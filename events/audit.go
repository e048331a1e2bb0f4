package events

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// ErrCursorInvalid says that a page was asked for after something that no page ever gave out.
var ErrCursorInvalid = errors.New("this position in the audit trail does not exist: use the one from the last page, or begin without one")

// AuditStore keeps the audit trail.
type AuditStore interface {
	// RecordAudit writes one entry in a transaction of its own.
	RecordAudit(ctx context.Context, entry AuditEntry) error
	// AuditPage reads a page, or answers ErrCursorInvalid.
	AuditPage(ctx context.Context, query AuditQuery) (AuditPage, error)
	// PurgeAudit deletes at most limit entries whose time is over and says how many it deleted.
	PurgeAudit(ctx context.Context, limit int) (int64, error)
}

// AuditQuery asks for a part of the audit trail, oldest first.
type AuditQuery struct {
	OrganizationID string // whose trail; empty is the platform's own
	All            bool   // every trail; for callers that act across organizations only
	After          string // Next of an earlier page; empty for the beginning
	Limit          int
}

// AuditPage is a part of the audit trail. Next continues after it, and is given for an empty page too, so that a reader
// who comes again with it misses nothing: an entry appears only once no earlier one can still be committed.
type AuditPage struct {
	Entries []AuditEntry
	Next    string
}

// Audit reads the audit trail and records the attempts that were refused before they became an act. Safe for
// concurrent use.
type Audit struct {
	store  AuditStore
	budget *budget
}

// NewAudit makes the service. The clock, time.Now but in tests, measures the minutes of Record. Run must be running for
// the counts of suppressed attempts to be written in time.
func NewAudit(store AuditStore, now func() time.Time) *Audit {
	return &Audit{store: store, budget: newBudget(now)}
}

// recordTimeout bounds what an attempt's record may cost its answer.
const recordTimeout = 2 * time.Second

// Record writes a refused attempt (401, 403). OrganizationID is to be set only if the caller proved to belong to it.
// The attempt was refused already, so a door logs an error of Record and answers as it would have.
//
// A storm of attempts cannot fill the disk: of each minute at most 10 attempts per source and 30 per process are
// written, callers of a known organization and strangers counted apart, so that neither hides the other; the rest is
// counted, and the counts are written as entries of their own. Under attack without a pause a process adds about 25 MB
// a day, which the retention of 90 days limits to about 2 GB.
func (a *Audit) Record(ctx context.Context, entry AuditEntry) error {
	entry.Outcome = OutcomeRefused
	entry = entry.Cleaned()
	if !a.budget.admit(entry) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	return a.store.RecordAudit(ctx, entry)
}

// Page reads a part of the trail.
func (a *Audit) Page(ctx context.Context, query AuditQuery) (AuditPage, error) {
	return a.store.AuditPage(ctx, query)
}

// FlushSuppressed writes the counts of attempts that were not written one by one.
func (a *Audit) FlushSuppressed(ctx context.Context) error {
	var failed error
	for _, summary := range a.budget.takeSuppressed() {
		failed = errors.Join(failed, a.store.RecordAudit(ctx, summary))
	}
	return failed
}

// Run writes the counts of suppressed attempts every minute until ctx ends, and once more then. One goroutine per
// process.
func (a *Audit) Run(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(budgetWindow)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ended = true
		}
		flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		if err := a.FlushSuppressed(flush); err != nil {
			log.WarnContext(ctx, "counts of refused attempts could not be recorded", "error", err)
		}
		cancel()
	}
}

// purgeBatch keeps each deletion short.
const purgeBatch = 1000

// Purge deletes every entry whose time is over, in batches, and says how many there were. It may run in several
// processes at once.
func (a *Audit) Purge(ctx context.Context) (int64, error) {
	var total int64
	for {
		n, err := a.store.PurgeAudit(ctx, purgeBatch)
		total += n
		if err != nil || n < purgeBatch {
			return total, err
		}
	}
}
