package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// The limits of a connection. Without them a client that sends a byte a second holds a connection for ever.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = requestTimeout + 10*time.Second
	idleTimeout       = 60 * time.Second
	maxHeaderBytes    = 32 << 10
	drainTimeout      = requestTimeout + 5*time.Second
)

// Serve answers requests from the listener until ctx ends. Then /readyz says no, requests are served for DrainDelay
// more, new ones are refused after that, and those that are under way are finished. It returns nil after an orderly end.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	select {
	case err := <-ended:
		return err
	case <-time.After(s.deps.DrainDelay):
	}
	if !s.closing.Swap(true) {
		close(s.ending)
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(finish); err != nil {
		return errors.Join(err, server.Close())
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// slogWriter lets echo's own logger speak through ours.
type slogWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w slogWriter) Write(p []byte) (int, error) {
	w.log.Warn("router", slog.String("message", strings.TrimSpace(string(p))))
	return len(p), nil
}
