// Package sweeper owns the periodic tidy-up: a River job that each minute moves reservations past their deadline to
// expired, one that each day makes the month partitions that are needed ahead, and one that purges the audit trail.
//
// It guards nothing. No switch turns it off, no sale waits for it, and nothing is wrong while it stands still: the
// allocator moves a dead hold out of its own way. It knows River, and nothing of HTTP or of how servers are chosen.
package sweeper
