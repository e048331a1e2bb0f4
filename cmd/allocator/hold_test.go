package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// answering is a service that gives the same reservation to every question, and another to every request for a change.
func answering(t *testing.T, status int, seen, changed client.Reservation) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(seen)
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(changed)
	}))
	t.Cleanup(server.Close)
	return map[string]string{"ALLOCATOR_URL": server.URL, "ALLOCATOR_API_KEY": "alk_x"}
}

func TestCancelSaysWhatThisCallHasDone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 13, 10, 0, 0, 0, time.UTC)
	server := client.ReservedServer{ID: "srv_1", Name: "one", Site: "FSN1"}
	held := client.Reservation{ID: "res_1", State: client.ReservationStateHeld, Server: server, ExpiresAt: at}
	ended := func(state client.ReservationState, reason, text string) client.Reservation {
		r := held
		r.State, r.EndedAt, r.EndReason, r.EndText = state, at.Add(time.Minute), reason, text
		return r
	}
	for sentence, c := range map[string]struct {
		before, after client.Reservation
		args          []string
		says          string
	}{
		"it cancelled, for no reason that was given": {held, ended("cancelled", "other", ""), nil, "The reservation is cancelled (other); one in FSN1 is free for the next order.\n"},
		"it cancelled, for the reason that was given": {
			held, ended("cancelled", "fraud", "stolen card"),
			[]string{"--reason", "fraud", "--text", "stolen card"},
			"The reservation is cancelled (fraud); one in FSN1 is free for the next order.\n",
		},
		"it was cancelled before": {
			ended("cancelled", "other", ""), ended("cancelled", "other", ""), nil,
			"The reservation was cancelled already (other, at 2026-03-13 10:01:00Z): nothing to cancel.\n",
		},
		"somebody else cancelled a moment earlier": {
			held, ended("cancelled", "staff", "broken"), nil, "The reservation was cancelled already (staff, at 2026-03-13 10:01:00Z): nothing to cancel.\n",
		},
		"it had expired": {
			ended("expired", "", ""), ended("expired", "", ""), nil, "The reservation had expired at 2026-03-13 10:00:00Z: nothing to cancel.\n",
		},
		"it expired meanwhile": {held, ended("expired", "", ""), nil, "The reservation had expired at 2026-03-13 10:00:00Z: nothing to cancel.\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := inProcess(t, answering(t, http.StatusOK, c.before, c.after), append([]string{"cancel", "res_1"}, c.args...)...)
			require.Equal(t, exitDone, got.code, got.stderr)
			require.Equal(t, c.says, got.stdout)
		})
	}
}
