package allocator_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// leasesDoc shows in a block of commands what has to be set, and in a console block what two people see.
const leasesDoc = "docs/leases.md"

// momentary is what differs from run to run: ids, times, and what is left of a lease.
var momentary = regexp.MustCompile(
	`[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|"seconds_left":\d+|for \d+ more seconds|try again in \S+`)

// setUp are the lines of the block that set variables.
var setUp = regexp.MustCompile(`(?m)^(AUTH|S)=.*$`)

// What docs/leases.md shows of Anna and Bob is what happens at the door of a fresh `allocator up`. UPDATE_README=1 writes what
// was printed into it instead.
//
// Requirements: E08, E11, E15, E21.
func TestLeasesDocIsReplayed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), replayPatience)
	defer cancel()
	shell, _ := startForReadme(ctx, t)
	doc, err := os.ReadFile(leasesDoc)
	require.NoError(t, err)
	lines := setUp.FindAllString(string(doc), -1)
	require.Len(t, lines, 2)
	server := strings.TrimSpace(shell(strings.Join(lines, "\n") + "\necho $S"))
	require.Regexp(t, "^srv_[0-9a-f]{32}$", server)
	before := lines[0] + "; PATH=$PWD/bin:$PATH; S=" + server + "; "

	replay(t, leasesDoc, 7, func(command string) string { return shell(before + command) },
		func(text string) string { return momentary.ReplaceAllString(text, "…") })
}
