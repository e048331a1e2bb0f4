package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"allocator/allocation"
	"allocator/client"
	"allocator/events"
	"allocator/featureflags"
	"allocator/identity"
	"allocator/inventory"
	"allocator/store/postgres"
	"allocator/transport/httpapi"
)

// door is the HTTP door on loopback, in this process, with a key to it and a client that keeps its connections.
type door struct {
	url, key string
	api      *client.ClientWithResponses
	http     *http.Client
	end      context.CancelFunc
	ended    chan error
}

// openDoor serves the world's own services over HTTP. The log is written, and thrown away.
func openDoor(ctx context.Context, w *world, callers int) (*door, error) {
	keys := identity.NewKeys(postgres.NewKeys(w.pool), time.Now)
	_, text, err := keys.Create(ctx, w.caller, identity.NewKey{Name: "bench", Scopes: []identity.Scope{
		identity.ScopeCheckout, identity.ScopeOrders, identity.ScopeSupport, identity.ScopeOperator,
	}})
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	audit := events.NewAudit(postgres.NewAudit(w.pool), time.Now)
	server, err := httpapi.New(httpapi.Deps{ //nolint:contextcheck // requests bring their own
		Authenticator: keys, Attempts: audit, Ready: postgres.NewHealth(w.pool),
		Reserver: w.allocator, Evaluator: w.allocator, Capacity: w.allocator, Decisions: w.allocator,
		Reservations: w.reservations, ReservationChanges: w.reservations, Bindings: w.reservations, ServerStates: w.reservations,
		Servers: inventory.NewService(postgres.NewServers(w.pool)), Events: postgres.NewEvents(w.pool),
		Organizations: identity.NewOrganizations(postgres.NewOrganizations(w.pool), time.Minute), Keys: keys,
		Leases: leaseService(w.pool),
		Flags:  featureflags.New(postgres.NewFlags(w.pool)), Audit: audit,
		Log: slog.New(slog.NewJSONHandler(written{}, nil)), Version: "bench",
	})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &door{url: "http://" + listener.Addr().String(), key: text, ended: make(chan error, 1), http: keepingClient(callers)}
	if d.api, err = client.New(d.url, d.key, client.WithHTTPClient(d.http)); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	d.end = end
	go func() { d.ended <- server.Serve(serving, listener) }()
	return d, nil
}

// written takes the log and throws it away; slog's own discarding handler would not even be asked to write it.
type written struct{}

// Write implements io.Writer.
func (written) Write(p []byte) (int, error) { return len(p), nil }

// keepingClient keeps a connection for each caller.
func keepingClient(callers int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: callers, MaxIdleConnsPerHost: callers, IdleConnTimeout: time.Minute}}
}

func (d *door) close() error {
	d.http.CloseIdleConnections()
	d.end()
	return <-d.ended
}

// reserve makes the reservations of the contender "reserve" through the door, with the product's own client.
func (d *door) reserve(w *world) *contender { return d.reserveAs(w, w.mixed) }

func (d *door) reserveAs(w *world, draw drawing) *contender {
	var wanted []client.ReservationRequest
	return &contender{
		name: "http", most: w.most(),
		prepare: func(ctx context.Context, round string) (err error) {
			wanted, err = wireRequests(draw(round))
			return errors.Join(err, w.warm(ctx, round))
		},
		do: func(ctx context.Context, i int) (bool, error) {
			params := &client.CreateReservationParams{IdempotencyKey: wanted[i].OrderID}
			answer, err := d.api.CreateReservationWithResponse(ctx, params, wanted[i])
			if refusal, ok := errors.AsType[*client.Error](err); ok && refusal.Status == http.StatusConflict {
				return false, nil
			}
			return err == nil && answer.JSON201 != nil, err
		},
	}
}

// wireRequests writes what orders ask for as a shop would.
func wireRequests(drawn []order) ([]client.ReservationRequest, error) {
	written := map[*class]client.Requirements{}
	requests := make([]client.ReservationRequest, len(drawn))
	for i, o := range drawn {
		if _, known := written[o.class]; !known {
			wanted, err := wireRequirements(&o.wanted)
			if err != nil {
				return nil, err
			}
			written[o.class] = wanted
		}
		requests[i] = client.ReservationRequest{
			OrderID: o.name, OrderLine: "1", Unit: 1, CustomerRef: "customer-" + o.name, Requirements: written[o.class],
		}
	}
	return requests, nil
}

// wireRequirements goes by way of JSON, in which both are the same.
func wireRequirements(wanted *allocation.Requirements) (client.Requirements, error) {
	var written client.Requirements
	text, err := json.Marshal(wanted)
	if err == nil {
		err = json.Unmarshal(text, &written)
	}
	return written, err
}
