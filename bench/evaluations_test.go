package bench

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A list that was cut is no measurement.
func TestListsThatAreNotWholeAreNotMeasured(t *testing.T) {
	t.Parallel()
	require.NoError(t, readLines(strings.NewReader("{\"summary\":{}}\n{\"complete\":{}}\n")))
	for _, text := range []string{"", "{\"summary\":{}}\n", "{\"complete\":{}}\n{\"ranked\":{}}\n"} {
		require.ErrorContains(t, readLines(strings.NewReader(text)), "cut before its end")
	}
}
