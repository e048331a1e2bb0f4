package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"github.com/google/uuid"

	"allocator/allocation"
	"allocator/inventory"
)

const insertDecisionSQL = `INSERT INTO decisions (organization_id, id, order_id, order_line, unit, outcome, cause,
		reservation_id, by_kind, by_id, body, roster_hash, verdicts_hash, sampled)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

// A list that stands there already is not written again, so that a storm of refusals does not fill the disk. Looking
// first and inserting without a unique index never waits for another request that writes the same list.
const insertListSQL = `INSERT INTO decision_lists (organization_id, id, hash, body)
	SELECT $1, $2, $3, $4
	WHERE NOT EXISTS (
		SELECT FROM decision_lists WHERE organization_id = $1 AND hash = $3
			AND id >= uuid_v7_floor(date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'))`

// A refusal is an event too, so that a webhook can tell of it.
const insertRefusalEventSQL = `INSERT INTO events (organization_id, id, type, actor_kind, actor_id, order_id, decision_id, data)
	VALUES ($1, $2, 'order.refused', $3, $4, $5, $6, jsonb_build_object('outcome', $7::text, 'cause', $8::text))`

// Decide implements allocation.Tx. Its statements travel with the commit: each of them fails if it cannot be done.
func (r *reserving) Decide(_ context.Context, d *allocation.Decision) error {
	if d.ID == "" {
		d.ID = r.NewDecisionID()
	}
	id, known := parseID(decisionIDPrefix, string(d.ID))
	if !known {
		return errors.New("a decision was given an id that no store made")
	}
	body, err := json.Marshal(d)
	if err != nil {
		return err
	}
	roster, verdicts, err := r.writeLists(d)
	if err != nil {
		return err
	}
	var made *uuid.UUID
	if reservation, known := parseID(reservationIDPrefix, string(d.Reservation)); known {
		made = &reservation
	}
	r.later(insertDecisionSQL, d.Organization, id, d.Order.OrderID, d.Order.Line, d.Order.Unit, d.Outcome,
		orNull(string(d.Cause)), made, d.By.Kind, orNull(d.By.ID), body, roster, verdicts, d.Frozen.Sampled)
	if d.Outcome != allocation.OutcomeReserved {
		r.later(insertRefusalEventSQL, d.Organization, newID(), d.By.Kind, orNull(d.By.ID), d.Order.OrderID, id,
			d.Outcome, orNull(string(d.Cause)))
	}
	return nil
}

// writeLists queues the two lists of a decision and returns their hashes; nil where no inventory was looked at.
func (r *reserving) writeLists(d *allocation.Decision) (roster, verdicts []byte, err error) {
	if d.SeenAt == nil {
		return nil, nil, nil
	}
	servers, reasons := packLists(d.Frozen.Candidates)
	if roster, err = r.writeList(d, servers); err != nil {
		return nil, nil, err
	}
	verdicts, err = r.writeList(d, reasons)
	return roster, verdicts, err
}

func (r *reserving) writeList(d *allocation.Decision, list any) ([]byte, error) {
	body, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(body)
	r.later(insertListSQL, d.Organization, newID(), hash[:], body)
	return hash[:], nil
}

// rosterList is which servers were looked at: it changes only when the inventory does.
type rosterList struct {
	V       int         `json:"v"`
	Servers [][3]string `json:"servers"` // id, name, site
}

// verdictList is what spoke against each server of the roster, in its order: an index into the distinct lists of
// reasons, since most servers share theirs with many.
type verdictList struct {
	V       int                   `json:"v"`
	Reasons [][]allocation.Reason `json:"reasons"`
	Of      []int                 `json:"of"`
}

// listVersion is the shape that packLists writes.
const listVersion = 1

func packLists(candidates []allocation.FrozenCandidate) (rosterList, verdictList) {
	roster := rosterList{V: listVersion, Servers: make([][3]string, len(candidates))}
	verdicts := verdictList{V: listVersion, Of: make([]int, len(candidates)), Reasons: [][]allocation.Reason{}}
	for i, c := range candidates {
		roster.Servers[i] = [3]string{string(c.Server), c.Name, c.Site}
		at := slices.IndexFunc(verdicts.Reasons, func(known []allocation.Reason) bool { return slices.Equal(known, c.Reasons) })
		if at < 0 {
			at = len(verdicts.Reasons)
			verdicts.Reasons = append(verdicts.Reasons, c.Reasons)
		}
		verdicts.Of[i] = at
	}
	return roster, verdicts
}

// unpackLists is the reverse of packLists.
func unpackLists(roster rosterList, verdicts verdictList) ([]allocation.FrozenCandidate, error) {
	if roster.V != listVersion || verdicts.V != listVersion || len(roster.Servers) != len(verdicts.Of) {
		return nil, errors.New("a frozen list is of a shape that this version cannot read: run a newer one")
	}
	candidates := make([]allocation.FrozenCandidate, len(roster.Servers))
	for i, s := range roster.Servers {
		reasons := verdicts.Of[i]
		if reasons < 0 || reasons >= len(verdicts.Reasons) {
			return nil, errors.New("a frozen list names reasons that are not in it")
		}
		candidates[i] = allocation.FrozenCandidate{
			Server: inventory.ServerID(s[0]), Name: s[1], Site: s[2], Reasons: verdicts.Reasons[reasons],
		}
	}
	return candidates, nil
}
