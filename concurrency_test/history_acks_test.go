//go:build gates

package concurrency_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/events"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// acknowledged is the event that an acknowledged call must have left.
func (r *record) acknowledged() events.Type {
	switch string(r.Op) + " " + r.Answer {
	case "reserve reserved":
		return events.ReservationHeld
	case "renew ok":
		return events.ReservationRenewed
	case "cancel cancelled":
		return events.ReservationCancelled
	case "convert ok", "convert repeated":
		return events.ReservationConverted
	case "take over ok":
		return events.ReservationTakenOver
	case "end ok":
		return events.BindingEnded
	default:
		return ""
	}
}

// acknowledgedAndGoneSQL is I3: what the clients wrote down as acknowledged, joined to its events and to what is there.
const acknowledgedAndGoneSQL = `SELECT concat_ws(' ', a.kind, a.reservation, a.binding)
	FROM unnest($2::text[], $3::uuid[], $4::uuid[], $5::timestamptz[], $6::text[]) AS a (kind, reservation, binding, until, key)
	WHERE NOT EXISTS (SELECT FROM event_feed e WHERE e.organization_id = $1 AND e.type = a.kind
			AND (a.reservation IS NULL OR e.reservation_id = a.reservation) AND (a.binding IS NULL OR e.binding_id = a.binding)
			AND (a.kind <> 'reservation.renewed' OR (e.data ->> 'expires_at')::timestamptz = a.until))
		OR NOT EXISTS (SELECT FROM reservations r
			LEFT JOIN bindings b ON (b.organization_id, b.reservation_id) = (r.organization_id, r.id)
			WHERE r.organization_id = $1 AND (r.id = a.reservation OR b.id = a.binding) AND CASE a.kind
				WHEN 'reservation.held' THEN r.idempotency_key = a.key
				WHEN 'reservation.renewed' THEN r.expires_at >= a.until
				WHEN 'reservation.cancelled' THEN r.state = 'cancelled'
				WHEN 'reservation.converted' THEN r.state = 'converted' AND b.id = a.binding
				WHEN 'reservation.taken_over' THEN r.generation > 1
				WHEN 'binding.ended' THEN b.ended_at IS NOT NULL END)`

// acknowledgedAndGone are the acknowledged calls of which the database does not know.
func (w *world) acknowledgedAndGone(org identity.OrganizationID, records []record) []string {
	w.t.Helper()
	var kinds, keys []string
	var reservations, bindings []*uuid.UUID
	var untils []time.Time
	for i := range records {
		r := &records[i]
		kind := r.acknowledged()
		if kind == "" {
			continue
		}
		kinds, keys, untils = append(kinds, string(kind)), append(keys, r.Key), append(untils, time.UnixMicro(r.Until))
		reservations, bindings = append(reservations, rawOrNil(string(r.Reservation))), append(bindings, rawOrNil(string(r.Binding)))
	}
	return many[string](w, acknowledgedAndGoneSQL, org, kinds, reservations, bindings, untils, keys)
}

func rawOrNil(id string) *uuid.UUID {
	if id == "" {
		return nil
	}
	raw := rawID(id)
	return &raw
}

// refusedWhileFreeSQL is I5: a refusal of everything during which, and for a time before, one server was ready and had no
// owner, by all that reservations, bindings and events tell. It is for requests that every server fits.
const refusedWhileFreeSQL = `WITH owned AS MATERIALIZED (
		SELECT server_id, since, upto FROM (` + ownedSQL + `) o WHERE organization_id = $1
	), moved AS MATERIALIZED (
		SELECT server_id, at, data ->> 'state' AS state FROM events WHERE organization_id = $1 AND type = 'server.state_changed'
	)
	SELECT concat_ws(' ', a.called, s.id) FROM unnest($2::timestamptz[], $3::timestamptz[]) AS a (called, returned)
	JOIN servers s ON s.organization_id = $1
	WHERE NOT EXISTS (SELECT FROM owned o WHERE o.server_id = s.id AND o.since <= a.returned AND o.upto >= a.called - $4::interval)
		AND NOT EXISTS (SELECT FROM moved m WHERE m.server_id = s.id AND m.at BETWEEN a.called - $4::interval AND a.returned)
		AND coalesce((SELECT m.state FROM moved m WHERE m.server_id = s.id AND m.at < a.called ORDER BY m.at DESC LIMIT 1), 'ready') = 'ready'`

// refusedWhileFree asks the database's own history of the refusals that named no server. What others changed is there by
// its clock before it can be seen, by as much as the longest call took at most; a second more is for those whose caller
// did not wait for the end.
func (w *world) refusedWhileFree(org identity.OrganizationID, records []record) []string {
	w.t.Helper()
	longest := int64(0)
	var called, returned []time.Time
	for i := range records {
		r := &records[i]
		if r.Answer != unknownAnswer && r.Op != opInspect {
			longest = max(longest, r.Returned-r.Called)
		}
		if r.Op == opReserve && r.Server == "" && r.Answer == string(allocation.OutcomeNoCapacity) {
			called, returned = append(called, time.UnixMicro(r.Called)), append(returned, time.UnixMicro(r.Returned))
		}
	}
	return many[string](w, refusedWhileFreeSQL, org, called, returned, time.Duration(longest)*time.Microsecond+time.Second)
}

// What was acknowledged is looked for in the end, and what is not there is told; what is there is not.
//
// Requirements: R51.
func TestAcknowledgedAndGoneIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(3)
	stays, goes, sold := w.held("stays").Reservation, w.held("goes").Reservation, w.held("sold").Reservation
	_, err := w.reservations.Cancel(w.ctx, w.caller, goes.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(t, err)
	bound, err := w.reservations.Convert(w.ctx, w.caller, sold.ID, "", "service")
	require.NoError(t, err)
	held := record{Op: opReserve, Answer: "reserved", Reservation: stays.ID, Key: stays.IdempotencyKey}
	until := stays.ExpiresAt.UnixMicro()
	require.Empty(t, w.acknowledgedAndGone(org, []record{
		held,
		{Op: opCancel, Answer: "cancelled", Reservation: goes.ID},
		{Op: opConvert, Answer: "ok", Reservation: sold.ID, Binding: bound.Binding.ID},
		{Op: opConvert, Answer: "converted", Reservation: stays.ID}, // a refusal acknowledges nothing
	}))
	for sentence, r := range map[string]record{
		"held, and there is none":         {Op: opReserve, Answer: "reserved", Reservation: reservationID(uuid.New()), Key: "key"},
		"held under another key":          {Op: opReserve, Answer: "reserved", Reservation: stays.ID, Key: "key"},
		"cancelled, and held":             {Op: opCancel, Answer: "cancelled", Reservation: stays.ID},
		"converted, and held":             {Op: opConvert, Answer: "ok", Reservation: stays.ID, Binding: bound.Binding.ID},
		"converted into another binding":  {Op: opConvert, Answer: "ok", Reservation: sold.ID, Binding: bindingID(uuid.New())},
		"renewed, and nobody was told":    {Op: opRenew, Answer: "ok", Reservation: stays.ID, Until: until},
		"taken over, and not":             {Op: opTakeOver, Answer: "ok", Reservation: stays.ID},
		"the service ended, and is there": {Op: opEnd, Answer: "ok", Binding: bound.Binding.ID},
	} {
		require.Len(t, w.acknowledgedAndGone(org, []record{held, r}), 1, sentence)
	}
}

// A refusal of everything is held against the database's history of each server.
//
// Requirements: R35.
func TestRefusalWhileFreeIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.servers(1)[0]
	now := one[time.Time](w, `SELECT clock_timestamp()`)
	refusal := func(from, to time.Duration) []record {
		return []record{{Op: opReserve, Answer: "no_capacity", Called: now.Add(from).UnixMicro(), Returned: now.Add(to).UnixMicro()}}
	}
	before, meanwhile, after := refusal(-time.Hour, -time.Hour+time.Second), refusal(0, time.Second), refusal(time.Hour, time.Hour+time.Second)
	require.Len(t, w.refusedWhileFree(org, meanwhile), 1, "nobody ever had it")
	hold := w.held("a").Reservation
	require.Len(t, w.refusedWhileFree(org, before), 1, "an hour before it was held")
	require.Empty(t, w.refusedWhileFree(org, meanwhile), "it was held")
	_, err := w.reservations.Cancel(w.ctx, w.caller, hold.ID, "", reservation.Cancellation{Reason: reservation.CancelOther})
	require.NoError(t, err)
	require.Len(t, w.refusedWhileFree(org, after), 1, "an hour after it was let go")
	_, err = w.reservations.ChangeServerState(w.ctx, w.caller, reservation.StateChange{ServerID: serverID(server), State: inventory.StateMaintenance, Reason: "round"})
	require.NoError(t, err)
	require.Empty(t, w.refusedWhileFree(org, after), "it was taken out")
}
