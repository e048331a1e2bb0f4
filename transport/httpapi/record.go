package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"

	"allocator/events"
)

// requestTimeout bounds the work for one request: the longest wish to wait, and one walk after that.
const requestTimeout = 20 * time.Second

// record is around everything: it gives the request its id and its deadline, answers errors and panics, and leaves
// exactly one record of the call in the log.
func (s *Server) record(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		begin := time.Now()
		k := newCall(c.Request())
		k.line = k.into(c.Request().Context())
		ctx, cancel := context.WithTimeout(k.line, requestTimeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		c.Response().Header().Set("X-Request-ID", k.requestID)
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		if len(c.Request().TransferEncoding) > 0 {
			// net/http hides a Content-Length that came along. Whoever stands in between may have believed that one
			// (RFC 9112, section 6.3), so nothing more is read from this connection.
			c.Response().Header().Set("Connection", "close")
		}
		if s.draining.Load() {
			// The process is about to close its idle connections, and a request that is sent just then gets no answer.
			c.Response().Header().Set("Connection", "close")
		}
		if err := recovered(next, c); err != nil {
			s.answerError(err, c)
		}
		s.log(c, k, time.Since(begin))
		return nil
	}
}

// recovered turns a panic into an error with its stack. http.ErrAbortHandler passes: it asks to drop the connection.
func recovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			panic(cause)
		default:
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return next(c)
}

// overreach are the refusals behind the door of a caller that asked for what it has no right to.
var overreach = map[string]bool{"not_holder": true, "scope_exceeded": true, "edit_refused": true}

// answerError writes an error as problem+json, if nothing has been written yet.
func (s *Server) answerError(err error, c echo.Context) {
	k, p := callOf(c.Request().Context()), translate(err)
	k.code = p.code
	if overreach[p.code] {
		s.recordAttempt(c.Request().Context(), events.AuditEntry{
			OrganizationID: string(k.caller.Organization), ActorKind: string(k.caller.Actor.Kind), ActorID: k.caller.Actor.ID,
			Subject: k.method + " " + c.Path(), Detail: map[string]string{"code": p.code},
		})
	}
	switch {
	case errors.Is(c.Request().Context().Err(), context.Canceled):
		k.code = "caller_gone" // nobody reads the answer, and nothing is wrong with the service
	case p.status >= http.StatusInternalServerError || c.Response().Committed:
		k.failed = err
	}
	if c.Response().Committed {
		return
	}
	header := c.Response().Header()
	maps.Copy(header, p.header)
	if allow, ok := c.Get(echo.ContextKeyHeaderAllow).(string); ok && p.status == http.StatusMethodNotAllowed {
		header.Set(echo.HeaderAllow, withHeadMethod(allow))
	}
	header.Set("Content-Type", "application/problem+json")
	if err := writeJSON(c.Response(), p.status, p.body(k.requestID)); err != nil {
		k.failed = errors.Join(k.failed, err)
	}
}

// log leaves the record. The values are the caller's only where they have been checked; the handler escapes the rest.
func (s *Server) log(c echo.Context, k *call, took time.Duration) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("request_id", k.requestID), slog.String("method", k.method), slog.String("route", c.Path()),
		slog.Int("status", c.Response().Status), slog.Int64("bytes", c.Response().Size), slog.Duration("took", took),
		slog.String("client", c.RealIP()),
	}
	if k.code != "" {
		attrs = append(attrs, slog.String("code", k.code))
	}
	if k.caller.KeyID != "" {
		attrs = append(attrs, slog.String("organization", string(k.caller.Organization)), slog.String("key", string(k.caller.KeyID)))
	}
	attrs = append(attrs, k.ids...)
	if k.failed != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", k.failed.Error()))
	}
	s.deps.Log.LogAttrs(context.WithoutCancel(c.Request().Context()), level, "request", attrs...)
}
