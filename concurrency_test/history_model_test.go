//go:build gates

package concurrency_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"allocator/inventory"
	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// historyHold is how long a hold lives in a history.
const historyHold = time.Second

// record is one call of a history: what a client asked, when, and what it was told, when. Times are Unix microseconds,
// like the database's.
type record struct {
	Process string `json:"process"`
	Number  int    `json:"number"` // within the process
	Client  int    `json:"client"`
	Op      op     `json:"op"`

	Server      inventory.ServerID    `json:"server,omitempty"` // asked for, or learned
	Reservation reservation.ID        `json:"reservation,omitempty"`
	Binding     reservation.BindingID `json:"binding,omitempty"`
	Key         string                `json:"key,omitempty"`
	Generation  int64                 `json:"generation,omitempty"` // of the token that was shown; 0: none was needed
	State       inventory.State       `json:"state,omitempty"`
	Force       bool                  `json:"force,omitempty"`

	Called   int64  `json:"called"`
	Returned int64  `json:"returned,omitempty"` // 0: it was never answered
	Answer   string `json:"answer,omitempty"`
	At       int64  `json:"at,omitempty"`    // the database's clock by which it was decided
	Until    int64  `json:"until,omitempty"` // the deadline that was told

	Renewed []int64 `json:"renewed,omitempty"` // deadlines that a renewal of unknown outcome may have set

	Place   gate.Place `json:"place,omitempty"` // where the call was to meet a fault
	Fault   fault      `json:"fault,omitempty"`
	Reached bool       `json:"reached,omitempty"` // and it came there
}

// op is what a client asked for.
type op string

const (
	opReserve  op = "reserve"
	opRead     op = "read" // a reservation's state: of an order that was asked for again, or of the final inspection
	opRenew    op = "renew"
	opCancel   op = "cancel"
	opConvert  op = "convert"
	opTakeOver op = "take over"
	opEnd      op = "end"
	opState    op = "state"
	opSweep    op = "sweep"   // of all organizations
	opInspect  op = "inspect" // what stands on the server in the end, by SQL
)

// unknownAnswer is the answer of a call whose answer was lost.
const unknownAnswer = "unknown"

// owned is one server: who has it, until when, and how the earlier ones lost it.
type owned struct {
	res        reservation.ID // "": nobody holds it
	generation int64
	until      int64
	bound      reservation.BindingID
	state      inventory.State
	over       string // "RES=how;" of each reservation that is over
}

func (s owned) live(at int64) bool { return s.res != "" && at < s.until }

// end lets the hold end.
func (s owned) end(how string) owned {
	if s.res != "" {
		s.over += fmt.Sprintf("%s=%s/%d;", s.res, how, s.generation)
	}
	s.res, s.generation, s.until = "", 0, 0
	return s
}

// was tells how a reservation ended, "" while it is not over, and the generation that it came to.
func (s owned) was(id reservation.ID) (how string, generation int64) {
	_, rest, found := strings.Cut(s.over, string(id)+"=")
	if !found {
		return "", s.generation
	}
	rest, _, _ = strings.Cut(rest, ";")
	how, text, _ := strings.Cut(rest, "/")
	_, _ = fmt.Sscan(text, &generation)
	return how, generation
}

// serverModel says which histories one server may have. It knows nothing of the implementation: one owner at a time,
// nothing decided past a deadline, and every refusal true at some moment of its call.
var serverModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{owned{state: inventory.StateReady}} },
	Step: func(state, input, _ any) []any {
		s, r := state.(owned), input.(record)
		var next []any
		for _, n := range steps[r.Op](s, &r) {
			next = append(next, n)
		}
		if r.Answer == unknownAnswer { // both worlds
			next = append(next, s)
		}
		return next
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// steps return the states in which an answer can leave a server; none when the answer is impossible.
var steps = map[op]func(s owned, r *record) []owned{
	opReserve: stepReserve, opRead: stepRead, opRenew: stepRenew, opCancel: stepCancel, opConvert: stepConvert,
	opTakeOver: stepTakeOver, opEnd: stepEnd, opState: stepState, opInspect: stepInspect,
}

func same(s owned, possible bool) []owned {
	if possible {
		return []owned{s}
	}
	return nil
}

func stepReserve(s owned, r *record) []owned {
	switch r.Answer {
	case "reserved", unknownAnswer:
		if s.bound != "" || s.state != inventory.StateReady || s.live(r.At) {
			return nil
		}
		s = s.end("expired")
		s.res, s.generation, s.until = r.Reservation, 1, r.Until
		return []owned{s}
	case "no_capacity": // asked for this server alone, so it was not to be had at some moment of the call
		return same(s, s.bound != "" || s.state != inventory.StateReady || s.live(r.Called))
	default: // contended: it was locked
		return []owned{s}
	}
}

func stepRead(s owned, r *record) []owned {
	how, _ := s.was(r.Reservation)
	if r.Answer == "held" {
		return same(s, s.res == r.Reservation && s.live(r.Called))
	}
	if r.Answer == "expired" {
		return expired(s, r)
	}
	return same(s, how == r.Answer)
}

// expired is a state in which the hold's deadline has passed; from then on it is over.
func expired(s owned, r *record) []owned {
	if s.res == r.Reservation {
		return same(s.end("expired"), s.until <= r.Returned)
	}
	how, _ := s.was(r.Reservation)
	return same(s, how == "expired")
}

// refused judges the answers that all changes of a reservation have in common.
func refused(s owned, r *record) []owned {
	how, generation := s.was(r.Reservation)
	switch r.Answer {
	case "expired":
		return expired(s, r)
	case "not holder":
		return same(s, r.Generation != 0 && r.Generation != generation)
	default: // cancelled, converted
		return same(s, how == r.Answer)
	}
}

// holder tells whether the hold is the one asked about, and asked by its holder.
func holder(s owned, r *record) bool {
	return s.res == r.Reservation && (r.Generation == 0 || r.Generation == s.generation)
}

func stepRenew(s owned, r *record) []owned {
	switch r.Answer {
	case "ok":
		r.Renewed = []int64{r.Until}
		fallthrough
	case unknownAnswer:
		var next []owned
		for _, until := range r.Renewed {
			if holder(s, r) && s.live(until-historyHold.Microseconds()) {
				renewed := s
				renewed.until = until
				next = append(next, renewed)
			}
		}
		return next
	case "renewal limit":
		return same(s, holder(s, r) && s.live(r.Called))
	default:
		return refused(s, r)
	}
}

func stepCancel(s owned, r *record) []owned {
	if how, _ := s.was(r.Reservation); how == "cancelled" && r.Answer == "cancelled" {
		return []owned{s} // again
	}
	if r.Answer == "cancelled" || r.Answer == unknownAnswer {
		return same(s.end("cancelled"), holder(s, r) && s.live(cmp.Or(r.At, r.Called)))
	}
	return refused(s, r)
}

func stepConvert(s owned, r *record) []owned {
	if how, _ := s.was(r.Reservation); how == "converted" && r.Answer == "repeated" {
		return []owned{s}
	}
	if r.Answer == "ok" || r.Answer == unknownAnswer {
		possible := holder(s, r) && s.live(r.At)
		s = s.end("converted")
		s.bound = r.Binding
		return same(s, possible)
	}
	return refused(s, r)
}

func stepTakeOver(s owned, r *record) []owned {
	if r.Answer == "ok" || r.Answer == unknownAnswer {
		possible := s.res == r.Reservation && s.live(r.Called)
		s.generation++
		return same(s, possible)
	}
	return refused(s, r)
}

func stepEnd(s owned, r *record) []owned {
	if s.bound == r.Binding {
		s.bound, s.state = "", inventory.StateCleaning
	}
	return []owned{s}
}

func stepState(s owned, r *record) []owned {
	occupied := s.bound != "" || s.live(r.Called)
	if r.Answer == "in use" {
		return same(s, s.state != r.State && !r.Force && occupied)
	}
	if s.state == r.State {
		return []owned{s}
	}
	var next []owned
	moved := s
	moved.state = r.State
	if s.res == "" {
		return same(moved, s.bound == "" || r.Force)
	}
	if s.live(r.Called) && r.Force {
		next = append(next, moved.end("cancelled"))
	}
	if s.until <= r.Returned {
		next = append(next, moved.end("expired"))
	}
	return next
}

// stepInspect compares with what SQL found in the end: a hold, dead or alive, or a binding, and the server's state.
func stepInspect(s owned, r *record) []owned {
	if r.Reservation == "" && !s.live(r.Called) { // swept
		return same(s, s.bound == r.Binding && s.state == r.State)
	}
	return same(s, s.res == r.Reservation && s.until == r.Until && s.bound == r.Binding && s.state == r.State)
}
