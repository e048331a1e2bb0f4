package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/identity"
	"allocator/inventory"
	"allocator/lease"
	"allocator/reservation"
)

// edited is a server of a bundle, and the services by which it is changed.
type edited struct {
	*leaseBundle
	servers *inventory.Service
	states  *reservation.Service
	id      inventory.ServerID
}

func setupEdited(t *testing.T) *edited {
	t.Helper()
	b := setupLeases(t)
	e := &edited{leaseBundle: b, servers: inventory.NewService(NewServers(b.pool)), states: reservation.NewService(NewReservations(b.pool), reservation.TokenKeys{})}
	made, err := e.servers.Create(t.Context(), inventory.Change{Organization: org, ActorKind: "person", ActorID: "x"}, inventory.Server{
		Source: "test", ExternalID: "1", Site: "FSN1", Rack: "A12", Position: "17", State: inventory.StateReady,
	})
	require.NoError(t, err)
	e.id = made.ID
	return e
}

// tag changes the record as somebody who works on the database itself.
func (e *edited) tag(holder, tag string) error {
	by := inventory.Change{Organization: org, ActorKind: "person", ActorID: "x", Editor: holder}
	_, err := e.servers.Update(e.t.Context(), by, e.id, inventory.Patch{Tags: inventory.To([]string{tag})}, 0)
	return err
}

func (e *edited) move(holder string, to inventory.State) error {
	caller := identity.LocalCaller(org, identity.Actor{Kind: identity.ActorPerson, ID: "x"})
	_, err := e.states.ChangeServerState(e.t.Context(), caller, reservation.StateChange{ServerID: e.id, State: to, Reason: "fan", Editor: holder})
	return err
}

func (e *edited) tags() []string {
	return read[[]string](e.t, e.pool, `SELECT tags FROM servers`)
}

// A write that comes while its lease is being taken over waits, and is refused: the lease is looked at in the transaction
// that writes, on locked rows, and by the database's clock.
//
// Requirements: E11, E14, E20.
func TestLeaseIsCheckedInTheWritingTransaction(t *testing.T) {
	t.Parallel()
	e := setupEdited(t)
	record := keyOf("server:" + string(e.id))
	for name, write := range map[string]func(holder string) error{
		"a correction of the record": func(holder string) error { return e.tag(holder, "late") },
		"a change of state":          func(holder string) error { return e.move(holder, inventory.StateFailed) },
	} {
		e.acquire("anna", record, 60)
		taking := e.begin(t)
		_, err := lease.NewService(LeasesIn(taking), e.rights).TakeOver(t.Context(), writer("bob"), record, 60, "")
		require.NoError(t, err)
		outcome := make(chan error, 1)
		e.waits(t, func() { outcome <- write("anna") })
		require.NoError(t, taking.Commit(t.Context()))
		require.ErrorIs(t, <-outcome, lease.ErrHeld, name)
		require.Empty(t, e.tags(), name)

		_, err = e.one.Release(t.Context(), writer("bob"), record)
		require.NoError(t, err)
		require.ErrorIs(t, write("anna"), lease.ErrLost, name)
		e.acquire("anna", record, 60)
		e.advance(t, time.Minute)
		require.ErrorIs(t, write("anna"), lease.ErrLost, "%s: at its end", name)
		require.Empty(t, e.tags(), name)
		require.Equal(t, "ready", read[string](t, e.pool, `SELECT state FROM servers`), name)
	}
	e.acquire("anna", record, 60)
	require.NoError(t, e.tag("anna", "in time"))
	require.NoError(t, e.move("anna", inventory.StateFailed))
	require.NoError(t, e.move("", inventory.StateReady), "automation needs none")
}

// A lease under which something is being written cannot be given to another before that is committed.
//
// Requirements: E11, E20.
func TestLeaseStandsUntilTheWriteIsCommitted(t *testing.T) {
	t.Parallel()
	e := setupEdited(t)
	record := keyOf("server:" + string(e.id))
	e.acquire("anna", record, 60)
	slow := e.begin(t) // what the write needs last
	_, err := slow.Exec(t.Context(), `LOCK TABLE audit IN SHARE MODE`)
	require.NoError(t, err)
	written, given := make(chan error, 1), make(chan error, 1)
	e.waits(t, func() { written <- e.tag("anna", "slow") })
	e.waits(t, func() {
		_, err := e.one.Leave(context.WithoutCancel(t.Context()), writer("anna"), record.Resource)
		given <- err
	})
	require.NoError(t, slow.Rollback(t.Context()))
	require.NoError(t, <-written)
	require.NoError(t, <-given)
	require.Equal(t, []string{"slow"}, e.tags())
}

// Many servers that come at once are all or none where somebody else edits a rack; those that are there already hinder
// nobody, and so does whoever edits.
//
// Requirements: E04.
func TestManyServersStayOutOfLeasedPlaces(t *testing.T) {
	t.Parallel()
	e := setupEdited(t)
	e.acquire("anna", keyOf("rack:A12", "u17"), 60)
	bring := func(holder string, servers ...inventory.Server) error {
		by := inventory.Change{Organization: org, ActorKind: "person", ActorID: "x", Editor: holder}
		_, err := e.servers.CreateMany(t.Context(), by, servers)
		return err
	}
	at := func(external, rack, position string) inventory.Server {
		return inventory.Server{Source: "test", ExternalID: external, Site: "FSN1", Rack: rack, Position: position, State: inventory.StatePlanned}
	}
	require.ErrorIs(t, bring("", at("2", "A12", "16"), at("3", "A12", "17")), lease.ErrHeld)
	require.Equal(t, 1, read[int](t, e.pool, `SELECT count(*) FROM servers`), "none")
	require.NoError(t, bring("", at("1", "A12", "17"), at("2", "A12", "16")), "1 is there and stays as it is")
	require.NoError(t, bring("anna", at("3", "A12", "17")))
}
