// Package embedded runs a PostgreSQL server as a child of this process, from
// binaries that are installed on the machine, in a data directory that
// persists.
//
// It owns the whole life of that server: finding binaries, creating the
// cluster, choosing the account it runs under, telling a stale pid file from a
// live server, starting, watching and stopping it. It must not know what the
// database is for: no schema, no migrations, nothing of the domain.
//
// # On disk
//
//	DataDir/lock          held (flock) by the one process that may run the server; contains its pid
//	DataDir/password      the database role's random password
//	DataDir/postgres.log  the server's log of this run; postgres.log.1 is the run before
//	DataDir/pgdata/       the cluster; it appears complete, by rename, or not at all
//
// # Accounts
//
// PostgreSQL refuses to run as root. Started by root, the server runs as the
// owner of existing data, else as the user postgres, else as nobody; only
// pgdata and the password file are given to that account.
//
// # Orphans
//
// On Linux the kernel shuts the server down when this process dies, however it
// dies. Elsewhere, or when the shutdown has not finished yet, the next Start
// finds the old server still running. It is never adopted as it is: it may
// already be on its way down and its settings may differ. It is shut down and a
// new one is started on the same data, which loses nothing, because the lock
// proves that the only process that used it is gone.
package embedded
