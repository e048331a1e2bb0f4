// Package allocation owns the choice of a server: what an order asks for, why a server does or does not fit, in which
// order those that fit are tried, the Allocator that reserves one of them, and the decision that stays behind.
//
// It declares the Store and Tx it needs and knows no SQL driver, HTTP or job queue. The SQL predicates in its table of
// rules are text that the store puts into its statements, so that adding a requirement or a reason is one row here.
package allocation
