package reservation

import (
	"encoding/json"
	"time"

	"allocator/identity"
	"allocator/inventory"
)

// ID identifies one reservation: "res_" and the 32 hexadecimal digits of a UUIDv7.
type ID string

// BindingID identifies one service binding: "bnd_" and the 32 hexadecimal digits of a UUIDv7.
type BindingID string

// OrderLine names what is being ordered. Unit counts the servers of one line, from 1.
type OrderLine struct {
	OrderID string
	Line    string
	Unit    int64
}

// Reservation holds one server for one order line, or tells how that ended.
type Reservation struct {
	ID           ID
	Organization identity.OrganizationID
	Server       inventory.Server // price and specification as they were when it was made
	Order        OrderLine
	CustomerRef  string // whatever the caller calls its customer; may be empty

	State        State // as the caller should see it: a held row past its deadline reads as StateExpired
	CreatedAt    time.Time
	ExpiresAt    time.Time
	MaxExpiresAt time.Time  // no renewal goes beyond it
	EndedAt      *time.Time // when it left StateHeld
	EndedBy      *identity.Actor
	EndReason    string // a CancelReason, or "" where the state says it all
	EndText      string

	Fence      int64 // grows with every reservation and take-over of the same server
	Generation int64 // starts at 1; a take-over raises it and so kills the older hold tokens
	Version    int64 // grows with every change; the ETag

	IdempotencyKey string
	Fingerprint    []byte          // of the canonical request that made it
	Requirements   json.RawMessage // as asked, canonical
	Reason         json.RawMessage // frozen: why this server (allocation.Reason)
	DecisionID     string
	TokenKey       string    // names the key that signed the hold token
	BindingID      BindingID // set once converted
	ServiceID      string    // set once converted
}

// TakenOver tells whether staff have taken the hold away from the caller that made it.
func (r *Reservation) TakenOver() bool { return r.Generation > 1 }

// Binding is a server sold to a service. It is active until EndedAt is set.
type Binding struct {
	ID            BindingID
	Organization  identity.OrganizationID
	Server        inventory.Server // as frozen on the reservation, or as it was at a direct binding
	ServiceID     string
	ReservationID ID        // empty for a direct binding
	Order         OrderLine // empty for a direct binding
	Since         time.Time
	CreatedAt     time.Time
	CreatedBy     identity.Actor
	Reason        string // why a direct binding was made

	EndedAt        *time.Time
	EndedBy        *identity.Actor
	EndReason      string
	DeliveryFailed bool
	Version        int64
	Fence          int64 // its reservation's, or a new one for a direct binding
}

// Active tells whether the server is still sold.
func (b *Binding) Active() bool { return b.EndedAt == nil }

// SpareTime is the smallest span that API.md's order of side effects wants left before a payment step: with less, a
// checkout renews first.
const SpareTime = 120 * time.Second

// MinRenewalCeiling is how long a reservation can be kept alive by renewals, at the least, counted from its creation.
const MinRenewalCeiling = 60 * time.Minute

// RenewalCeiling returns how long after its creation a reservation made with the given hold time may live at most.
func RenewalCeiling(holdTime time.Duration) time.Duration { return max(MinRenewalCeiling, holdTime) }

// Countdown is a reservation's state and what is left of its hold, both at one instant of the store's clock.
type Countdown struct {
	State State
	Left  time.Duration // zero unless State holds the server
}
