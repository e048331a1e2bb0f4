//go:build gates

package concurrency_test

import "allocator/store/postgres/gate"

// Where three actors stop, or a long tree would not be worth its time: at the places that change what others see.
var (
	walking = []gate.Place{
		gate.ReserveAfterList, gate.ReserveAfterLock, gate.ReserveAfterInsert, gate.ChangeAfterLock, gate.ConvertAfterBinding, gate.SweepAfterPick,
	}
	short = []gate.Place{gate.ReserveAfterList, gate.ReserveAfterLock, gate.ChangeAfterLock, gate.SweepAfterPick}
)

// ordersAmongOrders want a server that nobody holds yet, or that is sold.
var ordersAmongOrders = map[string]drama{
	"two orders want one server": {
		set: empty, crowd: true, acts: []act{reserveAct("b", nil), reserveAct("c", nil)}, legal: []string{
			"all_held + reserved: order-c held",
			"reserved + all_held: order-b held",
			"reserved + servers_taken: order-b held",
			"servers_taken + reserved: order-c held",
		},
	},
	"twice the same key": {
		set: empty, crowd: true, acts: []act{reserveAct("b", nil), reserveAct("b", nil)}, legal: []string{
			"replayed + reserved: order-b held",
			"reserved + replayed: order-b held",
			"reserved + same_key: order-b held",
			"same_key + reserved: order-b held",
		},
	},
	"two keys for one order line": {
		set: empty, crowd: true, acts: []act{reserveAct("b", nil), reserveAct("b", anotherKey)}, legal: []string{
			"existing + reserved: order-b held",
			"reserved + existing: order-b held",
			"reserved + same_order_line: order-b held",
			"same_order_line + reserved: order-b held",
		},
	},
	"an order, and its server goes into maintenance": {
		set: empty, acts: []act{reserveAct("b", nil), maintain}, legal: []string{
			"nothing_matches + ok: maintenance",
			"reserved + in use: order-b held",
			"servers_taken + ok: maintenance",
		},
	},
	"an order, and its server is forced into maintenance": {
		set: empty, acts: []act{reserveAct("b", nil), force}, legal: []string{
			"nothing_matches + ok: maintenance",
			"reserved + ok: order-b cancelled, maintenance",
			"servers_taken + ok: maintenance",
		},
	},
	"an order, and the binding of its server ends": {
		set: sold, acts: []act{reserveAct("b", nil), endAct}, legal: []string{
			"all_sold + ok: order-a converted, cleaning",
			"nothing_matches + ok: order-a converted, cleaning",
		},
	},
	"an order, and another that buys at once": {
		set: empty, stops: walking, acts: []act{reserveAct("b", nil), buyAct("c")}, legal: []string{
			"all_held + ok: order-c converted, bound",
			"all_sold + ok: order-c converted, bound",
			"reserved + all_held: order-b held",
			"reserved + servers_taken: order-b held",
			"servers_taken + ok: order-c converted, bound",
		},
	},
}

// ordersAndHolds want a server, or have a line, that order a holds.
var ordersAndHolds = map[string]drama{
	"an order, and the hold in its way is renewed": {
		set: holding, acts: []act{reserveAct("b", nil), renewAct}, legal: []string{
			"all_held + ok: order-a held",
		},
	},
	"an order, and the hold in its way is cancelled": {
		set: holding, acts: []act{reserveAct("b", nil), cancelAct}, legal: []string{
			"all_held + cancelled: order-a cancelled, free",
			"reserved + cancelled: order-a cancelled, order-b held",
		},
	},
	"an order, and the hold in its way is converted": {
		set: holding, acts: []act{reserveAct("b", nil), sellAct("service")}, legal: []string{
			"all_held + ok: order-a converted, bound",
			"all_sold + ok: order-a converted, bound",
		},
	},
	"an order, and the hold in its way is taken over": {
		set: holding, acts: []act{reserveAct("b", nil), takeOverAct}, legal: []string{
			"all_held + ok: order-a held",
		},
	},
	"an order, and maintenance is forced on the hold in its way": {
		set: holding, acts: []act{reserveAct("b", nil), force}, legal: []string{
			"all_held + ok: order-a cancelled, maintenance",
			"nothing_matches + ok: order-a cancelled, maintenance",
		},
	},
	"the same line again, and its hold is converted": {
		set: holding, acts: []act{reserveAct("a", anotherKey), sellAct("service")}, legal: []string{
			"existing + ok: order-a converted, bound",
		},
	},
	"the same line again, and its hold is renewed": {
		set: holding, acts: []act{reserveAct("a", anotherKey), renewAct}, legal: []string{
			"existing + ok: order-a held",
		},
	},
	"the same line again, and its hold is cancelled": {
		set: holding, acts: []act{reserveAct("a", anotherKey), cancelAct}, legal: []string{
			"existing + cancelled: order-a cancelled, free",
			"reserved + cancelled: order-a cancelled, order-a held",
		},
	},
	"two orders, and the hold in their way is cancelled": {
		set: holding, crowd: true, stops: short, acts: []act{reserveAct("b", nil), reserveAct("c", nil), cancelAct}, legal: []string{
			"all_held + all_held + cancelled: order-a cancelled, free",
			"all_held + reserved + cancelled: order-a cancelled, order-c held",
			"reserved + all_held + cancelled: order-a cancelled, order-b held",
			"reserved + servers_taken + cancelled: order-a cancelled, order-b held",
			"servers_taken + reserved + cancelled: order-a cancelled, order-c held",
		},
	},
	"an order, a renewal, and the deadline": {
		set: holding, stops: walking, acts: []act{reserveAct("b", nil), renewAct, deadlineAct}, legal: []string{
			"all_held + expired + passed: order-a expired, free",
			"all_held + ok + passed: order-a held",
			"reserved + expired + passed: order-a expired, order-b held",
			"servers_taken + expired + passed: order-a expired, free",
		},
	},
	"an order, a conversion, and the deadline": {
		set: holding, stops: walking, acts: []act{reserveAct("b", nil), sellAct("service"), deadlineAct}, legal: []string{
			"all_held + expired + passed: order-a expired, free",
			"all_held + ok + passed: order-a converted, bound",
			"all_sold + ok + passed: order-a converted, bound",
			"reserved + expired + passed: order-a expired, order-b held",
			"servers_taken + expired + passed: order-a expired, free",
			"servers_taken + ok + passed: order-a converted, bound",
		},
	},
	"an order, a sweep, and the deadline": {
		set: holding, stops: walking, acts: []act{reserveAct("b", nil), sweepAct, deadlineAct}, legal: []string{
			"all_held + 0 + passed: order-a held",
			"all_held + 1 + passed: order-a expired, free",
			"reserved + 0 + passed: order-a expired, order-b held",
			"reserved + 1 + passed: order-a expired, order-b held",
			"servers_taken + 1 + passed: order-a expired, free",
		},
	},
}

// ordersAndDeadHolds want a server, or have a line, whose hold is past its deadline.
var ordersAndDeadHolds = map[string]drama{
	"an order, and the dead hold in its way is renewed": {
		set: overdue, acts: []act{reserveAct("b", nil), renewAct}, legal: []string{
			"reserved + expired: order-a expired, order-b held",
			"servers_taken + expired: order-a expired, free",
		},
	},
	"an order, and the dead hold in its way is cancelled": {
		set: overdue, acts: []act{reserveAct("b", nil), cancelAct}, legal: []string{
			"reserved + expired: order-a expired, order-b held",
			"servers_taken + expired: order-a expired, free",
		},
	},
	"an order, and the dead hold in its way is converted": {
		set: overdue, stops: walking, acts: []act{reserveAct("b", nil), sellAct("service")}, legal: []string{
			"reserved + expired: order-a expired, order-b held",
			"servers_taken + expired: order-a expired, free",
		},
	},
	"an order, and the dead hold in its way is taken over": {
		set: overdue, acts: []act{reserveAct("b", nil), takeOverAct}, legal: []string{
			"reserved + expired: order-a expired, order-b held",
			"servers_taken + expired: order-a expired, free",
		},
	},
	"an order, and the dead hold in its way is swept": {
		set: overdue, acts: []act{reserveAct("b", nil), sweepAct}, legal: []string{
			"reserved + 0: order-a expired, order-b held",
			"reserved + 1: order-a expired, order-b held",
			"servers_taken + 1: order-a expired, free",
		},
	},
	"the same line again, and its dead hold is swept": {
		set: overdue, acts: []act{reserveAct("a", anotherKey), sweepAct}, legal: []string{
			"reserved + 0: order-a expired, order-a held",
			"reserved + 1: order-a expired, order-a held",
		},
	},
	"the same line again, and its dead hold is converted": {
		set: overdue, stops: walking, acts: []act{reserveAct("a", anotherKey), sellAct("service")}, legal: []string{
			"reserved + expired: order-a expired, order-a held",
			"servers_taken + expired: order-a expired, free",
		},
	},
	"the same line again, and another order": {
		set: overdue, stops: walking, acts: []act{reserveAct("a", anotherKey), reserveAct("b", nil)}, legal: []string{
			"all_held + reserved: order-a expired, order-b held",
			"reserved + all_held: order-a expired, order-a held",
			"reserved + servers_taken: order-a expired, order-a held",
			"servers_taken + reserved: order-a expired, order-b held",
			"servers_taken + servers_taken: order-a expired, free",
		},
	},
	"two orders, and the dead hold in their way is swept": {
		set: overdue, crowd: true, stops: short, acts: []act{reserveAct("b", nil), reserveAct("c", nil), sweepAct}, legal: []string{
			"reserved + all_held + 0: order-a expired, order-b held",
			"reserved + all_held + 1: order-a expired, order-b held",
			"reserved + servers_taken + 0: order-a expired, order-b held",
			"reserved + servers_taken + 1: order-a expired, order-b held",
			"servers_taken + reserved + 0: order-a expired, order-c held",
			"servers_taken + reserved + 1: order-a expired, order-c held",
			"servers_taken + servers_taken + 1: order-a expired, free",
		},
	},
}

// ordersAtOnce are those in which it matters that a request first tries its best candidate in a transaction of its own.
func ordersAtOnce() map[string]drama {
	chosen := map[string]drama{}
	for _, of := range []map[string]drama{ordersAmongOrders, ordersAndHolds, ordersAndDeadHolds} {
		for _, sentence := range []string{
			"two orders want one server", "twice the same key", "two keys for one order line", "an order, and its server goes into maintenance",
			"an order, and the binding of its server ends", "an order, and the hold in its way is cancelled",
			"an order, and the hold in its way is converted", "an order, and the dead hold in its way is converted",
			"an order, and the dead hold in its way is swept", "the same line again, and its dead hold is swept",
		} {
			if d, is := of[sentence]; is {
				chosen[sentence] = d
			}
		}
	}
	return chosen
}
