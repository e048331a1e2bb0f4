package postgres

import (
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"allocator/events"
)

// auditCursor is the position of an entry in the audit trail. It is a position and not only an id, so that it stays good
// after its entry was purged.
type auditCursor struct {
	at time.Time
	id uuid.UUID
}

// String writes the position for the outside, where it means nothing.
func (c auditCursor) String() string {
	return strconv.FormatInt(c.at.UnixMicro(), 10) + "." + formatID(auditIDPrefix, c.id)
}

// parseAuditCursor reads what String wrote; the empty text is the position before the first entry.
func parseAuditCursor(text string) (auditCursor, error) {
	if text == "" {
		return auditCursor{at: time.Unix(0, 0)}, nil
	}
	micros, id, _ := strings.Cut(text, ".")
	at, err := strconv.ParseInt(micros, 10, 64)
	parsed, ok := parseID(auditIDPrefix, id)
	if err != nil || !ok || at < 0 || at > time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		return auditCursor{}, events.ErrCursorInvalid
	}
	return auditCursor{at: time.UnixMicro(at), id: parsed}, nil
}
