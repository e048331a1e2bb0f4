package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"time"
)

const linesType = "application/x-ndjson"

// ErrCutShort says that a list ended before its last line: the service went away, or it was read too slowly. The same call
// may succeed shortly.
var ErrCutShort = errors.New("the list was cut before its end, so servers may be missing: ask again")

var errNoLines = errors.New("the service answers with no list in full: it may be an older version")

// EvaluateInFull judges every server and yields the answer line by line as it comes: the summary, the servers that fit,
// the others, and how many these were. An error is yielded last and means that the list is not whole; it is ErrCutShort,
// an *Error, or that of the connection. A caller that stops early hangs up.
//
// The whole may take longer than other calls; what ends it is ctx, or a service that says nothing for half a minute.
func (c *ClientWithResponses) EvaluateInFull(ctx context.Context, wanted EvaluationRequest) iter.Seq2[EvaluationLine, error] {
	return c.evaluateInFull(ctx, wanted, timeout)
}

func (c *ClientWithResponses) evaluateInFull(
	ctx context.Context, wanted EvaluationRequest, patience time.Duration,
) iter.Seq2[EvaluationLine, error] {
	return func(yield func(EvaluationLine, error) bool) {
		ctx, cancel := context.WithCancelCause(context.WithValue(ctx, unhurried{}, true))
		defer cancel(nil)
		silence := time.AfterFunc(patience, func() { cancel(fmt.Errorf("%w (nothing came for %s)", ErrCutShort, patience)) })
		defer silence.Stop()
		body, err := c.lines(ctx, wanted)
		if err != nil {
			yield(EvaluationLine{}, because(ctx, err))
			return
		}
		defer func() { _ = body.Close() }()
		read := &lineReader{from: json.NewDecoder(body)}
		for {
			line, err := read.next()
			silence.Stop() // what the caller does with it takes as long as it takes
			switch {
			case err != nil:
				yield(EvaluationLine{}, because(ctx, err))
				return
			case !yield(line, nil) || line.Complete != nil:
				return
			}
			silence.Reset(patience)
		}
	}
}

// because prefers the reason for which a call was given up to the error that came of it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// lines begins the call.
func (c *ClientWithResponses) lines(ctx context.Context, wanted EvaluationRequest) (io.ReadCloser, error) {
	answer, err := c.Evaluate(ctx, wanted, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Accept", linesType)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != linesType {
		return nil, errors.Join(errNoLines, answer.Body.Close())
	}
	return answer.Body, nil
}

// lineReader reads lines and counts the servers in them.
type lineReader struct {
	from *json.Decoder
	seen EvaluationEnd
}

func (r *lineReader) next() (line EvaluationLine, err error) {
	err = r.from.Decode(&line)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return line, ErrCutShort
	case err != nil:
		return line, err
	case line.Ranked != nil:
		r.seen.Ranked++
	case line.Rejected != nil:
		r.seen.Rejected++
	case line.Complete != nil && *line.Complete != r.seen:
		return line, fmt.Errorf("%w (it has %d and %d servers, and says that it has %d and %d)",
			ErrCutShort, r.seen.Ranked, r.seen.Rejected, line.Complete.Ranked, line.Complete.Rejected)
	}
	return line, nil
}
