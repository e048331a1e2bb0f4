package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// The Go client against the real door: what succeeds is typed, and what does not is an error that says why.
func TestClientRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api, err := client.New(w.server.URL+"/", w.key("acme:all"))
	require.NoError(t, err)
	ctx := t.Context()

	server, err := api.CreateServerWithResponse(ctx, nil, client.NewServer{
		Name: "web-1", Site: "FSN1", State: client.ServerStateReady, Memory: client.Memory{Mib: 65536}, Drives: []client.Drive{},
		Price: client.Price{Amount: "38", Currency: "EUR"},
	})
	require.NoError(t, err)
	require.Equal(t, []client.Drive{}, server.JSON201.Drives)

	wish := client.ReservationRequest{OrderID: "A-1", OrderLine: "1", Requirements: client.Requirements{
		Sites: client.Names{"FSN1"}, Memory: client.MemoryRequirements{MibMin: 1024}, Price: client.PriceLimit{Currency: "EUR", MonthlyMax: "80.00"},
	}}
	made, err := api.CreateReservationWithResponse(ctx, &client.CreateReservationParams{IdempotencyKey: "k", Prefer: "wait=1"}, wish)
	require.NoError(t, err)
	require.Equal(t, client.ReservationStateHeld, made.JSON201.State)
	require.NotNil(t, made.JSON201.HoldToken)
	again, err := api.CreateReservationWithResponse(ctx, &client.CreateReservationParams{IdempotencyKey: "k"}, wish)
	require.NoError(t, err)
	require.Equal(t, made.JSON201.ID, again.JSON200.ID)

	wish.OrderID = "A-2"
	_, err = api.CreateReservationWithResponse(ctx, &client.CreateReservationParams{IdempotencyKey: "k2"}, wish)
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, client.ProblemCodeNoCapacity, refused.Code)
	require.Equal(t, client.CauseAllHeld, refused.Cause)
	require.Equal(t, client.ActionWaitUntil, refused.Action)
	require.WithinDuration(t, made.JSON201.ExpiresAt, refused.NextExpiryAt, 0)
	require.Equal(t, client.ProblemCodeNoCapacity, client.CodeOf(err))

	_, err = api.UpdateServerWithBodyWithResponse(ctx, server.JSON201.ID, &client.UpdateServerParams{IfMatch: `"9"`}, "application/json", strings.NewReader(`{"tags":["x"]}`))
	require.ErrorAs(t, err, &refused)
	require.Equal(t, `"1"`, refused.ETag)

	order, err := api.GetOrderWithResponse(ctx, "A-1")
	require.NoError(t, err)
	require.Len(t, order.JSON200.Reservations, 1)
}

func TestClientTellsForeignAnswersApart(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"a page of a proxy": "<html>", "JSON of somebody else": `{"error":"x"}`} {
		foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(text))
		}))
		api, err := client.New(foreign.URL, "alk_x")
		require.NoError(t, err)
		_, err = api.VersionWithResponse(t.Context())
		var stranger *client.ForeignError
		require.ErrorAs(t, err, &stranger, name)
		require.Equal(t, 502, stranger.StatusCode)
		foreign.Close()
	}
}

// A key must not travel to where a redirection points.
func TestClientDoesNotFollow(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Error("the request followed, with the key " + r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	api, err := client.New(moved.URL, "alk_x")
	require.NoError(t, err)
	_, err = api.VersionWithResponse(t.Context())
	require.Error(t, err)
	var refused *client.Error
	require.NotErrorAs(t, err, &refused)
}

func TestClientWantsAnAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "localhost:8080", "ftp://x", "http://", "://"} {
		_, err := client.New(address, "k")
		require.Error(t, err, address)
	}
}
