package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var errNoAddress = errors.New("it must be the address of the service, such as https://allocator.example.com")

// Error is an answer that is no success, with everything that the service said about it.
type Error struct {
	Problem
	// RetryAfter is how long the service asks to wait before the request is sent again; 0 if it says nothing.
	RetryAfter time.Duration
	// ETag is the current one, after precondition_failed.
	ETag string
}

// Error implements error.
func (e *Error) Error() string {
	parts := []string{fmt.Sprintf("%s (%s)", e.Detail, e.Code)}
	for _, f := range e.Errors {
		parts = append(parts, f.Pointer+": "+f.Detail)
	}
	return strings.Join(parts, "; ")
}

// CodeOf returns the code of an answer that was no success, and "" for any other error.
func CodeOf(err error) ProblemCode {
	if answered, ok := errors.AsType[*Error](err); ok {
		return answered.Code
	}
	return ""
}

// ForeignError is an answer that is not the service's: of a proxy, or of whatever else listens at the address.
type ForeignError struct {
	StatusCode int
}

// Error implements error.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the answer with status %d is not Allocator's: check the address, and what stands in between", e.StatusCode)
}

// refusing turns every answer that is no success into an error, so that no caller can take one for the other.
type refusing struct {
	next      HttpRequestDoer
	unhurried HttpRequestDoer // for calls that have no limit of their own
}

// unhurried marks the context of such a call.
type unhurried struct{}

// maxProblem bounds what is read of an error answer.
const maxProblem = 1 << 20

// Do implements HttpRequestDoer.
func (c *refusing) Do(r *http.Request) (*http.Response, error) {
	next := c.next
	if r.Context().Value(unhurried{}) != nil {
		next = c.unhurried
	}
	answer, err := next.Do(r)
	if err != nil || answer.StatusCode < http.StatusMultipleChoices {
		return answer, err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	err = errors.Join(err, answer.Body.Close())
	if err != nil {
		return nil, fmt.Errorf("the answer with status %d broke off: %w", answer.StatusCode, err)
	}
	refused := &Error{ETag: answer.Header.Get("ETag")}
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(text, &refused.Problem) != nil || refused.Code == "" {
		return nil, &ForeignError{StatusCode: answer.StatusCode}
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		refused.RetryAfter = time.Duration(seconds) * time.Second
	}
	return nil, refused
}
