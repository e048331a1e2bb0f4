package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/identity"
	"allocator/store/postgres"
	"allocator/store/postgres/embedded"
)

// database is a pool, and the PostgreSQL behind it where this process runs that itself.
type database struct {
	pool *pgxpool.Pool
	url  string
	own  *embedded.Server // nil: somebody else's
}

// openDatabase connects to the database of the settings, or runs one in the data directory if there is none.
func openDatabase(ctx context.Context, p *process, s databaseSettings, data dataSettings, log *slog.Logger) (*database, error) {
	db := &database{url: string(s.DatabaseURL)}
	if db.url == "" {
		dir := defaultDataDir(p, data.DataDir)
		if dir == "" {
			return nil, errNoPlace
		}
		p.progressf("starting PostgreSQL in %s …", dir)
		own, err := embedded.Start(ctx, embedded.Options{DataDir: dir, BinDir: data.PostgresBin, Log: log})
		if err != nil {
			return nil, elsewhere(err)
		}
		db.own, db.url = own, own.URL()
	}
	pool, err := postgres.Open(ctx, db.url, postgres.PoolOptions{MaxConns: s.MaxConns})
	if err != nil {
		return nil, errors.Join(err, db.close(ctx))
	}
	db.pool = pool
	return db, nil
}

// connect is openDatabase for commands that never run a database themselves.
func connect(ctx context.Context, s databaseSettings) (*database, error) {
	if s.DatabaseURL == "" {
		return nil, usagef("no database is given: set ALLOCATOR_DATABASE_URL or --database-url (`allocator up` shows the one that it runs)")
	}
	pool, err := postgres.Open(ctx, string(s.DatabaseURL), postgres.PoolOptions{MaxConns: s.MaxConns})
	if err != nil {
		return nil, err
	}
	return &database{pool: pool, url: string(s.DatabaseURL)}, nil
}

// close lets go of the pool and stops the PostgreSQL that this process runs, even if ctx has ended.
func (db *database) close(ctx context.Context) error {
	if db.pool != nil {
		db.pool.Close()
	}
	if db.own == nil {
		return nil
	}
	if err := db.own.Stop(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("stop PostgreSQL: %w", err)
	}
	return nil
}

// died is closed when the PostgreSQL that this process runs has ended by itself; nil if it runs none.
func (db *database) died() <-chan struct{} {
	if db.own == nil {
		return nil
	}
	return db.own.Done()
}

// defaultDataDir is where PostgreSQL's data is kept if nobody says where: below /var/lib for root, since the account
// that PostgreSQL runs as must be able to enter it, else among the user's own data.
func defaultDataDir(p *process, given string) string {
	if given != "" {
		return given
	}
	if os.Geteuid() == 0 {
		return "/var/lib/allocator"
	}
	if dir, ok := p.lookupEnv("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "allocator")
	}
	if home, ok := p.lookupEnv("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "allocator")
	}
	return "" // whoever needs one says that none was given
}

var errNoPlace = usagef("there is no place for the data, since HOME is not set: give a directory with --data-dir or ALLOCATOR_DATA_DIR")

// elsewhere adds to an error of a directory that cannot be written how to choose another one.
func elsewhere(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w; choose another directory with --data-dir or ALLOCATOR_DATA_DIR", err)
	}
	return err
}

// localPerson is who works on the database itself: the user of this machine.
func localPerson() identity.Actor {
	name := "uid " + strconv.Itoa(os.Getuid())
	if account, err := user.Current(); err == nil {
		name = account.Username
	}
	return identity.Actor{Kind: identity.ActorPerson, ID: name}
}
