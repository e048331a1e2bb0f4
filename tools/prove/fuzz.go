package main

import (
	"context"
	"regexp"
	"strings"
	"time"
)

// fuzzFor is how long each target looks for inputs that nobody thought of, and behind the whole door, where a process
// begins with a database of its own. As ordinary tests they run over those that are kept.
const (
	fuzzFor     = 10 * time.Second
	fuzzDoorFor = 40 * time.Second
)

// fuzzRows are the fuzz targets of the repository, each for a while. What breaks one is kept in its testdata/fuzz.
var fuzzRows = []row{
	{"fuzz: any bytes on the socket", fuzzWithin(fuzzDoorFor, "transport/httpapi", "FuzzRawHTTP")},
	{"fuzz: any text in paths and queries", fuzzWithin(fuzzDoorFor, "transport/httpapi", "FuzzPath")},
	{"fuzz: any body of an order", fuzzWithin(fuzzDoorFor, "transport/httpapi", "FuzzReservationBody")},
	{"fuzz: keys of idempotency", fuzzWithin(fuzzDoorFor, "transport/httpapi", "FuzzIdempotencyKey")},
	{"fuzz: page tokens", fuzz("transport/httpapi", "FuzzPageToken")},
	{"fuzz: wishes to wait", fuzz("transport/httpapi", "FuzzPrefer")},
	{"fuzz: tags of versions", fuzz("transport/httpapi", "FuzzIfMatch")},
	{"fuzz: JSON, its syntax", fuzz("transport/httpapi/strictjson", "FuzzParse")},
	{"fuzz: JSON, its schema", fuzz("transport/httpapi/strictjson", "FuzzCheck")},
	{"fuzz: one fingerprint for one request", fuzz("allocation", "FuzzFingerprint")},
	{"fuzz: hold tokens", fuzz("reservation", "FuzzHoldToken")},
	{"fuzz: keys of hold tokens", fuzz("reservation", "FuzzTokenKeys")},
	{"fuzz: API keys", fuzz("identity", "FuzzBearer")},
	{"fuzz: SQLSTATE and constraints", fuzz("store/postgres", "FuzzSQLSTATE")},
	{"fuzz: frames of the Redis door", fuzz("transport/redisport", "FuzzFrames")},
	{"fuzz: options of SET", fuzz("transport/redisport", "FuzzSetOptions")},
}

// fuzz runs a target.
func fuzz(pkg, target string) func(ctx context.Context) result {
	return fuzzWithin(fuzzFor, pkg, target)
}

// fuzzWithin is fuzz for another time. The bound leaves time to compile it, which the first one needs.
func fuzzWithin(long time.Duration, pkg, target string) func(ctx context.Context) result {
	return func(ctx context.Context) result {
		ctx, cancel := context.WithTimeout(ctx, long+5*bound)
		defer cancel()
		said, err := command(ctx, ".", nil, "go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", long.String(), "./"+pkg)
		if err != nil {
			return result{tried: err.Error(), output: said}
		}
		count := inputs(said)
		held := strings.Contains(said, "\nok  \t") || outOfTime.MatchString(said)
		return result{tried: count, held: held && count != none, output: said}
	}
}

// none is what a target says that was not ready in its time, which proves nothing.
const none = "no inputs"

// outOfTime is Go's own mistake: now and then it takes the end of the time for a failure of the target. One that fails
// says with which input, and one that hangs that its process did.
var outOfTime = regexp.MustCompile(`\n--- FAIL: Fuzz\w+ \([0-9.]+s\)\n    context deadline exceeded\nFAIL\n`)

var execs = regexp.MustCompile(`execs: (\d+)`)

// inputs says how many were tried, of which Go tells every few seconds.
func inputs(said string) string {
	counts := execs.FindAllStringSubmatch(said, -1)
	if len(counts) == 0 {
		return none
	}
	return counts[len(counts)-1][1] + " inputs"
}
