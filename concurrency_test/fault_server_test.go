//go:build gates && unix

package concurrency_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// PostgreSQL is stopped without ceremony under load, again and again. Nothing that was acknowledged is lost; what was
// not is found by its key or does not exist.
//
// Requirements: R03. Faults: F-C4.
func TestPostgresStoppedWithoutCeremony(t *testing.T) {
	t.Parallel()
	node := postgrestest.NewNode(t, postgrestest.NodeOptions{})
	w := worldAt(t, node.URL(), 4000)
	l := w.underLoad(node.URL(), 3, 3)
	rounds := int(number(t, roundsEnv, 3))
	for range rounds {
		l.until(30, toldSold)
		node.Immediate()
		l.until(1, toldNothing)
		node.Start()
	}
	l.until(20, toldHeld)
	require.Empty(t, l.lost(), "acknowledged, and gone")
	for name, a := range l.acks {
		o := w.reserve(w.ctx, request(name))
		require.Equal(t, allocation.OutcomeReplayed, o.Code)
		require.Equal(t, a.id, o.Reservation.ID)
		break
	}
	w.sound()
	t.Logf("tried: %d immediate stops, %d acknowledgements, none lost (%s)", rounds, len(l.acks), l)
}

// The disk is full. The service says that it cannot, and never that there is nothing to sell; nothing is damaged, and
// once there is room again everything that was acknowledged is there and all goes on.
//
// Requirements: R03. Faults: F-S1.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t, 260)
	node := postgrestest.NewNode(t, postgrestest.NodeOptions{
		Home: disk.seen(), Inside: disk.mount, Before: disk.words(),
		Settings: map[string]string{"wal_keep_size": "0", "min_wal_size": "32MB", "max_wal_size": "32MB", "max_connections": "40"},
	})
	w := worldAt(t, node.URL(), 4000)
	l := w.underLoad(node.URL(), 2, 3)
	l.until(20, toldSold)
	ballast := disk.fill()
	require.Eventually(t, func() bool { return l.told(toldNothing)+l.told(toldUnknown) > 40 }, 2*patience, 10*time.Millisecond, "%s", l)
	before := l.told(toldNothing)
	require.Zero(t, l.told(string(allocation.OutcomeNoCapacity)), "there is plenty, and the disk is full")
	require.NoError(t, os.Remove(ballast))
	select {
	case <-node.Gone(): // where WAL cannot be written the server gives up, and somebody starts it again
		node.Start()
	default:
	}
	l.until(30, toldHeld)
	require.Empty(t, l.lost(), "acknowledged, and gone")
	w.sound()
	t.Logf("tried: 1 full disk, %d calls in vain, %d acknowledgements, none lost (%s)", before, len(l.acks), l)
}

// Every connection that the server has for ordinary roles is taken. The service says at once that it cannot, its
// readiness says so too, operators still get in, and when there is room again all goes on.
//
// Faults: F-S2.
func TestConnectionsUsedUp(t *testing.T) {
	t.Parallel()
	node := postgrestest.NewNode(t, postgrestest.NodeOptions{Settings: map[string]string{"max_connections": "10", "superuser_reserved_connections": "3"}})
	w := worldAt(t, node.URL(), 3)
	w.exec(`CREATE ROLE service LOGIN PASSWORD 'service'`)
	w.exec(`GRANT ALL ON ALL TABLES IN SCHEMA public TO service`)
	w.exec(`GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO service`)
	u, err := url.Parse(node.URL())
	require.NoError(t, err)
	u.User = url.UserPassword("service", "service")
	w.serve(w.open(u.String(), 1))
	w.held("before")
	w.pool.Reset() // the administrator's

	var hogs []*pgx.Conn
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(w.ctx, u.String())
		if err == nil {
			hogs = append(hogs, conn)
		}
		return err != nil && len(hogs) >= 5
	}, patience, 10*time.Millisecond)
	config, err := pgx.ParseConfig(u.String())
	require.NoError(t, err)
	_, err = pgx.ConnectConfig(w.ctx, config)
	require.ErrorContains(t, err, "53300")
	_, err = postgres.Open(w.ctx, u.String(), postgres.PoolOptions{})
	require.ErrorIs(t, err, reservation.ErrUnavailable)
	node2 := w.worldWithoutRoom(u.String(), hogs)
	require.ErrorIs(t, node2, reservation.ErrUnavailable)
	require.Equal(t, 1, one[int](w, `SELECT 1`), "an operator does not get in")

	for _, hog := range hogs {
		require.NoError(t, hog.Close(w.ctx))
	}
	require.Eventually(t, func() bool { return !w.reserve(w.ctx, request("after")).Refused() }, patience, 20*time.Millisecond)
	w.sound()
}

// worldWithoutRoom is what a service hears that has a pool and finds no room for its connections any more.
func (w *world) worldWithoutRoom(address string, hogs []*pgx.Conn) error {
	w.t.Helper()
	require.NoError(w.t, hogs[0].Close(w.ctx))
	var pool *pgxpool.Pool
	require.Eventually(w.t, func() (opened bool) {
		var err error
		pool, err = postgres.Open(w.ctx, address, postgres.PoolOptions{MaxConns: 2})
		return err == nil
	}, patience, 5*time.Millisecond, "the server takes a moment to notice that the other is closed")
	w.t.Cleanup(pool.Close)
	pool.Reset()
	conn, err := pgx.Connect(w.ctx, address)
	for ; err != nil && w.ctx.Err() == nil; conn, err = pgx.Connect(w.ctx, address) {
		<-time.After(5 * time.Millisecond) // the server takes a moment to notice that the pool's is closed
	}
	hogs[0] = conn
	ready := postgres.NewHealth(pool).Ready(w.ctx)
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	require.NoError(w.t, err)
	_, err = allocation.New(postgres.NewAllocations(pool), w.release, tokens).Reserve(w.ctx, w.caller, request("no room"))
	if ready == nil || err == nil {
		return errors.New("it went on without a connection")
	}
	return errors.Join(err, ready)
}

// smallDisk is a file system of a few megabytes, which only one process keeps alive and which goes with it.
type smallDisk struct {
	t      *testing.T
	mount  string
	holder *tethered
}

// newSmallDisk mounts one where nobody else sees it. It takes root.
func newSmallDisk(t *testing.T, mebibytes int) *smallDisk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a disk of its own takes root")
	}
	dir := postgrestest.Dir(t)
	d := &smallDisk{t: t, mount: dir}
	d.holder = tether(t, "unshare", "-m", "sh", "-c", fmt.Sprintf(`mount -t tmpfs -o mode=0711,size=%dm none %q && echo ready && cat >/dev/null
		kill -QUIT "$(head -n 1 %q)"`, mebibytes, dir, dir+"/pgdata/postmaster.pid"))
	d.holder.says("ready", "a mount namespace of its own is not to be had here")
	return d
}

// seen is where the disk is from outside, and words make a command run inside.
func (d *smallDisk) seen() string { return fmt.Sprintf("/proc/%d/root%s", d.holder.pid(), d.mount) }

func (d *smallDisk) words() []string {
	return []string{"nsenter", "-m", "-t", fmt.Sprint(d.holder.pid()), "--"}
}

// fill writes until nothing more goes in, and returns the file's name.
func (d *smallDisk) fill() string {
	d.t.Helper()
	name := filepath.Join(d.seen(), "ballast")
	file, err := os.Create(name)
	require.NoError(d.t, err)
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = file.Write(block)
	}
	require.ErrorContains(d.t, err, "no space left")
	require.NoError(d.t, file.Close())
	return name
}
