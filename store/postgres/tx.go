package postgres

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/reservation"
	"allocator/store/postgres/gate"
)

// maxRepeats is how often a transaction that met a deadlock or a serialization failure is repeated from its start.
const maxRepeats = 3

// rollbackTimeout bounds the good-bye to a transaction whose caller may be gone already.
const rollbackTimeout = 2 * time.Second

// tx is one READ COMMITTED transaction whose statements travel in as few round trips as their answers allow: a step
// waits in the queue until somebody needs an answer, and BEGIN and COMMIT travel with the steps beside them. When all of
// them travel together there is neither: what stands before one Sync is one transaction to the server. It is used by one
// goroutine.
type tx struct {
	conn  *pgxpool.Conn
	queue []step
	begun bool
}

// step is one statement, or a place at which a test can stop.
type step struct {
	sql  string
	args []any
	read func(rows pgx.Rows) error // nil: the answer is of no interest
	at   gate.Place
}

// inTx runs fn in a transaction and commits it. A deadlock or a serialization failure repeats the whole, in a fresh
// transaction and never from a savepoint.
func inTx(ctx context.Context, pool *pgxpool.Pool, fn func(ctx context.Context, t *tx) error) error {
	for repeats := 0; ; repeats++ {
		err := once(ctx, pool, fn)
		if errors.Is(err, reservation.ErrOutcomeUnknown) {
			return err // translating the cause would say beside it that nothing was changed
		}
		if err == nil || clashOf(err) != clashRepeat || repeats == maxRepeats {
			return translate(err)
		}
		if err := pause(ctx, repeats); err != nil {
			return err
		}
	}
}

// pause lets the other side of a clash go on before the next try.
func pause(ctx context.Context, repeats int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(time.Duration(repeats+1) * 10 * time.Millisecond)): //nolint:gosec // jitter
		return nil
	}
}

func once(ctx context.Context, pool *pgxpool.Pool, fn func(ctx context.Context, t *tx) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return errors.Join(reservation.ErrUnavailable, err)
	}
	defer conn.Release()
	t := &tx{conn: conn}
	defer t.abandon(ctx) // also when fn panics
	if err := fn(ctx, t); err != nil {
		return err
	}
	return t.commit(ctx)
}

// later queues a statement whose answer nobody waits for; an error of it shows at the next send or at the commit.
func (t *tx) later(sql string, args ...any) { t.queue = append(t.queue, step{sql: sql, args: args}) }

// send sends what is queued and then these steps, in one round trip, and reads the answers in order. The first error
// ends it; the server passes over the statements behind a failed one.
func (t *tx) send(ctx context.Context, steps ...step) error {
	if !t.begun {
		t.queue = append([]step{{sql: `BEGIN ISOLATION LEVEL READ COMMITTED`}}, t.queue...)
		t.begun = true
	}
	steps = append(t.queue, steps...)
	t.queue = nil
	for from := 0; from < len(steps); {
		n := nextStop(ctx, steps[from:])
		if err := t.sendTogether(ctx, steps[from:from+n]); err != nil {
			return err
		}
		from += n
		if from < len(steps) {
			if err := gate.At(ctx, steps[from].at); err != nil {
				return err
			}
			from++
		}
	}
	return nil
}

// nextStop counts the steps before the first place that is armed; without gates that is all of them.
func nextStop(ctx context.Context, steps []step) int {
	for i := range steps {
		if steps[i].at != "" && gate.Armed(ctx, steps[i].at) {
			return i
		}
	}
	return len(steps)
}

func (t *tx) sendTogether(ctx context.Context, steps []step) error {
	batch := &pgx.Batch{}
	for _, s := range steps {
		if s.at != "" {
			continue
		}
		queued := batch.Queue(s.sql, plain(s.args)...)
		if s.read != nil {
			queued.Query(s.read)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	return t.conn.SendBatch(ctx, batch).Close()
}

// plain writes UUIDs as the driver's own type; by theirs it would go the long way over their text.
func plain(args []any) []any {
	for i, arg := range args {
		if id, is := arg.(uuid.UUID); is {
			args[i] = pgtype.UUID{Bytes: id, Valid: true}
		}
	}
	return args
}

// commit sends what is queued and COMMIT with it: each queued statement fails when its answer is no, and then the
// server never comes to the COMMIT.
func (t *tx) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // nothing of the commit was sent
	}
	server := t.conn.Conn().PgConn()
	forgetWarnings(server)
	committed, err := t.sendCommit(ctx)
	switch {
	case err == nil && committed && warned(server):
		return errors.Join(reservation.ErrOutcomeUnknown, errors.New("the server stopped waiting for its standby, which may not have the change"))
	case err == nil && committed:
		return nil
	case err == nil:
		return errors.New("the transaction had failed before its commit, and nothing was stored")
	case commitMayStand(err):
		return errors.Join(reservation.ErrOutcomeUnknown, err)
	default:
		return err
	}
}

// sendCommit tells whether the server says that it has committed. Without BEGIN it commits at the Sync behind the last
// step, and reports an error of that instead of being ready.
func (t *tx) sendCommit(ctx context.Context) (committed bool, err error) {
	if !t.begun && nextStop(ctx, t.queue) == len(t.queue) {
		err := t.sendTogether(ctx, t.queue)
		return err == nil, err
	}
	t.queue = append(t.queue, step{sql: `COMMIT`, read: func(rows pgx.Rows) error {
		rows.Close()
		committed = rows.CommandTag().String() == "COMMIT"
		return rows.Err()
	}})
	err = t.send(ctx)
	return committed, err
}

// commitMayStand tells whether the commit may have happened although its answer is an error: the connection broke after
// something was sent, or the server ended the session while it waited for a standby.
func commitMayStand(err error) bool {
	if _, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok {
		return false // the server was asked what the statements are like, and none of them was run
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code != pgerrcode.QueryCanceled &&
			(pgerrcode.IsOperatorIntervention(pg.Code) || pgerrcode.IsConnectionException(pg.Code))
	}
	return !pgconn.SafeToRetry(err)
}

// abandon rolls back what was not committed, so that the connection can serve others and the server's locks are free
// at once. If that cannot be said, the pool drops the connection and the server rolls back by itself.
func (t *tx) abandon(ctx context.Context) {
	if t.conn.Conn().IsClosed() || t.conn.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_, _ = t.conn.Exec(ctx, `ROLLBACK`) // the pool destroys a connection that is still in a transaction
}

// isBroken tells whether err says that the connection was lost.
func isBroken(err error) bool {
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network)
}

// oneRow reads at most one row with scan and tells through found whether there was one.
func oneRow(found *bool, scan func(row pgx.Rows) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		defer rows.Close()
		*found = false
		if rows.Next() {
			*found = true
			if err := scan(rows); err != nil {
				return err
			}
		}
		rows.Close()
		return rows.Err()
	}
}
