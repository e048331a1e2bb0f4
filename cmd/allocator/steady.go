package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

const (
	// steadyLines is how much is kept for a reader who is late.
	steadyLines = 4096
	// steadyFlush is how long the end of the process waits for such a reader.
	steadyFlush = 5 * time.Second
)

// steadyWriter writes beside whoever writes to it, who therefore never waits: a log that nobody reads, or a full disk
// behind it, must not stop the service in the middle of a request. What finds no room is lost and counted. Safe for
// concurrent use until flush.
type steadyWriter struct {
	to      io.Writer
	texts   chan []byte
	lost    atomic.Int64
	written chan struct{} // closed when everything has been written
}

func newSteadyWriter(to io.Writer) *steadyWriter {
	w := &steadyWriter{to: to, texts: make(chan []byte, steadyLines), written: make(chan struct{})}
	go w.run()
	return w
}

// Write implements io.Writer. It never fails.
func (w *steadyWriter) Write(text []byte) (int, error) {
	select {
	case w.texts <- append([]byte(nil), text...):
	default:
		w.lost.Add(1)
	}
	return len(text), nil
}

func (w *steadyWriter) run() {
	defer close(w.written)
	for text := range w.texts {
		_, _ = w.to.Write(text) // whoever reads it would be told where it cannot be written
		if lost := w.lost.Swap(0); lost > 0 {
			_, _ = fmt.Fprintf(w.to, `{"level":"WARN","msg":"lines of this log were lost, since nobody took them in time","lines":%d}`+"\n", lost)
		}
	}
}

// flush ends the writer, and waits a while for what was written to it.
func (w *steadyWriter) flush() {
	close(w.texts)
	select {
	case <-w.written:
	case <-time.After(steadyFlush):
	}
}
