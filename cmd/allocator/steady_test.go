package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gatedWriter writes nothing before its gate is open.
type gatedWriter struct {
	gate chan struct{}
	to   strings.Builder
}

func (w *gatedWriter) Write(text []byte) (int, error) {
	<-w.gate
	return w.to.Write(text)
}

// Whoever logs never waits for who reads the log: what there is no room for is lost, and that is told.
//
// Faults: F-S4.
func TestALogThatNobodyReadsStopsNobody(t *testing.T) {
	t.Parallel()
	behind := &gatedWriter{gate: make(chan struct{})}
	w := newSteadyWriter(behind)
	for i := range 3 * steadyLines {
		_, err := fmt.Fprintf(w, "line %d\n", i)
		require.NoError(t, err)
	}
	close(behind.gate)
	w.flush()
	text := behind.to.String()
	require.Contains(t, text, "line 0\n")
	require.Contains(t, text, "lines of this log were lost")
	kept := strings.Count(text, "\nline ") + 1
	require.Contains(t, text, fmt.Sprintf(`"lines":%d}`, 3*steadyLines-kept))
}

// Nothing is lost to a reader who keeps up, and the order stays.
func TestALogIsWrittenInOrder(t *testing.T) {
	t.Parallel()
	var all, want strings.Builder
	w := newSteadyWriter(&all)
	for i := range 1000 {
		_, err := fmt.Fprintf(io.MultiWriter(w, &want), "line %d\n", i)
		require.NoError(t, err)
	}
	w.flush()
	require.Equal(t, want.String(), all.String())
}
