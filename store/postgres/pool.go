package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"allocator/reservation"
)

// PoolOptions settle how the service uses its database. Zero fields take the defaults.
type PoolOptions struct {
	// MaxConns bounds the pool. More than the server can work on at once makes everything slower: 8 connections gave
	// 100 callers twice the throughput of 100, and a tenth of the p99. Default 8.
	MaxConns int32
	// Application is shown in pg_stat_activity. Default "allocator".
	Application string
	// Silence is how long a connection may be without a word from the server's side of the network although something was
	// sent, where the kernel can be asked to look after that (Linux). Default 30 s.
	Silence time.Duration
}

const (
	defaultMaxConns  = 8
	connectTimeout   = 5 * time.Second
	keepAlive        = 15 * time.Second
	defaultSilence   = 30 * time.Second
	healthEvery      = 15 * time.Second
	maxConnLife      = time.Hour
	statementTimeout = "10s"
	lockTimeout      = "3s"  // a row that somebody keeps locked for longer is answered with "unavailable"
	idleTimeout      = "15s" // a paused process must not keep a server's row locked
)

// Open returns a pool and checks that the database answers. Every connection has timeouts for statements, locks and
// idling in a transaction. The settings travel as startup parameters, which a pooler in transaction mode refuses unless it
// is told to ignore them (pgbouncer: ignore_startup_parameters = statement_timeout, lock_timeout,
// idle_in_transaction_session_timeout, jit); then they have to be set in the database, which CheckServer looks after, and
// the URL needs default_query_exec_mode=cache_describe.
func Open(ctx context.Context, url string, options PoolOptions) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read: write postgres://user:password@host:5432/database") // the cause may show a password
	}
	settle(config, options)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(reservation.ErrUnavailable, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreachable(config.ConnConfig, err)
	}
	return pool, nil
}

func settle(config *pgxpool.Config, options PoolOptions) {
	config.MaxConns = defaultMaxConns
	if options.MaxConns > 0 {
		config.MaxConns = options.MaxConns
	}
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = maxConnLife, maxConnLife/10
	config.HealthCheckPeriod = healthEvery
	config.ConnConfig.ConnectTimeout = connectTimeout
	silence := cmp.Or(options.Silence, defaultSilence)
	dialer := net.Dialer{Timeout: connectTimeout, KeepAlive: min(keepAlive, silence), Control: boundSilence(silence)}
	config.ConnConfig.DialFunc = dialer.DialContext
	config.ConnConfig.OnNotice = noteWarnings
	(&primary{}).watch(config)
	for name, value := range map[string]string{
		"application_name":                    "allocator",
		"statement_timeout":                   statementTimeout,
		"lock_timeout":                        lockTimeout,
		"idle_in_transaction_session_timeout": idleTimeout,
		"timezone":                            "UTC",
		"jit":                                 "off", // statements are short; compiling one was seen to take 60 ms under a server's lock
	} {
		if config.ConnConfig.RuntimeParams[name] == "" { // the URL may settle it
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	if options.Application != "" {
		config.ConnConfig.RuntimeParams["application_name"] = options.Application
	}
}

// unreachable says which server did not answer and why, without the password that stands in the URL.
func unreachable(config *pgx.ConnConfig, err error) error {
	why := "it does not answer"
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		if pgerrcode.IsInvalidAuthorizationSpecification(refused.Code) {
			return fmt.Errorf("PostgreSQL at %s:%d, database %s, refused the user %s or its password: correct the database URL",
				config.Host, config.Port, config.Database, config.User)
		}
		why = refused.Message
	}
	return fmt.Errorf("PostgreSQL at %s:%d, database %s, cannot be used: %s. Is it running, and is the URL right? (%w)",
		config.Host, config.Port, config.Database, why, reservation.ErrUnavailable)
}
