// Package postgrestest gives each test a PostgreSQL database of its own, from a
// real server.
//
// The server is the first of these that is there:
//
//  1. the one at TEST_DATABASE_URL, whose role must be allowed to create databases
//  2. a container, when a container engine answers; one for a whole run of go test
//  3. a server started from binaries installed on this machine
//
// When there is none of them the test fails; it is never skipped silently.
//
// A migrated template database is made once per content of the migrations and month, and a
// test's database is a copy of it, dropped when the test ends.
//
// The package owns servers and databases of tests. It must not import
// store/postgres, whose own tests import it.
//
// # Local servers
//
// Each test binary runs a server of its own, started on a copy of a prepared
// data directory. Sharing one between the binaries of a run would save a few
// tenths of a second for each, but needs a daemon that outlives the first of
// them. The server and its directory go away with the test binary, also after a
// panic, a timeout or a kill: the kernel (on Linux) and a small watching shell
// (everywhere) see to it.
package postgrestest
