package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"

	"allocator/client"
)

// everyReason is what is evaluated: most servers do not fit, and for several reasons.
var everyReason = &classes[1].wanted

// evaluateAll reads an evaluation to its end, every server and every reason of it. With look it stops before the last server,
// with everything in hand that it takes, and looks.
func (w *world) evaluateAll(ctx context.Context, look func()) error {
	e, err := w.allocator.Evaluate(ctx, w.caller, "", *everyReason)
	if err != nil {
		return err
	}
	servers, reasons := 0, 0
	for range e.Ranked() {
		servers++
	}
	for r := range e.Rejected() {
		if servers++; servers == e.Servers && look != nil {
			look()
		}
		reasons += len(r.Verdict.Reasons())
	}
	if servers != len(w.servers.ids) || reasons < servers-e.Eligible {
		return fmt.Errorf("%d servers with %d reasons were told of %d servers", servers, reasons, len(w.servers.ids))
	}
	runtime.KeepAlive(e)
	return nil
}

func (r *run) measureEvaluation(ctx context.Context, w *world) error {
	f := Figure{ID: "evaluate", Name: "evaluation in full", Servers: len(w.servers.ids), Unit: "s", BaseName: "reading the same rows"}
	err := r.pairs(ctx, f, w.readAll, func(ctx context.Context) error { return w.evaluateAll(ctx, nil) })
	if err != nil {
		return err
	}
	var values []float64
	for range min(r.Repetitions, 3) {
		before := liveHeap()
		if err := w.evaluateAll(ctx, func() { values = append(values, liveHeap()-before) }); err != nil {
			return err
		}
	}
	r.report.Figures = append(r.report.Figures, Figure{
		ID: "evaluate", Name: "memory of it while it is read", Servers: len(w.servers.ids), Unit: "B", Value: spreadOf(values),
	})
	return nil
}

// measureEvaluationLines reads the same list over HTTP, line by line, on loopback.
func (r *run) measureEvaluationLines(ctx context.Context, w *world) error {
	d, err := openDoor(ctx, w, 1)
	if err != nil {
		return err
	}
	f := Figure{
		ID: "evaluate-http", Name: "evaluation in full over HTTP", Servers: len(w.servers.ids), Unit: "s",
		BaseName: "reading the same rows",
	}
	return errors.Join(r.pairs(ctx, f, w.readAll, d.evaluateLines), d.close())
}

func (d *door) evaluateLines(ctx context.Context) error {
	wanted, err := wireRequirements(everyReason)
	if err != nil {
		return err
	}
	body, err := json.Marshal(client.EvaluationRequest{Requirements: wanted})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/v1/evaluations", bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + d.key, "Content-Type": "application/json", "Accept": "application/x-ndjson",
	} {
		request.Header.Set(name, value)
	}
	answer, err := d.http.Do(request)
	if err != nil {
		return err
	}
	return errors.Join(readLines(answer.Body), answer.Body.Close())
}

// readLines reads to the last line, which must say that it is the last.
func readLines(from io.Reader) error {
	lines := bufio.NewReaderSize(from, 64<<10)
	var last []byte
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		last = append(last[:0], line...)
	}
	if !bytes.HasPrefix(last, []byte(`{"complete":`)) {
		return errors.New("the list was cut before its end")
	}
	return nil
}
