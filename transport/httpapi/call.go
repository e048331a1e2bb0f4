package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"

	"github.com/google/uuid"

	"allocator/identity"
	"allocator/transport/httpapi/strictjson"
)

// call is one request on its way through: who calls, what was read, and what the log will say. It belongs to the
// goroutine that serves the request.
type call struct {
	requestID string
	method    string
	accept    []string
	line      context.Context //nolint:containedctx // until the caller goes away, for a stream; the call has its own time
	op        *operation      // nil until the route is known to be one
	caller    identity.Caller
	text      []byte            // the body, read and checked; empty if there is none
	body      *strictjson.Value // of the body
	code      string            // of the problem that was answered
	failed    error             // for the log alone
	ids       []slog.Attr
}

type callKey struct{}

func newCall(r *http.Request) *call {
	return &call{requestID: requestID(r), method: originalMethod(r), accept: r.Header.Values("Accept")}
}

func (k *call) into(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, k) }

// callOf returns the call that a context belongs to.
func callOf(ctx context.Context) *call {
	if k, ok := ctx.Value(callKey{}).(*call); ok {
		return k
	}
	return &call{}
}

// callerOf returns who calls.
func callerOf(ctx context.Context) identity.Caller { return callOf(ctx).caller }

// note adds ids to the record of this call in the log; empty ones are left out.
func note[T ~string](ctx context.Context, name string, id T) {
	if id != "" {
		k := callOf(ctx)
		k.ids = append(k.ids, slog.String(name, string(id)))
	}
}

// full tells whether the caller may see other orders and servers of its organization, and not only counts.
func full(ctx context.Context) bool { return callerOf(ctx).Scopes.Has(identity.ScopeSupport) }

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// requestID takes the caller's X-Request-Id if it is one that can stand in any log, and makes one otherwise.
func requestID(r *http.Request) string {
	if given := r.Header.Values("X-Request-ID"); len(given) == 1 && requestIDPattern.MatchString(given[0]) {
		return given[0]
	}
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}
