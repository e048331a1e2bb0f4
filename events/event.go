package events

import (
	"context"
	"encoding/json"
	"time"
)

// Type names what happened, as the feed and the webhooks spell it.
type Type string

// The types of events.
const (
	ReservationHeld              Type = "reservation.held"
	ReservationRenewed           Type = "reservation.renewed"
	ReservationExpiring          Type = "reservation.expiring" // once, 120 s before the deadline, if nobody renewed by then
	ReservationExpired           Type = "reservation.expired"
	ReservationCancelled         Type = "reservation.cancelled"
	ReservationConverted         Type = "reservation.converted"
	ReservationConversionRefused Type = "reservation.conversion_refused" // a payment came after the deadline: for support to look at
	ReservationTakenOver         Type = "reservation.taken_over"
	OrderRefused                 Type = "order.refused"
	BindingEnded                 Type = "binding.ended"
	ServerStateChanged           Type = "server.state_changed"
	ServerOversold               Type = "server.oversold" // held and sold at once, which no operation leads to: stop selling it and look
	ImportFinished               Type = "import.finished"
)

// Types lists every type of event.
func Types() []Type {
	return []Type{
		ReservationHeld, ReservationRenewed, ReservationExpiring, ReservationExpired, ReservationCancelled,
		ReservationConverted, ReservationConversionRefused, ReservationTakenOver, OrderRefused, BindingEnded, ServerStateChanged,
		ServerOversold, ImportFinished,
	}
}

// Event is one thing that happened, once. Ids that do not apply are empty.
type Event struct {
	ID             string // "evt_" and the 32 hexadecimal digits of a UUIDv7
	OrganizationID string
	Type           Type
	At             time.Time // the database's clock
	ActorKind      string
	ActorID        string
	ReservationID  string
	BindingID      string
	ServerID       string
	OrderID        string
	DecisionID     string
	Data           json.RawMessage // a small object that depends on Type; nil if there is nothing more to say
}

// Store reads events.
type Store interface {
	// EventsOfOrder gives the events of one order of the organization, oldest first; an order nobody knows has none.
	EventsOfOrder(ctx context.Context, organizationID, orderID string) ([]Event, error)
}
