package main

import (
	"context"
	"log/slog"
	"net"

	"allocator/locking"
	"allocator/store/postgres"
	"allocator/transport/redisport"
)

// redisSettings are for a service that clients of Redis may use.
type redisSettings struct {
	RedisListen     string `name:"redis-listen" placeholder:"ADDRESS" setting:"REDIS_LISTEN" help:"Where to serve clients of Redis, such as 127.0.0.1:6379; they are not served if this is left out."`
	RedisTLSCert    string `name:"redis-tls-cert" placeholder:"FILE" setting:"REDIS_TLS_CERT" help:"Certificate for clients of Redis, in PEM; with it they need TLS."`
	RedisTLSKey     string `name:"redis-tls-key" placeholder:"FILE" setting:"REDIS_TLS_KEY" help:"Its private key, in PEM."`
	RedisPlain      bool   `name:"redis-plain" setting:"REDIS_PLAIN" help:"Serve clients of Redis on other machines without TLS too: keys and tokens travel in the clear."`
	RedisMaxClients int    `name:"redis-max-clients" default:"1000" placeholder:"N" setting:"REDIS_MAX_CLIENTS" help:"The most clients of Redis at a time."`
}

// redisDoor is the door for clients of Redis with the place where it stands; nil if it is not wanted.
type redisDoor struct {
	door     *redisport.Door
	listener net.Listener
}

// newRedisDoor takes the place and wires the door.
func newRedisDoor(ctx context.Context, a *app, c redisSettings, log *slog.Logger) (*redisDoor, error) {
	if c.RedisListen == "" {
		return nil, nil
	}
	listener, secure, err := redisport.Listen(ctx, redisport.Place{
		Address: c.RedisListen, CertFile: c.RedisTLSCert, KeyFile: c.RedisTLSKey, Plain: c.RedisPlain,
	})
	if err != nil {
		return nil, err
	}
	return &redisDoor{listener: listener, door: redisport.New(redisport.Deps{
		Authenticator: a.keys, Attempts: a.audit,
		Locks: locking.NewKeyspace(postgres.NewLocks(a.pool)), Countdowns: postgres.NewReservations(a.pool), Reservations: a.reservations,
		Log: log, Version: version,
	}, redisport.Limits{Connections: c.RedisMaxClients}, secure)}, nil
}

// serve runs until ctx ends, which is an orderly end.
func (d *redisDoor) serve(ctx context.Context) error {
	if d == nil {
		return nil
	}
	return d.door.Serve(ctx, d.listener)
}

// address is where it is reached; empty if it is not.
func (d *redisDoor) address() string {
	if d == nil {
		return ""
	}
	return d.listener.Addr().String()
}
