package postgres

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// LeaseWatcher is told where leases have changed.
type LeaseWatcher interface {
	// Changed says that the leases of a resource have changed.
	Changed(organization, resource string)
	// AllChanged says that changes may have been missed.
	AllChanged()
}

// The pace of listening.
const (
	pollLeasesEvery = 2 * time.Second  // where a pooler stands in between and nobody can listen
	askAliveEvery   = 30 * time.Second // a connection that nothing comes over may be dead
	listenAgain     = time.Second
)

// ListenLeases passes on what claims tell in their transactions, until ctx ends. It has a connection of its own beside the
// pool; when that is lost it makes another, and everything counts as changed. With poll it asks for everything every two
// seconds instead: a pooler in transaction mode gives no notifications.
func ListenLeases(ctx context.Context, pool *pgxpool.Pool, watcher LeaseWatcher, poll bool, log *slog.Logger) {
	wait := listenAgain
	if poll {
		wait = pollLeasesEvery
	}
	for ctx.Err() == nil {
		if poll {
			watcher.AllChanged()
		} else if err := listenLeases(ctx, pool, watcher); ctx.Err() == nil {
			log.WarnContext(ctx, "changes of leases cannot be listened for; trying again", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// listenLeases listens on one connection until that is lost.
func listenLeases(ctx context.Context, pool *pgxpool.Pool, watcher LeaseWatcher) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, `LISTEN `+leaseChannel); err != nil {
		return err
	}
	watcher.AllChanged() // what came before the connection was not heard
	for {
		notice, err := nextNotice(ctx, conn)
		switch {
		case err != nil:
			return err
		case notice != nil:
			watcher.Changed(notice.Organization, notice.Resource)
		}
	}
}

// nextNotice waits for a notice; nil if there was none for a while and the connection is alive.
func nextNotice(ctx context.Context, conn *pgx.Conn) (*leaseNotice, error) {
	waiting, cancel := context.WithTimeout(ctx, askAliveEvery)
	defer cancel()
	told, err := conn.WaitForNotification(waiting)
	if err != nil {
		if waiting.Err() == nil || ctx.Err() != nil {
			return nil, err
		}
		alive, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		return nil, conn.Ping(alive)
	}
	notice := &leaseNotice{}
	if err := json.Unmarshal([]byte(told.Payload), notice); err != nil {
		return nil, nil // somebody else's words on our channel
	}
	return notice, nil
}
