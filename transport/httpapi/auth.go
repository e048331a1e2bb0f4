package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"allocator/events"
	"allocator/identity"
)

// Authenticator tells who sends a key. Errors: identity.ErrUnauthenticated (a RefusedError where more is known) if the
// key is not accepted, identity.ErrUnavailable if that could not be found out.
type Authenticator interface {
	// Authenticate tells who sends the text alk_….
	Authenticate(ctx context.Context, text string) (identity.Caller, error)
}

// AttemptRecorder keeps attempts that were refused before they became an act.
type AttemptRecorder interface {
	// Record writes one entry down.
	Record(ctx context.Context, entry events.AuditEntry) error
}

// authenticate finds out who calls. The organization comes from the key alone.
func (s *Server) authenticate(c echo.Context, op *operation) error {
	if op.open {
		return nil
	}
	ctx := c.Request().Context()
	text, given := bearer(c.Request().Header.Values("Authorization"))
	if !given {
		return unauthenticated("")
	}
	caller, err := s.deps.Authenticator.Authenticate(ctx, text)
	if errors.Is(err, identity.ErrUnauthenticated) {
		s.recordRefusal(ctx, op, err)
		return unauthenticated("invalid_token")
	}
	if err != nil {
		return err
	}
	k := callOf(ctx)
	caller.RequestID = k.requestID
	k.caller = caller
	return nil
}

// bearer takes the key out of the one Authorization header.
func bearer(values []string) (text string, given bool) {
	if len(values) != 1 {
		return "", false
	}
	scheme, text, found := strings.Cut(values[0], " ")
	return text, found && strings.EqualFold(scheme, "Bearer")
}

func unauthenticated(fault string) *problem {
	p := newProblem("unauthenticated")
	challenge := `Bearer realm="allocator"`
	if fault != "" {
		challenge += `, error="` + fault + `"`
	}
	p.header.Set("WWW-Authenticate", challenge)
	return p
}

// authorize asks for one of the scopes that the contract names.
func (s *Server) authorize(c echo.Context, op *operation) error {
	ctx := c.Request().Context()
	caller := callerOf(ctx)
	if op.open || slices.ContainsFunc(op.scopes, caller.Scopes.Has) {
		return nil
	}
	s.recordAttempt(ctx, events.AuditEntry{
		OrganizationID: string(caller.Organization), ActorKind: string(caller.Actor.Kind), ActorID: caller.Actor.ID,
		Subject: op.method + " " + op.path, Detail: map[string]string{"code": "missing_scope"},
	})
	needed := identity.NewScopeSet(op.scopes...)
	p := newProblem("missing_scope")
	p.detail = "This needs a key with one of these scopes: " + needed.String() + "."
	p.header.Set("WWW-Authenticate", `Bearer realm="allocator", error="insufficient_scope", scope="`+strings.Join(needed.Names(), " ")+`"`)
	return p
}

// recordRefusal writes down a key that was not accepted, in the trail of its organization if the secret was right.
func (s *Server) recordRefusal(ctx context.Context, op *operation, err error) {
	entry := events.AuditEntry{
		ActorKind: string(identity.ActorKey), Subject: op.method + " " + op.path,
		Detail: map[string]string{"code": "unauthenticated"},
	}
	if refused, ok := errors.AsType[*identity.RefusedError](err); ok {
		entry.OrganizationID, entry.ActorID = string(refused.Organization), string(refused.KeyID)
		entry.Detail["reason"] = string(refused.Refusal)
	}
	s.recordAttempt(ctx, entry)
}

// recordAttempt never changes the answer: the attempt was refused already.
func (s *Server) recordAttempt(ctx context.Context, entry events.AuditEntry) {
	entry.Action, entry.RequestID = events.ActionRequest, callOf(ctx).requestID
	if err := s.deps.Attempts.Record(ctx, entry); err != nil {
		s.deps.Log.WarnContext(ctx, "a refused attempt could not be recorded",
			slog.String("request_id", entry.RequestID), slog.String("error", err.Error()))
	}
}
