package httpapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"

	"allocator/transport/httpapi/strictjson"
	"allocator/transport/httpapi/wire"
)

// problem is an error answer on its way out. Handlers and guards return it as an error; the error handler writes it.
type problem struct {
	*problemType
	detail string              // instead of the row's sentence
	fill   func(*wire.Problem) // members that only this answer has; may be nil
	header http.Header         // may be nil
	hidden error               // for the log, never for the caller
}

// Error implements error. It is what the log shows.
func (p *problem) Error() string {
	if p.hidden != nil {
		return p.code + ": " + p.hidden.Error()
	}
	return p.code
}

// Unwrap implements the errors package's convention.
func (p *problem) Unwrap() error { return p.hidden }

// newProblem makes an answer of one row of the table. A code that the table does not have is a mistake of the program,
// which the tests of every caller would show.
func newProblem(code string) *problem {
	row := problemTypes[code]
	if row == nil {
		panic("httpapi: the table of problems has no row " + code)
	}
	return &problem{problemType: row, header: http.Header{}}
}

// invalid is the answer that lists what is wrong with a request.
func invalid(faults ...strictjson.Fault) *problem {
	p := newProblem("invalid_request")
	p.fill = func(body *wire.Problem) {
		body.Errors = make([]wire.Fault, len(faults))
		for i, f := range faults {
			body.Errors[i] = wire.Fault{Pointer: f.Pointer, Code: f.Code, Detail: f.Detail}
		}
	}
	return p
}

// retryShortly asks the caller to wait for 1 to 3 seconds. The spread keeps a crowd that was refused together from coming
// back together.
func (p *problem) retryShortly() *problem {
	p.header.Set("Retry-After", strconv.Itoa(1+rand.IntN(3))) //nolint:gosec // spreads a crowd, guards nothing
	return p
}

// body is what the caller reads.
func (p *problem) body(requestID string) wire.Problem {
	body := wire.Problem{
		Type: "/problems/" + p.code, Title: p.title, Status: p.status, Detail: p.sentence, Code: wire.ProblemCode(p.code),
		Retryable: p.retryable(), Action: wire.Action(p.action), RequestID: requestID,
	}
	if p.detail != "" {
		body.Detail = p.detail
	}
	if p.fill != nil {
		p.fill(&body)
	}
	return body
}

// etag is the entity tag of a version, which grows with every change of a record.
func etag(version int64) string { return fmt.Sprintf("%q", strconv.FormatInt(version, 10)) }
