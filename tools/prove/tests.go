package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// testRows are tests of the repository, some in a longer form than `make test` has.
var testRows = []row{
	{"every schedule: orders among orders", schedules("orders")},
	{"every schedule: orders at once", schedules("orders at once")},
	{"every schedule: orders and holds", schedules("orders and holds")},
	{"every schedule: orders and dead holds", schedules("orders and dead holds")},
	{"every schedule: deeds with one hold", schedules("deeds")},
	{"histories of many clients over several processes", race("TestHistories", "CONCURRENCY_ROUNDS=8")},
	{"traces against a model, on one instance and on three", race("TestStateMachine", "CONCURRENCY_ROUNDS=40")},

	{"fault F-R4: a conversion and sweeps at the deadline", race("TestConvertAndSweepAtTheDeadline", "CONCURRENCY_ROUNDS=300")},
	{"fault F-D5: the switch flickers under load", race("TestSwitchFlickers", "CONCURRENCY_ROUNDS=10")},
	{"fault F-F1: an asynchronous standby takes over", race("TestAsynchronousStandbyTakesOver")},
	{"fault F-F2: a synchronous standby takes over", race("TestSynchronousStandbyTakesOver")},
	{"fault F-F2: the synchronous standby is away", race("TestNothingIsAcknowledgedWithoutTheSynchronousStandby")},
	{"fault F-F3: the old primary comes back", race("TestOldPrimaryComesBack")},
	{"fault F-F4: Patroni's leader is frozen", race(part("TestPatroni", "its leader is frozen"), "CONCURRENCY_LONG=1")},
	{"fault F-F4: Patroni's etcd is away", race(part("TestPatroni", "etcd is away"), "CONCURRENCY_LONG=1")},
	{"fault F-F5: a standby that is behind is asked", race("TestStandbyDecidesNothing")},
	{"fault F-F6: the wait for a standby is cut off", race("TestCommitWhoseWaitForTheStandbyIsCutOff")},
	{"fault F-C3: the service is asked to stop under load", race("TestServiceAskedToStopUnderLoad")},
	{"fault F-C3: rolling restarts behind a balancer", race("TestRollingRestarts", "CONCURRENCY_ROUNDS=2")},
	{"fault F-C4: PostgreSQL is stopped without ceremony", race("TestPostgresStoppedWithoutCeremony", "CONCURRENCY_ROUNDS=8")},
	{"fault F-C10: the service runs out of memory", race("TestServiceOutOfMemory")},
	{"fault F-S1: the disk is full", race("TestDiskFull")},
	{"fault F-S2: all connections are taken", race("TestConnectionsUsedUp")},
	{"fault F-S3: few file descriptors, and callers that hang up", race("TestServiceWithFewFileDescriptors", "CONCURRENCY_ABORTS=9000")},
	{"fault F-S4: nobody reads the log", race("TestNobodyReadsTheLog")},
	{"fault F-N2: the network swallows everything", race("TestNetworkSwallowsEverything")},
	{"fault F-N3: a slow network, a byte at a time", race("TestSlowNetwork", "CONCURRENCY_LATENCY=200")},
	{"fault F-N4: hundreds of slow clients", race("TestManySlowClients", "CONCURRENCY_SLOW=500")},
	{"fault F-T1, F-T2: the clock jumps", race("TestClockJumpsAhead|TestClockJumpsBack")},
	{"fault F-T1, F-T2: the sweep after a jump of the clock", race("TestSweepGoesOnAfterAJumpOfTheClock")},
	{"fault F-T3: clocks apart", race("TestClocksApart")},
	{"fault F-L1: a hundred buyers at once", race("TestNoHerd", "CONCURRENCY_ROUNDS=20")},
	{"fault F-L1: who is refused comes again when told", race("TestRefusedOfAHerdComeAgainWhenTold", "CONCURRENCY_ROUNDS=8")},
	{"fault F-K1: one key fifty times at once", race("TestFiftyOfOneKeyOverThreeServices", "CONCURRENCY_ROUNDS=20")},
	{"fault F-L4: callers that come again at once", race("TestRetryStorm", "CONCURRENCY_ROUNDS=15")},
	{"fault F-L6: an old snapshot is kept", race("TestOldSnapshotIsKept", "CONCURRENCY_CYCLES=1500")},
	{"fault F-D2: migrations are killed", race("TestMigrationKilled", "CONCURRENCY_ROUNDS=8")},
	{"fault F-D3: rolled out and back under load", race("TestRollingUpgradeAndBack", "CONCURRENCY_LONG=1")},
	{"fault F-D7: a backup is restored", race("TestBackupRestored")},
	{"fault F-D1: processes that migrate at once", race("TestServicesThatMigrateAtOnce", "CONCURRENCY_ROUNDS=15")},
}

// race runs a test of concurrency_test. The race detector is left to `make test`, so that more is tried in the same
// time. A setting NAME=value asks for a longer form.
func race(test string, settings ...string) func(ctx context.Context) result {
	return func(ctx context.Context) result {
		binary, err := racesBinary()
		if err != nil {
			return result{tried: err.Error()}
		}
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		said, err := command(ctx, "concurrency_test", settings, binary, "-test.v", "-test.run=^("+test+")$")
		if err != nil {
			return result{tried: err.Error(), output: said}
		}
		if why := skipped.FindStringSubmatch(said); why != nil {
			return result{skipped: true, tried: why[1]}
		}
		return result{tried: cmp.Or(tried(said), "once"), held: strings.HasSuffix(said, "\nPASS\n"), output: said}
	}
}

// schedules runs one group of the schedules of operations.
func schedules(group string) func(ctx context.Context) result {
	return race(part("TestEverySchedule", group))
}

// part names the subtests of a test whose names begin like this.
func part(test, begin string) string { return test + ")$/^(" + strings.ReplaceAll(begin, " ", "_") }

// skipped is how a test says that it cannot run here, and why.
var skipped = regexp.MustCompile(`(?m)^    \S+\.go:\d+: (.*)\n--- SKIP: `)

// builtAt is where this process builds the tests.
var builtAt = filepath.Join(os.TempDir(), fmt.Sprintf("allocator-races-%d.test", os.Getpid()))

// racesBinary builds the tests once, outside of any row's time.
var racesBinary = sync.OnceValues(func() (string, error) {
	said, err := command(context.Background(), ".", nil, "go", "test", "-c", "-tags", "gates", "-o", builtAt, "./concurrency_test")
	if err == nil && said != "" {
		err = fmt.Errorf("the tests do not compile: %s", said)
	}
	return builtAt, err
})

// tried is what the test says that it tried, in lines of its log that begin with "tried:".
func tried(said string) string {
	var counts []string
	for _, line := range regexp.MustCompile(`(?m)^.*\.go:\d+: tried: (.*)$`).FindAllStringSubmatch(said, -1) {
		counts = append(counts, line[1])
	}
	return strings.Join(counts, "; ")
}
