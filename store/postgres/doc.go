// Package postgres is the store: it implements, on pgx and PostgreSQL 15 or newer, every Store interface that a domain
// package declares. It owns SQL, transactions, row mapping, and the one translation of SQLSTATEs and constraint names
// into domain errors.
//
// It decides nothing that a rule of the domain could decide and knows no HTTP. Statements of one step travel together
// (tx.go); the places between them at which tests can stop are named in package gate.
package postgres
