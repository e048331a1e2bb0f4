package main

// The packages whose tests are rows.
const (
	concurrency = "concurrency_test"
	database    = "store/postgres"
	door        = "transport/httpapi"
	strictJSON  = "transport/httpapi/strictjson"
	redisDoor   = "transport/redisport"
	work        = "sweeper"
)

// testRows find what nobody thought of: every order of steps, and whatever chance brings.
var testRows = []row{
	{"every schedule: orders among orders", part("TestEverySchedule", "orders")},
	{"every schedule: orders at once", part("TestEverySchedule", "orders at once")},
	{"every schedule: orders and holds, F-R2", part("TestEverySchedule", "orders and holds")},
	{"every schedule: orders and dead holds", part("TestEverySchedule", "orders and dead holds")},
	{"every schedule: deeds with one hold, F-T4", part("TestEverySchedule", "deeds")},
	{
		"histories of many clients over several processes, F-L3, F-R15, F-R17",
		races("TestHistories", "CONCURRENCY_ROUNDS=8", "CONCURRENCY_ROUNDS=120"),
	},
	{
		"traces against a model, on one instance and on three, F-K5",
		races("TestStateMachine", "CONCURRENCY_ROUNDS=40", "CONCURRENCY_ROUNDS=600"),
	},
}
