package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/events"
	"allocator/inventory"
)

// Servers keeps the records of servers. It implements inventory.Store.
type Servers struct{ pool *pgxpool.Pool }

var _ inventory.Store = (*Servers)(nil)

// NewServers makes the store.
func NewServers(pool *pgxpool.Pool) *Servers { return &Servers{pool: pool} }

// readCommitted is said and not left to the server's default: a statement behind a lock must see what was committed
// while it waited.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// CreateServer implements inventory.Store.
func (s *Servers) CreateServer(
	ctx context.Context, by inventory.Change, server inventory.Server,
) (created inventory.Server, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, readCommitted, func(tx pgx.Tx) error {
		if err := mustNotHinder(ctx, tx, editorOf(by), server); err != nil {
			return err
		}
		created, err = oneServer(ctx, tx, insertServers+` RETURNING `+serverColumns,
			by.Organization, []serverRecord{recordOf(newID(), &server)})
		if errors.Is(err, pgx.ErrNoRows) {
			return inventory.ErrExists
		}
		if err != nil {
			return err
		}
		return insertAudit(ctx, tx, serverAudit(by, inventory.ActionServerCreated, created.ID,
			map[string]string{"source": created.Source, "external_id": created.ExternalID, "state": string(created.State)}))
	})
	return created, wrapped("create the server", translate(err))
}

// createChunk is how many servers travel to the database at once.
const createChunk = 500

// CreateServers implements inventory.Store.
func (s *Servers) CreateServers(
	ctx context.Context, by inventory.Change, servers []inventory.Server,
) (created inventory.Created, err error) {
	records := inLockOrder(servers)
	err = pgx.BeginTxFunc(ctx, s.pool, readCommitted, func(tx pgx.Tx) error {
		if err := mustNotHinder(ctx, tx, editorOf(by), servers...); err != nil {
			return err
		}
		for chunk := range slices.Chunk(records, createChunk) {
			tag, err := tx.Exec(ctx, insertServers, by.Organization, chunk)
			if err != nil {
				return err
			}
			created.Created += int(tag.RowsAffected())
		}
		created.Existing = len(servers) - created.Created
		if created.Created == 0 {
			return nil
		}
		return insertAudit(ctx, tx, serverAudit(by, inventory.ActionServersCreated, "", map[string]string{
			"created": strconv.Itoa(created.Created), "existing": strconv.Itoa(created.Existing),
		}))
	})
	if err != nil {
		return inventory.Created{}, wrapped("create servers", translate(err))
	}
	return created, nil
}

// inLockOrder gives out ids in the order of the list, which is the order in which the servers will be listed, and sorts
// by what is unique: two imports that come to each other's rows in one order cannot end in a deadlock.
func inLockOrder(servers []inventory.Server) []serverRecord {
	records := make([]serverRecord, len(servers))
	for i := range servers {
		records[i] = recordOf(newID(), &servers[i])
	}
	slices.SortFunc(records, func(a, b serverRecord) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.ExternalID, b.ExternalID))
	})
	return records
}

const serverSQL = `SELECT ` + serverColumns + ` FROM servers s WHERE s.organization_id = $1 AND s.id = $2`

// Server implements inventory.Store.
func (s *Servers) Server(ctx context.Context, org string, id inventory.ServerID) (inventory.Server, error) {
	key, ok := parseID(serverIDPrefix, string(id))
	if !ok {
		return inventory.Server{}, inventory.ErrNotFound
	}
	server, err := oneServer(ctx, s.pool, serverSQL, org, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return server, inventory.ErrNotFound
	}
	return server, wrapped("read the server", translate(err))
}

// UpdateServer implements inventory.Store.
func (s *Servers) UpdateServer(
	ctx context.Context, by inventory.Change, id inventory.ServerID,
	edit func(now inventory.Server, inUse bool) (inventory.Server, []inventory.Changed, error),
) (updated inventory.Server, err error) {
	key, ok := parseID(serverIDPrefix, string(id))
	if !ok {
		return inventory.Server{}, inventory.ErrNotFound
	}
	err = pgx.BeginTxFunc(ctx, s.pool, readCommitted, func(tx pgx.Tx) error {
		// 1. Lock it, and look at it and at what has it in a new statement.
		now, inUse, err := lockForEdit(ctx, tx, by.Organization, key)
		if err != nil {
			return err
		}

		// 2. Ask what it becomes.
		next, changed, err := edit(now, inUse)
		if err != nil || len(changed) == 0 {
			updated = now
			return err
		}

		// 3. See that the editor has a lease on what is changed.
		if err := mayWrite(ctx, tx, editorOf(by), &now, &next, changed); err != nil {
			return err
		}

		// 4. Write that, and who did it.
		updated, err = oneServer(ctx, tx, updateServer, by.Organization, key, recordOf(key, &next))
		if err != nil {
			return err
		}
		return insertAudit(ctx, tx, serverAudit(by, inventory.ActionServerUpdated, id, changedDetail(changed)))
	})
	if err != nil {
		return inventory.Server{}, wrapped("change the server", translate(err))
	}
	return updated, nil
}

func lockForEdit(ctx context.Context, tx pgx.Tx, org string, key uuid.UUID) (now inventory.Server, inUse bool, err error) {
	err = tx.QueryRow(ctx,
		`SELECT true FROM servers s WHERE s.organization_id = $1 AND s.id = $2 FOR UPDATE`, org, key).Scan(&inUse)
	if errors.Is(err, pgx.ErrNoRows) {
		return now, false, inventory.ErrNotFound
	}
	if err != nil {
		return now, false, err
	}
	var row serverRow
	err = tx.QueryRow(ctx, `
		SELECT `+serverColumns+`, EXISTS (
			SELECT FROM occupancy o
			LEFT JOIN reservations r ON r.organization_id = o.organization_id AND r.id = o.reservation_id
			WHERE o.organization_id = s.organization_id AND o.server_id = s.id
				AND (o.binding_id IS NOT NULL OR r.expires_at > clock_timestamp()))
		FROM servers s WHERE s.organization_id = $1 AND s.id = $2`, org, key).Scan(append(row.targets(), &inUse)...)
	if err != nil {
		return now, false, err
	}
	now, err = row.server()
	return now, inUse, err
}

// oneServer runs a statement that gives one server, or pgx.ErrNoRows.
func oneServer(ctx context.Context, q querier, sql string, args ...any) (inventory.Server, error) {
	var row serverRow
	if err := q.QueryRow(ctx, sql, args...).Scan(row.targets()...); err != nil {
		return inventory.Server{}, err
	}
	return row.server()
}

// serverAudit is the entry for something that was done to a server, or to many when the id is empty.
func serverAudit(by inventory.Change, action string, id inventory.ServerID, detail map[string]string) events.AuditEntry {
	return events.AuditEntry{
		OrganizationID: by.Organization,
		ActorKind:      by.ActorKind,
		ActorID:        by.ActorID,
		Action:         action,
		Subject:        string(id),
		Outcome:        events.OutcomeDone,
		RequestID:      by.RequestID,
		Detail:         detail,
	}
}
