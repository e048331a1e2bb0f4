package httpapi

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"allocator/lease"
	"allocator/transport/httpapi/wire"
)

// leasePointers are where the fields of a claim stand in a request.
var leasePointers = map[string]string{
	"resource": "path:resource", "part": "query:part", "holder": "header:Lease-Holder", "name": "/name", "seconds": "/seconds",
}

// ofLease answers with who has what was asked for. Of a race that nobody is known to have won there is no lease to show, and
// trying again shortly is the advice.
func ofLease(err error) *problem {
	var held *lease.HeldError
	var lost *lease.LostError
	switch {
	case errors.As(err, &held) && held.Lease == nil:
		return newProblem("lease_held").retryShortly()
	case errors.As(err, &held):
		p := newProblem("lease_held")
		left := held.Lease.SecondsLeftAt(held.Now)
		p.detail = fmt.Sprintf("%s is editing %s, for %d more seconds unless it is renewed: wait, or take it over.",
			held.Lease.Holder.Name, held.Lease.Key, left)
		p.header.Set("Retry-After", strconv.FormatInt(max(1, left), 10))
		return p.showing(held.Lease, held.Now)
	case errors.As(err, &lost):
		return newProblem("lease_lost").showing(lost.By, lost.Now)
	case errors.Is(err, lease.ErrTooManyWatchers):
		p := newProblem("unavailable")
		p.detail = "Too many are watching at the moment. Close a page, or read the presence now and then instead."
		return p
	}
	return nil
}

// showing adds a lease to the answer.
func (p *problem) showing(l *lease.Lease, now time.Time) *problem {
	if l != nil {
		view := viewLease(*l, now)
		p.fill = func(body *wire.Problem) { body.Lease = view }
	}
	return p
}
