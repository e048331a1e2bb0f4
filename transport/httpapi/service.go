package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"allocator/transport/httpapi/wire"
)

// Readiness tells whether requests can be served: the database is reached, its schema is one that this release serves, and
// what takes long at the start is done. The error is for the log; of a NotYetError callers learn the text, of another only
// that it is not so.
type Readiness interface {
	// Ready returns nil when requests can be served.
	Ready(ctx context.Context) error
}

// NotYetError says in a sentence for callers why a process that is well does not take requests yet.
type NotYetError string

func (e NotYetError) Error() string { return string(e) }

// registerService adds the routes about the service itself. They are in the contract like all others.
func (s *Server) registerService(e *echo.Echo, guards map[string][]echo.MiddlewareFunc) {
	e.GET("/livez", s.livez, guards["livez"]...)
	e.GET("/readyz", s.readyz, guards["readyz"]...)
	e.GET("/version", s.version, guards["version"]...)
	e.GET("/openapi.json", s.openapi, guards["openapi"]...)
	e.GET("/problems/:slug", s.problem, guards["problem"]...)
}

func (s *Server) livez(c echo.Context) error {
	return c.JSON(http.StatusOK, wire.Status{Status: "alive"})
}

func (s *Server) readyz(c echo.Context) error {
	if s.draining.Load() {
		p := newProblem("unavailable").retryShortly()
		p.detail = "This process is going away and takes no new requests."
		return p
	}
	if err := s.deps.Ready.Ready(c.Request().Context()); err != nil {
		p := newProblem("unavailable").retryShortly()
		p.detail = "The database is not reached, or its schema is not one that this release serves."
		if notYet, ok := errors.AsType[NotYetError](err); ok {
			p.detail = string(notYet)
		}
		p.hidden = err
		return p
	}
	return c.JSON(http.StatusOK, wire.Status{Status: "ready"})
}

func (s *Server) version(c echo.Context) error {
	return c.JSON(http.StatusOK, wire.Version{Version: s.deps.Version})
}

func (s *Server) openapi(c echo.Context) error {
	return c.JSONBlob(http.StatusOK, s.published)
}
