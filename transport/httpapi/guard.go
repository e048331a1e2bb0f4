package httpapi

import (
	"fmt"

	"github.com/labstack/echo/v4"
)

// guard stands before every handler, with what the contract says about its operation. The order of the steps is what a
// stranger may learn: nothing before the key is known, no parameter before the scope is.
func (s *Server) guard(op *operation) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			callOf(c.Request().Context()).op = op
			if !op.open { // tokens, keys and other people's orders belong in no cache
				c.Response().Header().Set("Cache-Control", "no-store")
			}
			for _, step := range []func(echo.Context, *operation) error{
				s.turnAway, s.authenticate, s.authorize, checkPath, checkQuery, checkHeaders, readBody,
			} {
				if err := step(c, op); err != nil {
					return err
				}
			}
			return next(c)
		}
	}
}

// turnAway refuses new work while the process is going away.
func (s *Server) turnAway(_ echo.Context, op *operation) error {
	if op.open || !s.closing.Load() {
		return nil
	}
	p := newProblem("unavailable").retryShortly()
	p.header.Set("Connection", "close")
	return p
}

// guards makes the middleware of every operation of the contract.
func (s *Server) guards() map[string][]echo.MiddlewareFunc {
	all := map[string][]echo.MiddlewareFunc{}
	for id, op := range s.operations {
		all[id] = []echo.MiddlewareFunc{s.guard(op)}
	}
	return all
}

// mustMatch refuses to start unless the routes are those of the contract, neither more nor fewer: a route without a
// declared scope would be an open door.
func mustMatch(routes []*echo.Route, operations map[string]*operation) error {
	declared := map[string]bool{}
	for _, op := range operations {
		declared[op.method+" "+op.echoPath()] = true
	}
	for _, r := range routes {
		name := r.Method + " " + r.Path
		if !declared[name] {
			return fmt.Errorf("the route %s is not in openapi.yaml, so nobody has said who may call it", name)
		}
		delete(declared, name)
	}
	for name := range declared {
		return fmt.Errorf("openapi.yaml promises %s, and there is no such route", name)
	}
	return nil
}
