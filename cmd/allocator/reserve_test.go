package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

func TestAReservationThatIsThereAlreadySaysHowItStands(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 13, 10, 0, 0, 0, time.UTC)
	for sentence, c := range map[string]struct {
		r    client.Reservation
		says string
	}{
		"held":      {client.Reservation{State: "held"}, "is held until 2026-03-13 10:00:00Z."},
		"expired":   {client.Reservation{State: "expired"}, "was held until 2026-03-13 10:00:00Z and is not any more."},
		"cancelled": {client.Reservation{State: "cancelled", EndedAt: at, EndReason: "fraud"}, "was given up at 2026-03-13 10:00:00Z (fraud)."},
		"converted": {client.Reservation{State: "converted", ServiceID: "svc-1"}, "is sold to service svc-1."},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			c.r.ID, c.r.ExpiresAt, c.r.Server = "res_1", at, client.ReservedServer{ID: "srv_1", Name: "one", Site: "FSN1"}
			got := inProcess(t, answering(t, http.StatusOK, c.r, c.r), "reserve", "--order", "A-1", "--key", "k-1")
			require.Equal(t, exitDone, got.code, got.stderr)
			require.Contains(t, got.stdout, "The key or the order line already has this reservation: one in FSN1 "+c.says+"\n")
		})
	}
}

func TestWhatIsSuggestedNextIsWhatTheKeyCanDo(t *testing.T) {
	t.Parallel()
	token := "hold_k_1"
	for sentence, c := range map[string]struct {
		r      client.Reservation
		has    []string
		hasNot string
	}{
		"staff need no hold token":     {client.Reservation{IdempotencyKey: "k-1", HoldToken: &token}, []string{"convert res_1 --service ID"}, "--hold-token"},
		"a checkout proves its hold":   {client.Reservation{HoldToken: &token}, []string{"renew res_1 --hold-token hold_k_1\n", "cancel res_1 --hold-token hold_k_1\n", "the scope orders"}, "payment"},
		"another checkout has nothing": {client.Reservation{}, []string{"Only the key that made it"}, "allocator "},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			c.r.ID = "res_1"
			steps := nextSteps(c.r)
			for _, piece := range c.has {
				require.Contains(t, steps, piece)
			}
			require.NotContains(t, steps, c.hasNot)
		})
	}
}
