// Package featureflags owns the release switches: their global value, the override of an organization above it, and the
// rule by which one value comes out.
//
// A switch covers new reservations only. Nothing that keeps a deadline, gives a server back or finishes what a buyer
// began may ask it, the sweep least of all. Who may set a switch is decided by whoever calls; this package knows nothing
// of servers, reservations, databases or HTTP, and imports nothing of this module. It answers through OpenFeature, so
// that a company that runs its switches elsewhere can put its own provider in the place of Provider.
package featureflags
