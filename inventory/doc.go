// Package inventory owns what a server is: its parts, its states, the one static size it is ranked by, and the
// service that keeps the records.
//
// It knows nothing of reservations, orders, databases or HTTP. Whether a server is held or bound is derived from
// reservations and bindings and is never a state that can be typed in or imported.
package inventory
