package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

func TestTheNearestMissIsSaidOnce(t *testing.T) {
	t.Parallel()
	const nearest = `Without the requirement "sites" 1 server would fit at once.`
	for _, text := range []string{"None of 3 servers meets every requirement. " + nearest, "None of 3 servers meets every requirement."} {
		var out bytes.Buffer
		require.NoError(t, (&process{stdout: &out}).showEvaluation(client.Evaluation{Text: text, Nearest: client.Nearest{Text: nearest}}, 10))
		require.Equal(t, 1, strings.Count(out.String(), nearest), out.String())
	}
}
