package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// selectOne serves SELECT 1 over HTTP, as little as a read through a service and its database can be.
func selectOne(ctx context.Context, w *world) (url string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var one int
		if err := w.pool.QueryRow(r.Context(), `SELECT 1`).Scan(&one); err != nil {
			http.Error(rw, "no answer", http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintln(rw, one)
	})}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() { _ = server.Close() }, nil
}

// get is a contender that reads one address.
func (d *door) get(name, url string) *contender {
	return &contender{
		name:    name,
		prepare: func(context.Context, string) error { return nil },
		do: func(ctx context.Context, _ int) (bool, error) {
			err := d.fetch(ctx, url)
			return err == nil, err
		},
	}
}

func (d *door) fetch(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+d.key)
	answer, err := d.http.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	err = errors.Join(err, answer.Body.Close())
	switch {
	case err != nil:
		return err
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered %s: %s", url, answer.Status, body)
	}
	return nil
}
