// Package concurrency holds the races: one file per promise of the design, against a real PostgreSQL. Races are forced
// by the gates of the store or by sessions of their own, and never waited for; some also run by luck, many times.
//
// It holds tests alone and is imported by nobody.
package concurrency
