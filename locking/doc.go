// Package locking keeps two processes from doing the same work: a lock on a text, tried and never waited for, with three
// backends (memory, redis, pg) of one contract, and the scheduler of periodic jobs that consults it.
//
// Trying a lock has three outcomes: a handle; nothing, since somebody else has it, which is nobody's fault; or an error,
// since the backend is broken. Renewing and releasing have one way to fail: the lock is no longer the caller's.
//
// The package also says what a lock of another program is (Grants): provisioning automation takes it through a door, it
// is kept by a Store in the service's database, and it carries a fence.
//
// No sale depends on any of this. The package imports nothing of this module and knows no server, no reservation and no
// HTTP; it does know Redis and PostgreSQL, through which the backends lock.
package locking
