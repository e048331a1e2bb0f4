//go:build gates

package concurrency_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// fault is what can befall a call at a place inside its transaction.
type fault string

const (
	faultSleep  fault = "sleep"  // it stays there a little
	faultError  fault = "error"  // the statement fails for no reason that anybody knows
	faultCancel fault = "cancel" // its caller gives up
	faultCut    fault = "cut"    // its connection to the database is gone
)

var faults = []fault{faultSleep, faultError, faultCancel, faultCut}

// errFault is the error of faultError. All places are before the commit, so a call that it ended changed nothing.
var errFault = errors.New("a fault of the test")

// faultPlaces are the places that a call can come to.
var faultPlaces = map[op][]gate.Place{
	opReserve: {
		gate.ReserveAfterKey, gate.ReserveAfterOpen, gate.ReserveAfterList, gate.ReserveAfterLock, gate.ReserveAfterInsert,
		gate.ReserveBeforeRefusal,
	},
	opRenew:    {gate.ChangeAfterServer, gate.ChangeAfterLock},
	opCancel:   {gate.ChangeAfterServer, gate.ChangeAfterLock},
	opTakeOver: {gate.ChangeAfterServer, gate.ChangeAfterLock},
	opEnd:      {gate.ChangeAfterServer, gate.ChangeAfterLock},
	opState:    {gate.ChangeAfterServer, gate.ChangeAfterLock},
	opConvert:  {gate.ChangeAfterLock, gate.ConvertAfterBinding, gate.ConvertBeforeCommit},
	opSweep:    {gate.SweepAfterPick},
}

// faultEach says that one call in so many is to meet a fault. Of conversions and orders many are refused on the way.
func faultEach(what op) int {
	switch what {
	case opConvert:
		return 3
	case opReserve:
		return 4
	default:
		return 6
	}
}

// call makes a call and writes it down, with the fault that it meets, if it meets one. All that is left to chance was
// drawn when the turn began, so that a seed means the same faults whatever the others did meanwhile.
func (t *turns) call(ctx context.Context, r *record, do func(ctx context.Context) (answer string)) {
	places := faultPlaces[r.Op]
	if t.chance == nil || t.chance.IntN(faultEach(r.Op)) > 0 {
		t.writer.call(r, func() string { return do(ctx) })
		return
	}
	r.Place, r.Fault = places[t.chance.IntN(len(places))], faults[t.chance.IntN(len(faults))]
	length := time.Duration(t.chance.Int64N(int64(20 * time.Millisecond)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, line := withLine(ctx)
	set := &gate.Set{}
	var once sync.Once // who tries again after it succeeds
	set.Arm(r.Place, func(ctx context.Context) (err error) {
		once.Do(func() { err = strike(ctx, r.Fault, length, cancel, line) })
		return err
	})
	t.writer.call(r, func() string {
		answer := do(gate.With(ctx, set))
		r.Reached = set.Reached(r.Place) > 0
		return answer
	})
}

func strike(ctx context.Context, what fault, length time.Duration, cancel func(), line *line) error {
	switch what {
	case faultSleep:
		select {
		case <-ctx.Done():
		case <-time.After(length):
		}
		return nil
	case faultError:
		return errFault
	case faultCancel:
		cancel()
		return nil
	case faultCut:
		return line.cut()
	default:
		return fmt.Errorf("nobody knows the fault %q", what)
	}
}

// line is the latest connection that a call was given.
type line struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

type lineKey struct{}

func withLine(ctx context.Context) (context.Context, *line) {
	l := &line{}
	return context.WithValue(ctx, lineKey{}, l), l
}

// cut closes the socket under the connection, as a network does.
func (l *line) cut() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn.PgConn().Conn().Close()
}

// withLines is a pool like this one that tells calls which connection they have.
func withLines(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Pool, error) {
	config := pool.Config()
	pool.Close()
	prepare := config.PrepareConn
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		if l, asked := ctx.Value(lineKey{}).(*line); asked {
			l.mu.Lock()
			l.conn = conn
			l.mu.Unlock()
		}
		return prepare(ctx, conn)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// sweep sweeps until it is told to stop.
func (h *house) sweep(ctx context.Context) {
	rng := rand.New(rand.NewPCG(h.Seed, 0))
	for turn := uint64(0); ctx.Err() == nil; turn++ {
		t := &turns{house: h, chance: rand.New(rand.NewPCG(h.Seed+1, turn))}
		t.call(ctx, &record{Op: opSweep}, func(ctx context.Context) string {
			_, err := h.reservations.Sweep(ctx, batch)
			answer := lost(err)
			if answer != "ok" && answer != unknownAnswer && answer != unavailable {
				fmt.Fprintln(os.Stderr, "sweep:", err)
				os.Exit(1)
			}
			return answer
		})
		pause(ctx, rng, 200*time.Millisecond)
	}
}

// lost is an answer in a word, or that it was lost. "Nothing was changed" is believed, and so is tested.
func lost(err error) string {
	switch {
	case errors.Is(err, reservation.ErrOutcomeUnknown):
		return unknownAnswer
	case errors.Is(err, reservation.ErrUnavailable), errors.Is(err, errFault):
		return unavailable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unknownAnswer
	default:
		return word(err)
	}
}

// unavailable is the answer of a call that was told to have changed nothing.
const unavailable = "unavailable"
