package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"allocator/allocation"
)

const decisionColumnsWritten = `organization_id, id, order_id, order_line, unit, outcome, cause, reservation_id,
	server_id, fence, expires_at, by_kind, by_id, body, roster_hash, reasons_hash, base_hash, statuses, sampled`

const insertDecisionSQL = `INSERT INTO decisions (` + decisionColumnsWritten + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`

// A list that stands there already is not written again, so that a storm of refusals does not fill the disk. Looking
// first and inserting without a unique index never waits for another request that writes the same list.
const insertListSQL = `INSERT INTO decision_lists (organization_id, id, hash, body)
	SELECT $1, $2, $3, $4
	WHERE NOT EXISTS (
		SELECT FROM decision_lists WHERE organization_id = $1 AND hash = $3
			AND id >= uuid_v7_floor(date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'))`

// Decide implements allocation.Tx. Its statements travel with the commit: each of them fails if it cannot be done.
func (r *reserving) Decide(_ context.Context, d *allocation.Decision) error {
	if d.ID == "" {
		d.ID = r.NewDecisionID()
	}
	id, known := parseID(decisionIDPrefix, string(d.ID))
	if !known {
		return errors.New("a decision was given an id that no store made")
	}
	body, err := decisionBody(d)
	if err != nil {
		return err
	}
	r.writeLists(d)
	r.later(insertDecisionSQL, append(append([]any{
		d.Organization, id, d.Order.OrderID, d.Order.Line, d.Order.Unit, d.Outcome, orNull(string(d.Cause)),
	}, about(d)...), d.By.Kind, orNull(d.By.ID), body,
		d.Pack.Roster.Hash, d.Pack.Reasons.Hash, d.Pack.Base.Hash, packNumbers(d.Pack.Statuses), d.Pack.Sampled)...)
	return nil
}

// about are the columns of the reservation that a decision is about, and of what was made with it.
func about(d *allocation.Decision) []any {
	columns := make([]any, 4)
	if id, known := parseID(reservationIDPrefix, string(d.Reservation)); known {
		columns[0] = id
	}
	if d.Made != nil {
		server, _ := parseID(serverIDPrefix, string(d.Made.Server.ID))
		columns[1], columns[2], columns[3] = server, d.Made.Fence, d.Made.ExpiresAt
	}
	return columns
}

// decisionBody writes a decision without a sentence that stands in it twice.
func decisionBody(d *allocation.Decision) ([]byte, error) {
	slim := *d
	if d.Choice != nil && d.Choice.Text == d.Text {
		choice := *d.Choice
		choice.Text, slim.Choice = "", &choice
	}
	return json.Marshal(&slim)
}

func (r *reserving) writeLists(d *allocation.Decision) {
	for _, list := range []allocation.Blob{d.Pack.Roster, d.Pack.Reasons, d.Pack.Base} {
		r.writeList(d, list)
	}
}

// writeList queues one of the lists of a decision, unless this process knows that it stands there already.
func (r *reserving) writeList(d *allocation.Decision, list allocation.Blob) {
	if list.Body == nil || r.lists.known(list.Hash) {
		return
	}
	r.later(insertListSQL, d.Organization, newID(), list.Hash, list.Body)
	r.written = append(r.written, list.Hash)
}
