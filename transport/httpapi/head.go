package httpapi

import (
	"context"
	"net/http"
)

type methodKey struct{}

// withHead answers HEAD as GET without its body, on every route that has a GET and for errors too.
func withHead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		get := r.Clone(context.WithValue(r.Context(), methodKey{}, r.Method))
		get.Method = http.MethodGet
		next.ServeHTTP(headWriter{w}, get)
	})
}

// headWriter lets the header through and drops the body.
type headWriter struct{ http.ResponseWriter }

// Write implements io.Writer.
func (headWriter) Write(p []byte) (int, error) { return len(p), nil }

// originalMethod is the method that the caller sent.
func originalMethod(r *http.Request) string {
	if method, ok := r.Context().Value(methodKey{}).(string); ok {
		return method
	}
	return r.Method
}
