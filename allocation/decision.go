package allocation

import (
	"encoding/json"
	"errors"
	"time"

	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// DecisionID identifies one decision: "dec_" and the 32 hexadecimal digits of a UUIDv7.
type DecisionID string

// ErrDecisionGone says that a decision was kept as long as decisions are kept.
var ErrDecisionGone = errors.New("this decision was kept as long as decisions are kept and is gone")

// MaxFrozen is the number of servers up to which a decision freezes the reasons of every one; of a larger inventory it
// freezes a sample of this size, marked as such.
const MaxFrozen = 2000

// Decision is the frozen record of one request: what was asked, what was seen, what came out. It is written once, never
// updated and never recomputed; the sentences in it are those of the day. It holds no personal data.
type Decision struct {
	ID           DecisionID               `json:"-"`
	Organization identity.OrganizationID  `json:"-"`
	CreatedAt    time.Time                `json:"-"`
	Order        reservation.OrderLine    `json:"-"`
	Outcome      OutcomeCode              `json:"-"`
	Cause        Cause                    `json:"-"`
	Reservation  reservation.ID           `json:"-"` // the one made, or the one in the way
	Made         *reservation.Reservation `json:"-"` // the one made, while it is being written
	By           identity.Actor           `json:"-"`

	Text         string          `json:"text"`
	Requirements json.RawMessage `json:"requirements"`
	SeenAt       *time.Time      `json:"seen_at,omitempty"`      // of the inventory; nil if it was not looked at
	SeenVersion  uint64          `json:"seen_version,omitempty"` // the Next of the catalog that the list came from
	Servers      int             `json:"servers"`
	Eligible     int             `json:"eligible"`
	Counts       []ReasonCount   `json:"counts"`
	Walked       []Walked        `json:"walked"`
	Nearest      *Nearest        `json:"nearest,omitempty"`
	NextExpiryAt *time.Time      `json:"next_expiry_at,omitempty"` // when the first server that would fit may come back
	Choice       *Choice         `json:"choice,omitempty"`

	UnderEdit []inventory.ServerID `json:"under_edit,omitempty"` // at that moment: a note that neither rejected nor ranked

	Skipped  int `json:"skipped"`
	Stale    int `json:"stale"`
	Attempts int `json:"attempts"`
	Walks    int `json:"walks"` // more than 1 only with Prefer: wait

	Pack   FrozenPack `json:"-"` // as it is stored; filled when it is made
	Frozen FrozenList `json:"-"` // as it is read; not filled in lists
}

// Walked is one candidate that was tried, in the order of trying.
type Walked struct {
	Server  inventory.ServerID `json:"server"`
	Name    string             `json:"name"`
	Rank    int                `json:"rank"`
	Outcome TryOutcome         `json:"outcome"`
}
