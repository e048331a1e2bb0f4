// Package redisport is the door for programs that have a client of Redis: RESP2 and RESP3 in front of PostgreSQL.
//
// lock:* are the locks of package locking under the same keys as over HTTP; hold:* tell the state of a reservation and
// how long it is held; reason:* are the frozen reasons. Commands and replies are those of Redis 8.4; where they differ on
// purpose, the table in docs/locks.md says so. A database that is away is an error, never nil: nil means that somebody
// else has it.
//
// The package knows the domain packages and no database; what it needs of them are the interfaces of Deps, which
// cmd/allocator wires. The organization of every command comes from the key given by AUTH. Connections are run by
// tidwall/redcon; what it does not do stands between it and the network (guard.go): limits, time-outs, the protocol errors
// of Redis, TLS, and an end that lets commands finish.
package redisport
