package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"allocator/allocation"
	"allocator/transport/httpapi/wire"
)

// linesType is the media type of one JSON object to a line.
const linesType = "application/x-ndjson"

// wantsLines tells whether the caller would rather have lines than one JSON object. Where it weighs both alike, it is what
// it names.
func wantsLines(accept []string) bool {
	inLines, named := weigh(accept, linesType)
	inJSON, alsoNamed := weigh(accept, "application/json")
	return inLines > inJSON || inLines == inJSON && inLines > 0 && named > alsoNamed
}

// maxLists is how many lists in full a process writes at once: each keeps what it saw for as long as its reader takes.
const maxLists = 16

// listEndGrace is what a list has left when the process is told to end. With a write that hangs before it and another one
// after it that is still less than the time in which the process wants to be gone.
const listEndGrace = 4 * time.Second

// evaluateInLines lists every server.
func (h *handlers) evaluateInLines(ctx context.Context, r wire.EvaluateRequestObject) (wire.EvaluateResponseObject, error) {
	leave := func() {}
	if full(ctx) {
		select {
		case h.lists <- struct{}{}:
			leave = func() { <-h.lists }
		default:
			p := newProblem("unavailable").retryShortly()
			p.detail = "Too many lists in full are being read at the moment."
			return nil, p
		}
	}
	e, view, err := h.summary(ctx, r)
	if err != nil {
		leave()
		return nil, err
	}
	s := &evaluationLines{line: callOf(ctx).line, summary: view, leave: leave, ending: h.ending, until: time.Now().Add(streamLife)}
	if full(ctx) {
		s.all = e
	}
	return s, nil
}

// evaluationLines is an evaluation in full on its way out. It belongs to the goroutine that serves the request.
type evaluationLines struct {
	line    context.Context //nolint:containedctx // the generated code hands the response nothing but a writer
	summary *wire.Evaluation
	all     *allocation.Evaluation // nil: not for this caller
	leave   func()
	ending  <-chan struct{}
	until   time.Time
}

var errListCut = errors.New("the list took too long and was cut")

// VisitEvaluateResponse implements wire.EvaluateResponseObject. Where it is cut there is nobody to tell: the caller sees
// that the last line is missing.
func (s *evaluationLines) VisitEvaluateResponse(w http.ResponseWriter) error {
	defer s.leave()
	header := w.Header()
	header.Set("Content-Type", linesType)
	header.Set("X-Accel-Buffering", "no") // a proxy that gathers would have to keep all of it
	w.WriteHeader(http.StatusOK)
	out := &lineWriter{out: eventWriter{w: w, control: http.NewResponseController(w)}, mayGoOn: s.mayGoOn}
	_ = s.write(out)
	return nil
}

func (s *evaluationLines) write(out *lineWriter) error {
	if err := errors.Join(out.line(wire.EvaluationLine{Summary: s.summary}), out.flush()); err != nil {
		return err
	}
	var end wire.EvaluationEnd
	if s.all != nil {
		out.notedOn(setOf(s.all.UnderEdit))
		for c := range s.all.Ranked() {
			end.Ranked++
			if err := out.ranked(c); err != nil {
				return err
			}
		}
		for r := range s.all.Rejected() {
			end.Rejected++
			if err := out.rejected(&r); err != nil {
				return err
			}
		}
	}
	return errors.Join(out.line(wire.EvaluationLine{Complete: &end}), out.flush())
}

// mayGoOn is asked before each write.
func (s *evaluationLines) mayGoOn() error {
	now := time.Now()
	select {
	case <-s.line.Done():
		return s.line.Err()
	case <-s.ending:
		s.ending = nil
		if last := now.Add(listEndGrace); last.Before(s.until) {
			s.until = last
		}
	default:
	}
	if now.After(s.until) {
		return errListCut
	}
	return nil
}
