package allocator_test

import (
	"context"
	"encoding/json"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// locksDoc has console blocks in which every line that begins with "$ " is a command.
const locksDoc = "docs/locks.md"

// leftovers is what is left of a time that was just set, and a digest: both differ from run to run.
var leftovers = regexp.MustCompile(`(?m)^\(integer\) \d{4,}$|^"[0-9a-f]{16}"$`)

// What docs/locks.md shows of redis-cli is what it prints at the door of a fresh `allocator up`, on a terminal.
// UPDATE_README=1 writes what was printed into it instead.
func TestLocksDocIsReplayed(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("skipped: there is no redis-cli: run tools/setup.sh test")
	}
	ctx, cancel := context.WithTimeout(t.Context(), replayPatience)
	defer cancel()
	shell, address := startForReadme(ctx, t, "--redis-listen", "127.0.0.1:0")
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	var held struct {
		ID    string `json:"id"`
		Token string `json:"hold_token"`
	}
	require.NoError(t, json.Unmarshal([]byte(shell("bin/allocator reserve --order R-1 --json 2>/dev/null")), &held))
	require.NotEmpty(t, held.ID)
	before := "export REDISCLI_AUTH=$ALLOCATOR_API_KEY R=" + held.ID + " TOKEN=" + held.Token + "; "
	replay(t, locksDoc, 14, func(command string) string {
		return shell(before + strings.Replace(command, "redis-cli -p 6380", "redis-cli --no-raw -p "+port, 1))
	}, func(text string) string { return leftovers.ReplaceAllString(text, "…") })
}
