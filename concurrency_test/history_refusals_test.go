//go:build gates

package concurrency_test

import (
	"fmt"
	"math"

	"allocator/allocation"
	"allocator/inventory"
	"allocator/reservation"
)

// span is a piece of time, both ends in it.
type span struct{ from, to int64 }

func (s span) holds(other span) bool { return s.from <= other.from && other.to <= s.to }

func (s span) meets(other span) bool { return s.from <= other.to && other.from <= s.to }

func (r *record) span() span { return span{r.Called, r.Returned} }

// done tells whether a call was answered with success.
func (r *record) done() bool {
	switch r.Answer {
	case "ok", "reserved", "cancelled", "repeated":
		return true
	default:
		return false
	}
}

// dishonest finds the refusals that cannot have been true at any moment of their call: no_capacity although a server was
// surely free all the while, and "servers taken" although every server was surely not to be had all the while.
func dishonest(servers []inventory.ServerID, records []record) (found []string) {
	free, gone := map[inventory.ServerID][]span{}, map[inventory.ServerID][]span{}
	for _, server := range servers {
		l := ledger{server: server, records: records}
		free[server], gone[server] = l.surelyFree(), l.surelyGone()
	}
	for i := range records {
		r := &records[i]
		if r.Op != opReserve || r.Server != "" {
			continue
		}
		var freeOne inventory.ServerID
		goneAll := true
		for _, server := range servers {
			if holdsAny(free[server], r.span()) {
				freeOne = server
			}
			goneAll = goneAll && holdsAny(gone[server], r.span())
		}
		switch {
		case r.Answer == string(allocation.OutcomeNoCapacity) && freeOne != "":
			found = append(found, fmt.Sprintf("no_capacity, and %s was free all the while: %+v", freeOne, *r))
		case r.Answer == string(allocation.CauseServersTaken) && goneAll:
			found = append(found, fmt.Sprintf("servers_taken, and nothing was to be had all the while: %+v", *r))
		}
	}
	return found
}

func holdsAny(spans []span, asked span) bool {
	for _, s := range spans {
		if s.holds(asked) {
			return true
		}
	}
	return false
}

// ledger is what the calls say of one server: not when something was so, but when it surely was.
type ledger struct {
	server  inventory.ServerID
	records []record
}

// each goes through the calls about the server that match.
func (l *ledger) each(do func(r *record), ops ...op) {
	for i := range l.records {
		for _, wanted := range ops {
			if l.records[i].Server == l.server && l.records[i].Op == wanted {
				do(&l.records[i])
			}
		}
	}
}

// next is when the first of the calls that match was made, not before from.
func (l *ledger) next(from int64, match func(r *record) bool) int64 {
	first := int64(math.MaxInt64)
	for i := range l.records {
		if r := &l.records[i]; r.Server == l.server && r.Returned >= from && match(r) {
			first = min(first, max(r.Called, from))
		}
	}
	return first
}

// takesOut are the calls after which a server may not be ready, brings those after which it may be.
func takesOut(r *record) bool {
	return r.Op == opEnd || r.Op == opState && r.State != inventory.StateReady && r.Answer != "in use"
}

func brings(r *record) bool {
	return r.Op == opState && r.State == inventory.StateReady && r.Answer != "in use"
}

// maybeTaken are the times at which somebody may have had the server.
func (l *ledger) maybeTaken() (spans []span) {
	l.each(func(r *record) {
		if r.Reservation == "" {
			return
		}
		until := r.Until // of the reservation as it was made; a renewal or a conversion may have made it longer
		l.each(func(o *record) {
			if o.Reservation != r.Reservation {
				return
			}
			switch {
			case o.Op == opConvert && (o.done() || o.Answer == unknownAnswer):
				until = l.endOf(o.Binding)
			case o.Op == opRenew && o.Answer == "ok":
				until = max(until, o.Until)
			case o.Op == opRenew:
				for _, t := range o.Renewed {
					until = max(until, t)
				}
			}
		}, opConvert, opRenew)
		l.each(func(o *record) {
			if o.Op == opCancel && o.Reservation == r.Reservation && o.Answer == "cancelled" {
				until = min(until, o.Returned)
			}
		}, opCancel)
		spans = append(spans, span{r.Called, until})
	}, opReserve)
	return spans
}

// endOf is when a binding had surely ended.
func (l *ledger) endOf(b reservation.BindingID) int64 {
	end := int64(math.MaxInt64)
	l.each(func(r *record) {
		if r.Binding == b && r.done() {
			end = min(end, r.Returned)
		}
	}, opEnd)
	return end
}

// surelyFree are the times at which the server was ready and nobody had it.
func (l *ledger) surelyFree() (spans []span) {
	ready := []span{{math.MinInt64, l.next(math.MinInt64, takesOut)}}
	l.each(func(r *record) {
		ambiguous := false
		l.each(func(o *record) { ambiguous = ambiguous || takesOut(o) && o.span().meets(r.span()) }, opEnd, opState)
		if r.done() && brings(r) && !ambiguous {
			ready = append(ready, span{r.Returned, l.next(r.Returned, takesOut)})
		}
	}, opState)
	for _, s := range ready {
		spans = append(spans, cutOut(s, l.maybeTaken())...)
	}
	return spans
}

// cutOut cuts the holes out of a span.
func cutOut(s span, holes []span) []span {
	left := []span{s}
	for _, hole := range holes {
		var cut []span
		for _, piece := range left {
			if !piece.meets(hole) {
				cut = append(cut, piece)
				continue
			}
			if piece.from < hole.from {
				cut = append(cut, span{piece.from, hole.from - 1})
			}
			if hole.to < piece.to {
				cut = append(cut, span{hole.to + 1, piece.to})
			}
		}
		left = cut
	}
	return left
}

// surelyGone are the times at which the server was not to be had: held, sold, or not ready.
func (l *ledger) surelyGone() (spans []span) {
	l.each(func(r *record) { // held
		if r.Answer == "reserved" {
			spans = append(spans, span{r.Returned, min(r.Until-1, l.next(r.Called, func(o *record) bool {
				return o.Op == opCancel && o.Reservation == r.Reservation || takesOut(o)
			}))})
		}
	}, opReserve)
	l.each(func(r *record) { // held on, or sold
		switch {
		case r.Op == opRenew && r.Answer == "ok":
			spans = append(spans, span{r.Returned, min(r.Until-1, l.next(r.Called, func(o *record) bool {
				return o.Op == opCancel && o.Reservation == r.Reservation || takesOut(o)
			}))})
		case r.Op == opConvert && r.Answer == "ok":
			spans = append(spans, span{r.Returned, l.next(r.Called, func(o *record) bool { return o.Op == opEnd && o.Binding == r.Binding })})
		}
	}, opRenew, opConvert)
	l.each(func(r *record) { // not ready
		ambiguous := false
		l.each(func(o *record) { ambiguous = ambiguous || brings(o) && o.span().meets(r.span()) }, opState)
		if r.done() && takesOut(r) && !ambiguous {
			spans = append(spans, span{r.Returned, l.next(r.Returned, brings)})
		}
	}, opEnd, opState)
	return spans
}
