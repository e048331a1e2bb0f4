// Package lease keeps two people from editing the same record: edit leases on resources and their parts, with heartbeat,
// take-over and presence. It owns who excludes whom, how long a lease counts, what a policy is asked and when, and the
// steps of a claim. Times are whole seconds in UTC, by the clock of the store alone.
//
// It imports nothing of this module and knows no database, no door and no inventory: a resource is a text, and what it
// names is settled by those who write that thing. Selling never looks here.
//
// A lease is no lock: nothing is guarded by holding one. Whoever writes a record asks Cover inside the writing
// transaction, on leases that it has locked there.
package lease
