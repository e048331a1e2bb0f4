// Package bench measures Allocator against what its database could do at best: ratios, taken in one interleaved run on
// one machine, since times of two machines or of two hours do not compare.
//
// The measure of everything is the limit: the smallest statement that holds a server, through the same pool and the same
// tables with all their indexes and triggers. Contenders take turns in an order shuffled for each round, every round
// begins with the same stock, and a ratio is taken within its round; what is told of it is the median and the spread.
//
// The package uses the product as its callers do, through its services and doors. It owns the stock it makes, the load
// and the arithmetic, and knows neither SQL of the product nor how a result is shown on a terminal. Nothing but the
// command line imports it.
package bench
