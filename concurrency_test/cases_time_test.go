//go:build gates

package concurrency_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/reservation"
)

// A hold lives as long as it should, by this process's clock too, and is told as the same instant with its offset by the
// API and by the command line, in whatever time zones process, database and command line are.
//
// Requirements: R51. Cases: EX-02.
func TestTimeZonesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/St_Johns''', current_database()); END $$`)
	w.pool.Reset()
	w.servers(1)
	d := w.daemon(daemonOptions{env: []string{"TZ=Asia/Kolkata"}})
	before := time.Now()
	status, _ := d.order(http.DefaultClient, "zones")
	after := time.Now()
	require.Equal(t, http.StatusCreated, status)
	require.Equal(t, "00:15:00", one[string](w, `SELECT (expires_at - created_at)::text FROM reservations`))
	require.True(t, one[bool](w, `SELECT expires_at BETWEEN clock_timestamp() AND clock_timestamp() + interval '15 minutes' FROM reservations`))
	stored := one[time.Time](w, `SELECT expires_at FROM reservations`).UTC()
	require.WithinRange(t, stored, before.Add(15*time.Minute-time.Second), after.Add(15*time.Minute+time.Second))

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/v1/reservations?order_id=zones", http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+d.key)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	inJSON := stored.Format("2006-01-02T15:04:05.999999Z")
	require.Contains(t, string(body), inJSON)
	require.Contains(t, d.commandLine("TZ=Pacific/Kiritimati", "explain", "zones", "--json"), inJSON)
	require.Contains(t, d.commandLine("TZ=Pacific/Kiritimati", "explain", "zones"), stored.Format("2006-01-02 15:04:05Z"))

	w.pool.Reset()
	require.Zero(t, swept(w, w.ctx, w.reservations), "alive for the sweep too")
}

// commandLine is what a command says that asks the daemon.
func (d *daemon) commandLine(env string, args ...string) string {
	d.t.Helper()
	path, err := program()
	require.NoError(d.t, err)
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "ALLOCATOR_URL="+d.url, "ALLOCATOR_API_KEY="+d.key, env)
	out, err := cmd.CombinedOutput()
	require.NoError(d.t, err, "%s", out)
	return string(out)
}

// Where summer time begins and ends, holds last as long as ever and are swept when they are due: neither the hour that
// is left out nor the one that comes twice is seen by anything.
//
// Cases: EX-04.
func TestSummerTimeIsNotNoticed(t *testing.T) {
	t.Parallel()
	for zone, changes := range map[string][]time.Time{
		"Europe/Berlin":       {time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), time.Date(2027, 10, 31, 1, 0, 0, 0, time.UTC)},
		"Australia/Lord_Howe": {time.Date(2027, 4, 3, 15, 0, 0, 0, time.UTC), time.Date(2027, 10, 2, 15, 30, 0, 0, time.UTC)},
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			c := newClock(t, 0)
			w := worldAt(t, c.node.URL(), 90)
			w.exec(fmt.Sprintf(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %%I SET timezone = %%L', current_database(), '%s'); END $$`, zone))
			w.pool.Reset()
			for n, change := range changes {
				var ids []reservation.ID
				for minute := -20; minute <= 20; minute++ {
					c.set(time.Until(change.Add(time.Duration(minute) * time.Minute)))
					ids = append(ids, w.held(fmt.Sprint(n, "-", minute)).Reservation.ID)
					due := one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held' AND expires_at <= clock_timestamp()`)
					require.Equal(t, due, swept(w, w.ctx, w.reservations))
				}
				require.Equal(t, 1, one[int](w, `SELECT count(DISTINCT expires_at - created_at) FROM reservations`))
				require.Equal(t, "00:15:00", one[string](w, `SELECT max(expires_at - created_at)::text FROM reservations`))
				c.set(time.Until(change.Add(time.Hour)))
				swept(w, w.ctx, w.reservations)
				for _, id := range ids {
					require.Equal(t, "expired", w.state(id))
				}
			}
			w.sound()
		})
	}
}
