// Package events owns what is written down about what happened: the events that a transition sends to the outside, and
// the audit trail of who did what.
//
// It knows nothing of how servers are chosen, of databases or of HTTP, and imports nothing of this module: ids are plain
// texts here. An event or an audit entry of a change is written by the store in the transaction of that change, so that
// neither can exist without the other; this package says what they look like and how they are read. Only refused
// attempts, which change nothing, are recorded on their own, through Audit.
package events
