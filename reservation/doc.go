// Package reservation owns the life of a reservation after it was made: its states, its hold token, and the service
// that renews, cancels, converts, hands over and sweeps it, and the service bindings that conversions leave behind.
//
// It does not choose servers (package allocation does) and knows no SQL, HTTP or job queue. Every judgement about a
// deadline is made by the database's clock, read after the row is locked; the process's own clock decides nothing.
package reservation
