//go:build gates

package concurrency_test

// deedsAmongDeeds are what can be done with one hold, each with each, and some with the deadline between them.
var deedsAmongDeeds = map[string]drama{
	"renew twice": {
		set: holding, crowd: true, acts: []act{renewAct, renewAct}, legal: []string{
			"ok + renewal limit: order-a held",
		},
	},
	"renew and cancel": {
		set: holding, acts: []act{renewAct, cancelAct}, legal: []string{
			"cancelled + cancelled: order-a cancelled, free",
			"ok + cancelled: order-a cancelled, free",
		},
	},
	"renew and convert": {
		set: holding, acts: []act{renewAct, sellAct("service")}, legal: []string{
			"converted + ok: order-a converted, bound",
			"ok + ok: order-a converted, bound",
		},
	},
	"renew, and staff take over": {
		set: holding, acts: []act{renewAct, takeOverAct}, legal: []string{
			"not holder + ok: order-a held",
			"ok + ok: order-a held",
		},
	},
	"renew too late, and sweep": {
		set: overdue, acts: []act{renewAct, sweepAct}, legal: []string{
			"expired + 0: order-a expired, free",
			"expired + 1: order-a expired, free",
		},
	},
	"renew, and maintenance is forced": {
		set: holding, acts: []act{renewAct, force}, legal: []string{
			"cancelled + ok: order-a cancelled, maintenance",
			"ok + ok: order-a cancelled, maintenance",
		},
	},
	"renew what is sold, and the binding ends": {
		set: sold, acts: []act{renewAct, endAct}, legal: []string{
			"converted + ok: order-a converted, cleaning",
		},
	},
	"cancel twice": {
		set: holding, crowd: true, acts: []act{cancelAct, cancelAct}, legal: []string{
			"cancelled + cancelled: order-a cancelled, free",
		},
	},
	"cancel and convert": {
		set: holding, acts: []act{cancelAct, sellAct("service")}, legal: []string{
			"cancelled + cancelled: order-a cancelled, free",
			"converted + ok: order-a converted, bound",
		},
	},
	"cancel, and staff take over": {
		set: holding, acts: []act{cancelAct, takeOverAct}, legal: []string{
			"cancelled + cancelled: order-a cancelled, free",
			"not holder + ok: order-a held",
		},
	},
	"cancel too late, and sweep": {
		set: overdue, acts: []act{cancelAct, sweepAct}, legal: []string{
			"expired + 0: order-a expired, free",
			"expired + 1: order-a expired, free",
		},
	},
	"cancel, and maintenance is forced": {
		set: holding, acts: []act{cancelAct, force}, legal: []string{
			"cancelled + ok: order-a cancelled, maintenance",
		},
	},
	"cancel what is sold, and the binding ends": {
		set: sold, acts: []act{cancelAct, endAct}, legal: []string{
			"converted + ok: order-a converted, cleaning",
		},
	},
	"convert twice for one service": {
		set: holding, crowd: true, acts: []act{sellAct("service"), sellAct("service")}, legal: []string{
			"ok + repeated: order-a converted, bound",
		},
	},
	"convert for two services": {
		set: holding, crowd: true, acts: []act{sellAct("service 1"), sellAct("service 2")}, legal: []string{
			"ok + converted: order-a converted, bound",
		},
	},
	"convert, and staff take over": {
		set: holding, acts: []act{sellAct("service"), takeOverAct}, legal: []string{
			"ok + converted: order-a converted, bound",
			"ok + ok: order-a converted, bound",
		},
	},
	"convert too late, and sweep": {
		set: overdue, acts: []act{sellAct("service"), sweepAct}, legal: []string{
			"expired + 0: order-a expired, free",
			"expired + 1: order-a expired, free",
		},
	},
	"convert, and maintenance is forced": {
		set: holding, acts: []act{sellAct("service"), force}, legal: []string{
			"cancelled + ok: order-a cancelled, maintenance",
			"ok + ok: order-a converted, maintenance, bound",
		},
	},
	"convert again, and the binding ends": {
		set: sold, acts: []act{sellAct("service"), endAct}, legal: []string{
			"repeated + ok: order-a converted, cleaning",
		},
	},
	"staff take over twice": {
		set: holding, crowd: true, acts: []act{takeOverAct, takeOverAct}, legal: []string{
			"ok + ok: order-a held",
		},
	},
	"staff take over too late, and sweep": {
		set: overdue, acts: []act{takeOverAct, sweepAct}, legal: []string{
			"expired + 0: order-a expired, free",
			"expired + 1: order-a expired, free",
		},
	},
	"staff take over, and maintenance is forced": {
		set: holding, acts: []act{takeOverAct, force}, legal: []string{
			"cancelled + ok: order-a cancelled, maintenance",
			"ok + ok: order-a cancelled, maintenance",
		},
	},
	"staff take over what is sold, and the binding ends": {
		set: sold, acts: []act{takeOverAct, endAct}, legal: []string{
			"converted + ok: order-a converted, cleaning",
		},
	},
	"sweep twice": {
		set: overdue, crowd: true, acts: []act{sweepAct, sweepAct}, legal: []string{
			"1 + 0: order-a expired, free",
		},
	},
	"sweep, and the server goes into maintenance": {
		set: overdue, acts: []act{sweepAct, maintain}, legal: []string{
			"0 + ok: order-a expired, maintenance",
			"1 + ok: order-a expired, maintenance",
		},
	},
	"sweep, and maintenance is forced": {
		set: overdue, acts: []act{sweepAct, force}, legal: []string{
			"0 + ok: order-a expired, maintenance",
			"1 + ok: order-a expired, maintenance",
		},
	},
	"sweep, and the server is bound directly": {
		set: overdue, acts: []act{sweepAct, bindAct}, legal: []string{
			"0 + ok: order-a expired, bound",
			"1 + ok: order-a expired, bound",
		},
	},
	"sweep, and a binding ends": {
		set: sold, acts: []act{sweepAct, endAct}, legal: []string{
			"0 + ok: order-a converted, cleaning",
		},
	},
	"maintenance and failure, both forced": {
		set: holding, acts: []act{force, fail}, legal: []string{
			"ok + ok: order-a cancelled, failed",
			"ok + ok: order-a cancelled, maintenance",
		},
	},
	"maintenance is forced, and the binding ends": {
		set: sold, acts: []act{force, endAct}, legal: []string{
			"ok + ok: order-a converted, cleaning",
			"ok + ok: order-a converted, maintenance",
		},
	},
	"a binding ends twice": {
		set: sold, crowd: true, acts: []act{endAct, endAct}, legal: []string{
			"ok + ok: order-a converted, cleaning",
		},
	},
	"convert, sweep, and the deadline": {
		set: holding, acts: []act{sellAct("service"), sweepAct, deadlineAct}, legal: []string{
			"expired + 0 + passed: order-a expired, free",
			"expired + 1 + passed: order-a expired, free",
			"ok + 0 + passed: order-a converted, bound",
		},
	},
	"renew, sweep, and the deadline": {
		set: holding, acts: []act{renewAct, sweepAct, deadlineAct}, legal: []string{
			"expired + 0 + passed: order-a expired, free",
			"expired + 1 + passed: order-a expired, free",
			"ok + 0 + passed: order-a held",
		},
	},
	"cancel, sweep, and the deadline": {
		set: holding, acts: []act{cancelAct, sweepAct, deadlineAct}, legal: []string{
			"cancelled + 0 + passed: order-a cancelled, free",
			"expired + 0 + passed: order-a expired, free",
			"expired + 1 + passed: order-a expired, free",
		},
	},
	"staff take over, convert, and the deadline": {
		set: holding, acts: []act{takeOverAct, sellAct("service"), deadlineAct}, legal: []string{
			"converted + ok + passed: order-a converted, bound",
			"expired + expired + passed: order-a expired, free",
			"ok + expired + passed: order-a expired, free",
			"ok + ok + passed: order-a converted, bound",
		},
	},
	"staff take over, renew and cancel": {
		set: holding, acts: []act{takeOverAct, renewAct, cancelAct}, legal: []string{
			"cancelled + cancelled + cancelled: order-a cancelled, free",
			"cancelled + ok + cancelled: order-a cancelled, free",
			"ok + not holder + not holder: order-a held",
			"ok + ok + not holder: order-a held",
		},
	},
	"convert, cancel, and maintenance is forced": {
		set: holding, stops: walking, acts: []act{sellAct("service"), cancelAct, force}, legal: []string{
			"cancelled + cancelled + ok: order-a cancelled, maintenance",
			"ok + converted + ok: order-a converted, maintenance, bound",
		},
	},
}
