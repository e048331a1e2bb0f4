//go:build gates

package concurrency_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/inventory"
	"allocator/reservation"
)

// branch is one organization with the instances that serve it. It answers in the words of the model.
type branch struct {
	*stage
	instances []*lane
	org       identity.OrganizationID
	servers   []uuid.UUID
	holds     []reservation.ID
	tokens    []map[int64]string // of each hold, by generation
	bindings  []reservation.BindingID
}

// newBranch opens the instances. Each reads the inventory for every request: what one of them may have missed for a moment
// is another test's matter.
func newBranch(s *stage, instances int) *branch {
	d := &branch{stage: s}
	for range instances {
		d.instances = append(d.instances, s.openLane(allocation.MaxAge(0)))
	}
	return d
}

// begin makes a fresh organization with servers of those sizes.
func (d *branch) begin(sizes []int) {
	d.t.Helper()
	*d.plays++
	*d = branch{stage: d.stage, instances: d.instances, org: identity.OrganizationID(fmt.Sprint("trace-", *d.plays))}
	d.exec(`INSERT INTO organizations (id, name, hold_limit) VALUES ($1, $1, $2)`, d.org, modelHoldLimit)
	for _, mib := range sizes {
		id := uuid.Must(uuid.NewV7())
		d.exec(`INSERT INTO servers (organization_id, id, source, external_id, site, memory_mib, state) VALUES ($1, $2, 'test', $3, 'FSN1', $4, 'ready')`,
			d.org, id, id.String(), mib)
		d.servers = append(d.servers, id)
	}
}

// crash loses an instance and starts another in its place.
func (d *branch) crash(i int) {
	d.instances[i].pool.Close()
	d.instances[i] = d.openLane(allocation.MaxAge(0))
}

func (d *branch) staff() identity.Caller {
	return identity.LocalCaller(d.org, identity.Actor{Kind: identity.ActorPerson, ID: "staff"})
}

// caller is who shows that generation's token of a hold, or staff who show none.
func (d *branch) caller(hold int, generation int64) (identity.Caller, string) {
	if generation == 0 {
		return d.staff(), ""
	}
	return identity.Caller{
		Organization: d.org, Scopes: identity.NewScopeSet(identity.ScopeCheckout),
		Actor: identity.Actor{Kind: identity.ActorKey, ID: "key_checkout"},
	}, d.tokens[hold][generation]
}

func (d *branch) reserve(l *lane, key string, asked modelOrder) string {
	req := allocation.Request{
		IdempotencyKey: key, Order: reservation.OrderLine{OrderID: asked.order, Line: "1", Unit: 1}, CustomerRef: asked.customer,
	}
	req.Requirements.Memory.MiBMin = int64(asked.mib)
	o, err := l.allocator.Reserve(d.ctx, d.staff(), req)
	switch {
	case errors.Is(err, allocation.ErrIdempotencyMismatch):
		return "mismatch"
	case err != nil:
		return err.Error()
	case o.Code == allocation.OutcomeReserved:
		d.holds = append(d.holds, o.Reservation.ID)
		d.tokens = append(d.tokens, map[int64]string{1: o.HoldToken})
		return fmt.Sprintf("reserved: hold %d on server %d until %s", len(d.holds)-1, d.server(o.Reservation), sinceCurtain(o.Reservation.ExpiresAt))
	case o.Refused():
		return reserveWord(o, nil)
	}
	hold := slices.Index(d.holds, o.Reservation.ID)
	token := fmt.Sprint(o.HoldToken != "")
	if o.HoldToken != "" && o.HoldToken != d.tokens[hold][1] {
		token = "another"
	}
	return fmt.Sprintf("%s: hold %d %s, token %s", o.Code, hold, o.Reservation.State, token)
}

func (d *branch) server(r *reservation.Reservation) int {
	return slices.IndexFunc(d.servers, func(id uuid.UUID) bool { return serverID(id) == r.Server.ID })
}

func (d *branch) renew(l *lane, hold int, generation int64) string {
	caller, token := d.caller(hold, generation)
	r, err := l.reservations.Renew(d.ctx, caller, d.holds[hold], token)
	if err != nil {
		return word(err)
	}
	return "until " + sinceCurtain(r.ExpiresAt)
}

func (d *branch) cancel(l *lane, hold int, generation int64) string {
	caller, token := d.caller(hold, generation)
	r, err := l.reservations.Cancel(d.ctx, caller, d.holds[hold], token, reservation.Cancellation{Reason: reservation.CancelOther})
	if err != nil {
		return word(err)
	}
	return string(r.State)
}

func (d *branch) convert(l *lane, hold int, generation int64, service string) string {
	caller, token := d.caller(hold, generation)
	c, err := l.reservations.Convert(d.ctx, caller, d.holds[hold], token, service)
	if err != nil {
		return word(err)
	}
	if !c.Repeated {
		d.bindings = append(d.bindings, c.Binding.ID)
		return fmt.Sprintf("binding %d", len(d.bindings)-1)
	}
	return fmt.Sprintf("repeated: binding %d", slices.Index(d.bindings, c.Binding.ID))
}

func (d *branch) takeOver(l *lane, hold int) string {
	r, err := l.reservations.TakeOver(d.ctx, d.staff(), d.holds[hold], "staff")
	if err != nil {
		return word(err)
	}
	d.tokens[hold][r.Generation] = l.reservations.HoldToken(r)
	return fmt.Sprintf("generation %d", r.Generation)
}

func (d *branch) end(l *lane, binding int) string {
	b, err := l.reservations.EndBinding(d.ctx, d.staff(), d.bindings[binding], reservation.Ending{Reason: "over"})
	if err != nil || b.Active() {
		return fmt.Sprint("not ended: ", err)
	}
	return "ended"
}

func (d *branch) setState(l *lane, server int, state inventory.State, force bool) string {
	s, err := l.reservations.ChangeServerState(d.ctx, d.staff(), reservation.StateChange{
		ServerID: serverID(d.servers[server]), State: state, Reason: "fan", Force: force,
	})
	if err != nil {
		return word(err)
	}
	return string(s.State)
}

// standing is all that stands, and what the auditor finds.
func (d *branch) standing() (lines string, found []string) {
	d.t.Helper()
	var stands []string
	batch := &pgx.Batch{}
	batch.Queue(`SELECT set_config('desk.organization', $1, false)`, d.org)
	batch.Queue(auditSQL).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	batch.Queue(standingSQL).Query(func(rows pgx.Rows) (err error) {
		stands, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	require.NoError(d.t, d.desk.SendBatch(d.ctx, batch).Close())
	return strings.Join(stands, "\n"), found
}
