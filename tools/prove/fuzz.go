package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// How long each target looks for inputs that nobody thought of; behind the whole door, where a process begins with a
// database of its own, and when there is much time. As ordinary tests they run over those that are kept.
const (
	fuzzFor     = 10 * time.Second
	fuzzDoorFor = 30 * time.Second
	fuzzLongFor = 5 * time.Minute
)

// fuzzRows are the fuzz targets of the repository, each for a while. What breaks one is kept in its testdata/fuzz.
var fuzzRows = []row{
	{"fuzz: any bytes on the socket", target{door, "FuzzRawHTTP", fuzzDoorFor}},
	{"fuzz: any text in paths and queries", target{door, "FuzzPath", fuzzDoorFor}},
	{"fuzz: any body of an order", target{door, "FuzzReservationBody", fuzzDoorFor}},
	{"fuzz: keys of idempotency", target{door, "FuzzIdempotencyKey", fuzzDoorFor}},
	{"fuzz: page tokens", target{door, "FuzzPageToken", fuzzFor}},
	{"fuzz: wishes to wait", target{door, "FuzzPrefer", fuzzFor}},
	{"fuzz: tags of versions", target{door, "FuzzIfMatch", fuzzFor}},
	{"fuzz: JSON, its syntax", target{strictJSON, "FuzzParse", fuzzFor}},
	{"fuzz: JSON, its schema", target{strictJSON, "FuzzCheck", fuzzFor}},
	{"fuzz: one fingerprint for one request", target{"allocation", "FuzzFingerprint", fuzzFor}},
	{"fuzz: hold tokens", target{"reservation", "FuzzHoldToken", fuzzFor}},
	{"fuzz: keys of hold tokens", target{"reservation", "FuzzTokenKeys", fuzzFor}},
	{"fuzz: API keys", target{"identity", "FuzzBearer", fuzzFor}},
	{"fuzz: SQLSTATE and constraints", target{database, "FuzzSQLSTATE", fuzzFor}},
	{"fuzz: frames of the Redis door", target{redisDoor, "FuzzFrames", fuzzFor}},
	{"fuzz: options of SET", target{redisDoor, "FuzzSetOptions", fuzzFor}},
}

// target is one fuzz target.
type target struct {
	pkg, name string
	lasts     time.Duration
}

func (t target) prepare(ctx context.Context) error {
	_, err := targetsOf(ctx, t.pkg)
	return err
}

func (t target) run(ctx context.Context, long bool) result {
	binary, err := targetsOf(ctx, t.pkg)
	if err != nil {
		return result{tried: err.Error()}
	}
	kept, err := keptInputs(ctx, t.pkg)
	if err != nil {
		return result{tried: err.Error()}
	}
	lasts := t.lasts
	if long {
		lasts = fuzzLongFor
	}
	said, err := command(ctx, t.pkg, nil, binary,
		"-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+lasts.String(), "-test.fuzzcachedir="+kept)
	if err != nil {
		return result{tried: err.Error(), output: said, cut: !failed.MatchString(said)}
	}
	count := inputs(said)
	held := strings.HasSuffix(said, "\nPASS\n") || outOfTime.MatchString(said)
	return result{tried: count, held: held && count != none, output: said}
}

// keptInputs is where Go keeps what a package's targets found worth keeping, from one run to the next.
func keptInputs(ctx context.Context, pkg string) (string, error) {
	cache, err := command(ctx, ".", nil, "go", "env", "GOCACHE")
	dir := filepath.Join(strings.TrimSpace(cache), "fuzz", "allocator", filepath.FromSlash(pkg))
	if err == nil {
		err = os.MkdirAll(dir, 0o750)
	}
	return dir, err
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
