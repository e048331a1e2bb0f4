//go:build gates

package concurrency_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/store/postgres/gate"
	"allocator/store/postgres/postgrestest"
)

// The controls: designs that were rejected, each in a small schema of its own, forced into the order of statements that
// breaks it. They show that the orders which the other tests force are the ones that matter. Beside each stands the same
// order with what the product does instead.

// machines is what every rejected design begins with: two tables whose unique indexes cannot exclude each other.
const machines = `
	CREATE TABLE machines (id int PRIMARY KEY);
	INSERT INTO machines SELECT generate_series(1, 30);
	CREATE TABLE holds (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, machine int NOT NULL, state text NOT NULL DEFAULT 'held',
		expires_at timestamptz NOT NULL DEFAULT clock_timestamp() + interval '1 hour', key text UNIQUE);
	CREATE UNIQUE INDEX one_held ON holds (machine) WHERE state = 'held';
	CREATE TABLE bindings (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, machine int NOT NULL, decided_at timestamptz);
	CREATE UNIQUE INDEX one_bound ON bindings (machine);`

// convertMachine promotes the hold of a machine, binding first.
var convertMachine = []string{
	`INSERT INTO bindings (machine) VALUES (7)`, `UPDATE holds SET state = 'converted' WHERE machine = 7 AND state = 'held'`,
}

// owners counts who has the machine.
func (s *session) owners() int {
	return value[int](s, `SELECT (SELECT count(*) FROM holds WHERE machine = 7 AND state = 'held') + (SELECT count(*) FROM bindings WHERE machine = 7)`)
}

// Eight orders over three machines, each locking the whole set before it chooses: while the first has its transaction
// open, the seven others find nothing, and two machines stay unsold. One at a time sells all three in the same order of
// events.
//
// Requirements: R15, R16, R17
func TestControlWholeSetLockedSellsOneOfThree(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lock string
		sold int
	}{
		"the whole set":           {`SELECT id FROM machines m WHERE id <= 3 AND NOT EXISTS (SELECT FROM holds h WHERE h.machine = m.id) ORDER BY id FOR UPDATE SKIP LOCKED`, 1},
		"one candidate at a time": {`SELECT id FROM machines m WHERE id <= 3 AND NOT EXISTS (SELECT FROM holds h WHERE h.machine = m.id) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := bare(t, machines)
			refused := 0
			var orders []*session
			for range 8 {
				s := w.session().do(`BEGIN`)
				orders = append(orders, s)
				switch got := column[int](s, tt.lock); len(got) {
				case 0:
					refused++
				default:
					s.do(`INSERT INTO holds (machine) VALUES ($1)`, got[0])
				}
			}
			for _, s := range orders {
				s.do(`COMMIT`)
			}
			require.Equal(t, tt.sold, one[int](w, `SELECT count(*) FROM holds WHERE state = 'held'`))
			require.Equal(t, 8-tt.sold, refused, "machines that nobody had: %d", 3-tt.sold)
		})
	}
}

// The first 25 chosen before they are locked: nobody is offered machine 26, which is free. Chosen under the lock, it is
// offered; and an empty answer of either means "busy", which only an unlocked read tells from "sold out".
//
// Requirements: R19, R20. Faults: F-R13.
func TestControlLimitBeforeLockingMissesTheFreeMachine(t *testing.T) {
	t.Parallel()
	w := bare(t, machines)
	w.session().do(`BEGIN`).do(`SELECT FROM machines WHERE id <= 25 FOR NO KEY UPDATE`)
	s := w.session()
	require.Empty(t, column[int](s, `SELECT id FROM machines WHERE id IN (SELECT id FROM machines ORDER BY id LIMIT 25) FOR UPDATE SKIP LOCKED`))
	require.Equal(t, []int{26}, column[int](s, `SELECT id FROM machines ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED`))
	require.Empty(t, column[int](s, `SELECT id FROM machines WHERE id <= 25 FOR UPDATE SKIP LOCKED`))
	require.Len(t, column[int](s, `SELECT id FROM machines WHERE id <= 25`), 25, "none of them is sold")
}

// Without a savepoint the first collision poisons the transaction, and what comes after fails with words about something
// else. With one, the next candidate wins in the same transaction.
//
// Requirements: R26, R27
func TestControlNoSavepointPoisonsTheTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken, next := w.server(1024), w.server(1024)
	w.session().hold(taken, "first")

	without := w.session().do(`BEGIN`)
	requireRefused(t, without.try(rawHold, org, next, taken, "raw-second"), "23505", "reservations_one_held_per_server")
	err := without.try(rawHold, org, next, next, "raw-second")
	requireRefused(t, err, "25P02", "")
	require.NotContains(t, err.Error(), "reservations_one_held_per_server", "it names the wrong thing")
	require.NotContains(t, err.Error(), "duplicate key")
	without.do(`COMMIT`)
	require.Zero(t, one[int](w, `SELECT count(*) FROM reservations WHERE order_id = 'raw-second'`), "COMMIT did not fail, and stored nothing")

	with := w.session().do(`BEGIN`).do(`SAVEPOINT candidate`)
	requireRefused(t, with.try(rawHold, org, next, taken, "raw-second"), "23505", "reservations_one_held_per_server")
	with.do(`ROLLBACK TO SAVEPOINT candidate`).do(rawHold, org, next, next, "raw-second").do(`COMMIT`)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE order_id = 'raw-second'`))
}

// Under REPEATABLE READ the second ask sees what the first saw: the sibling's committed reservation is missed, although
// the insert that follows runs into it. Under READ COMMITTED the second ask finds it.
//
// Requirements: R41, R42
func TestControlRepeatableReadMakesTheSecondAskBlind(t *testing.T) {
	t.Parallel()
	for level, found := range map[string]int{"REPEATABLE READ": 0, "SERIALIZABLE": 0, "READ COMMITTED": 1} {
		w := bare(t, machines)
		const ask = `SELECT count(*) FROM holds WHERE key = 'k'`
		late := w.session().do(`BEGIN ISOLATION LEVEL ` + level)
		require.Zero(t, value[int](late, ask), level)
		w.session().do(`INSERT INTO holds (machine, key) VALUES (7, 'k')`)
		require.Equal(t, found, value[int](late, ask), level)
		requireRefused(t, late.try(`INSERT INTO holds (machine, key) VALUES (8, 'k')`), "23505", "holds_key_key")
	}
}

// The service says READ COMMITTED itself, whatever the database's default is: its second ask finds the sibling's
// reservation also where every other session would be blind.
//
// Requirements: R40, R41, R42
func TestServicePinsReadCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`)
	w.pool = postgrestest.Pool(t, w.url)
	w.serve(w.pool)
	require.Equal(t, "repeatable read", one[string](w, `SHOW default_transaction_isolation`))
	w.servers(2)

	first := w.paused(gate.ReserveAfterInsert, request("a"))
	sibling := w.paused(gate.ReserveBeforeRefusal, request("a")) // did not get the lock of the key
	made, late := first(), sibling()
	require.NoError(t, made.err)
	require.NoError(t, late.err)
	require.Equal(t, allocation.OutcomeReserved, made.outcome.Code)
	require.Equal(t, allocation.OutcomeReplayed, late.outcome.Code, "%+v", late.outcome.Decision)
	require.Equal(t, made.outcome.Reservation.ID, late.outcome.Reservation.ID)
}

// One statement that locks a machine and inserts keeps the snapshot it began with: while it waits, a hold of the machine
// is made and converted, and then it sells the bound machine once more. The product's schema refuses that statement too.
//
// Requirements: R07, R49
func TestControlOneStatementThatLocksAndInsertsSellsABoundMachine(t *testing.T) {
	t.Parallel()
	w := bare(t, machines)
	gatekeeper, buyer, other := w.session(), w.session(), w.session()
	gatekeeper.do(`SELECT pg_advisory_lock(1)`)
	buyer.do(`BEGIN`)
	finish := buyer.start(`WITH begun AS MATERIALIZED (SELECT pg_advisory_lock_shared(1)), candidate AS (
			SELECT m.id FROM begun, machines m WHERE m.id = 7
				AND NOT EXISTS (SELECT FROM holds h WHERE h.machine = m.id AND h.state = 'held')
				AND NOT EXISTS (SELECT FROM bindings b WHERE b.machine = m.id)
			FOR UPDATE OF m SKIP LOCKED)
		INSERT INTO holds (machine) SELECT id FROM candidate`)
	other.do(`INSERT INTO holds (machine) VALUES (7)`)
	other.do(`BEGIN`).do(convertMachine[0]).do(convertMachine[1]).do(`COMMIT`)
	gatekeeper.do(`SELECT pg_advisory_unlock(1)`)
	require.NoError(t, finish())
	buyer.do(`COMMIT`)
	require.Equal(t, 2, buyer.owners(), "one live hold and one live binding")

	w = newWorld(t)
	server := w.server(1024)
	gatekeeper, buyer = w.session(), w.session()
	gatekeeper.do(`SELECT pg_advisory_lock(1)`)
	finish = buyer.start(`WITH begun AS MATERIALIZED (SELECT pg_advisory_lock_shared(1)), candidate AS (
			SELECT s.id FROM begun, servers s WHERE s.state = 'ready' AND NOT EXISTS (SELECT FROM occupancy o WHERE o.server_id = s.id)
			FOR UPDATE OF s SKIP LOCKED) ` + holdRow("id", "'late'").with("id", "gen_random_uuid()").from("candidate"))
	r := w.held("a").Reservation
	_, err := w.reservations.Convert(w.ctx, w.caller, r.ID, "", "service")
	require.NoError(t, err)
	gatekeeper.do(`SELECT pg_advisory_unlock(1)`)
	requireRefused(t, finish(), "23505", "occupancy_one_per_server")
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM occupancy WHERE server_id = $1`, server))
	w.sound()
}

// The two indexes alone: the buyer's insert waits on the held index, the conversion commits and leaves it, and the insert
// succeeds. Nobody looked wrongly; nobody looks at all.
//
// Requirements: R07
func TestControlHeldIndexAloneSellsABoundMachine(t *testing.T) {
	t.Parallel()
	w := bare(t, machines)
	requireSoldTwice(t, w, "READ COMMITTED", false)
}

// requireSoldTwice forces a hold of the machine into its conversion, the snapshot of the buyer taken before or not.
func requireSoldTwice(t *testing.T, w *world, level string, snapshotFirst bool) {
	t.Helper()
	converter, buyer := w.session().do(`INSERT INTO holds (machine) VALUES (7)`), w.session()
	buyer.do(`BEGIN ISOLATION LEVEL ` + level)
	if snapshotFirst {
		buyer.do(`SELECT 1`)
	}
	converter.do(`BEGIN`).do(convertMachine[0]).do(convertMachine[1])
	if snapshotFirst {
		converter.do(`COMMIT`)
		require.NoError(t, buyer.try(`INSERT INTO holds (machine) VALUES (7)`))
	} else {
		finish := buyer.start(`INSERT INTO holds (machine) VALUES (7)`)
		converter.do(`COMMIT`)
		require.NoError(t, finish())
	}
	buyer.do(`COMMIT`)
	require.Equal(t, 2, buyer.owners(), "one live hold and one live binding")
}

// looking is a pair of guard triggers that look for the other owner instead of writing one row that both need.
func looking(when string) string {
	return machines + `
	CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF TG_TABLE_NAME = 'holds' AND NEW.state = 'held' AND EXISTS (SELECT FROM bindings WHERE machine = NEW.machine) THEN
			RAISE EXCEPTION USING ERRCODE = 'check_violation', CONSTRAINT = 'looked', MESSAGE = 'it is bound';
		END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER looked ` + when + ` INSERT ON holds FOR EACH ROW EXECUTE FUNCTION look();`
}

// A guard that looks before the row is written is too early: it sees no binding, and then the insert waits until there is
// one.
//
// Requirements: R07
func TestControlGuardThatLooksBeforeIsRacy(t *testing.T) {
	t.Parallel()
	requireSoldTwice(t, bare(t, looking("BEFORE")), "READ COMMITTED", false)
}

// A guard that looks after the row is written is blind under REPEATABLE READ, which a script may choose, and to an UPDATE
// that moves a hold onto the bound machine. Under READ COMMITTED it looks right, which is why it was believed.
//
// Requirements: R07
func TestControlGuardThatLooksAfterIsBlind(t *testing.T) {
	t.Parallel()
	requireSoldTwice(t, bare(t, looking("AFTER")), "REPEATABLE READ", true)

	w := bare(t, looking("AFTER"))
	converter, buyer := w.session().do(`INSERT INTO holds (machine) VALUES (7)`), w.session()
	converter.do(`BEGIN`).do(convertMachine[0]).do(convertMachine[1])
	finish := buyer.start(`INSERT INTO holds (machine) VALUES (7)`)
	converter.do(`COMMIT`)
	requireRefused(t, finish(), "23514", "looked")
	require.Equal(t, 1, buyer.owners())

	buyer.do(`INSERT INTO holds (machine) VALUES (8)`)
	require.Equal(t, 1, buyer.affected(`UPDATE holds SET machine = 7 WHERE machine = 8`))
	require.Equal(t, 2, buyer.owners(), "moved onto the bound machine")
}

// now() is the time at which the transaction began. A conversion that was begun in time and acts after the deadline
// still converts by it; by the clock of its statement it does not.
//
// Requirements: R51, R52
func TestControlNowConvertsLate(t *testing.T) {
	t.Parallel()
	for clock, converted := range map[string]int{"now()": 1, "clock_timestamp()": 0} {
		w := bare(t, machines)
		s := w.session().do(`BEGIN`).do(`SELECT now()`)
		w.session().do(`INSERT INTO holds (machine, expires_at) VALUES (7, clock_timestamp())`) // it is dead as soon as it is written
		require.Equal(t, converted, s.affected(`UPDATE holds SET state = 'converted' WHERE machine = 7 AND state = 'held' AND expires_at > `+clock), clock)
		s.do(`COMMIT`)
	}
}

// A clock that is read in the statement that takes the lock is read before the wait for it: however long that takes, the
// hold looks as alive as it was when the wait began. A new statement behind the lock reads the time that counts.
//
// Requirements: R52
func TestControlClockOfTheLockingStatementIsReadBeforeTheWait(t *testing.T) {
	t.Parallel()
	w := bare(t, machines)
	w.exec(`CREATE TABLE told (at timestamptz)`)
	w.exec(`INSERT INTO holds (machine) VALUES (7)`)
	slow, converter := w.session(), w.session()
	slow.do(`BEGIN`).do(`SELECT FROM holds WHERE machine = 7 FOR UPDATE`)
	converter.do(`BEGIN`)
	finish := converter.start(`INSERT INTO told SELECT at FROM (SELECT clock_timestamp() AS at FROM holds WHERE machine = 7 FOR UPDATE) locked`)
	deadline := one[time.Time](w, `SELECT clock_timestamp()`) // passes while the converter waits
	slow.do(`COMMIT`)
	require.NoError(t, finish())
	require.True(t, value[bool](converter, `SELECT at < $1 FROM told`, deadline), "by that clock the hold is alive")
	require.True(t, value[bool](converter, `SELECT clock_timestamp() > $1`, deadline), "and it is dead")
}

// A condition on the clock in the UPDATE itself is judged before the wait, too, and not again if the row was only locked
// and not changed meanwhile: it converts after the deadline.
//
// Requirements: R51, R52
func TestControlUpdateThatWaitedConvertsLate(t *testing.T) {
	t.Parallel()
	for life := 250 * time.Millisecond; ; life *= 2 {
		w := bare(t, machines)
		slow, converter := w.session(), w.session()
		deadline := value[time.Time](slow, `INSERT INTO holds (machine, expires_at) VALUES (7, clock_timestamp() + make_interval(secs => $1)) RETURNING expires_at`, life.Seconds())
		slow.do(`BEGIN`).do(`SELECT FROM holds WHERE machine = 7 FOR UPDATE`)
		finish, inTime := converter.send(`UPDATE holds SET state = 'converted' WHERE machine = 7 AND state = 'held' AND expires_at > clock_timestamp()`)
		if !inTime && life < patience {
			continue // it came after the deadline and found nothing: give it more time
		}
		passes(w, deadline)
		slow.do(`COMMIT`)
		require.NoError(t, finish())
		require.Equal(t, "converted", one[string](w, `SELECT state FROM holds`), "although its deadline had passed")
		return
	}
}

// passes returns when the database's clock has passed an instant.
func passes(w *world, at time.Time) {
	w.t.Helper()
	w.exec(`SELECT pg_sleep(greatest(0, extract(epoch FROM $1::timestamptz - clock_timestamp())))`, at)
	require.True(w.t, one[bool](w, `SELECT clock_timestamp() >= $1`, at))
}

// A sweep that reads ids and then moves them by id expires a hold that was renewed in between. With state and time in the
// UPDATE it passes it over.
//
// Requirements: R60. Faults: F-R5.
func TestControlSweepByIDsExpiresARenewedHold(t *testing.T) {
	t.Parallel()
	for guard, swept := range map[string]int{"true": 1, "state = 'held' AND expires_at <= clock_timestamp()": 0} {
		w := bare(t, machines)
		sweeper, owner := w.session(), w.session()
		owner.do(`INSERT INTO holds (machine, expires_at) VALUES (7, clock_timestamp() + interval '50 milliseconds')`)
		owner.do(`BEGIN`).do(`UPDATE holds SET expires_at = clock_timestamp() + interval '1 hour' WHERE machine = 7`) // in time or not: the sweep cannot know
		passes(w, one[time.Time](w, `SELECT expires_at FROM holds WHERE machine = 7`))
		due := column[int](sweeper, `SELECT id FROM holds WHERE state = 'held' AND expires_at <= clock_timestamp()`)
		require.Len(t, due, 1)
		owner.do(`COMMIT`)
		require.Equal(t, swept, sweeper.affected(`UPDATE holds SET state = 'expired' WHERE id = ANY ($1) AND `+guard, due))
		require.Equal(t, swept, one[int](w, `SELECT count(*) FROM holds WHERE state = 'expired' AND expires_at > clock_timestamp()`), "expired while alive")
	}
}

// referring is the sale path with a foreign key to the machine.
const referring = machines + `
	ALTER TABLE holds ADD FOREIGN KEY (machine) REFERENCES machines;
	ALTER TABLE bindings ADD FOREIGN KEY (machine) REFERENCES machines;
	CREATE TABLE notes (machine int REFERENCES machines);`

// With a foreign key, whoever writes any row about a machine keeps others from seeing it free: SKIP LOCKED passes it
// over as long as that transaction is open.
//
// Requirements: R15, R36. Faults: F-R12.
func TestControlForeignKeySkipsAFreeMachine(t *testing.T) {
	t.Parallel()
	for schema, offered := range map[string]int{referring: 0, machines + `CREATE TABLE notes (machine int);`: 1} {
		w := bare(t, schema)
		w.session().do(`BEGIN`).do(`INSERT INTO notes VALUES (7)`)
		require.Len(t, column[int](w.session(), `SELECT id FROM machines WHERE id = 7 FOR UPDATE SKIP LOCKED`), offered)
	}
}

// With a foreign key a lost race is a deadlock: the buyer has the machine locked and waits on the index for the
// conversion, whose binding waits for the machine. Without one the conversion goes through, and the buyer's insert is
// what it comes to.
//
// Requirements: R29, R47
func TestControlForeignKeyTurnsALostRaceIntoADeadlock(t *testing.T) {
	t.Parallel()
	for schema, deadlocks := range map[string]int{referring: 1, machines: 0} {
		w := bare(t, schema)
		converter, buyer := w.session().do(`INSERT INTO holds (machine) VALUES (7)`), w.session()
		converter.do(`BEGIN`).do(convertMachine[1]) // the state first
		buyer.do(`BEGIN`).do(`SELECT FROM machines WHERE id = 7 FOR UPDATE`)
		finish := buyer.start(`INSERT INTO holds (machine) VALUES (7)`)
		converted := converter.try(convertMachine[0])
		_ = converter.try(`COMMIT`) // a rollback, if it was the victim
		bought := finish()
		broken := 0
		for _, err := range []error{converted, bought} {
			if code, _ := refusal(err); code == "40P01" {
				broken++
			}
		}
		require.Equal(t, deadlocks, broken, "conversion: %v, hold: %v", converted, bought)
		require.Equal(t, deadlocks > 0, converted != nil || bought != nil)
	}
}
