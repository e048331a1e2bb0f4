//go:build gates && unix

package concurrency_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/store/postgres"
	"allocator/store/postgres/gate"
	"allocator/store/postgres/postgrestest"
)

// farNetwork is a network of its own, joined to ours by one cable that the test can pull. It goes with its holder.
type farNetwork struct {
	t      *testing.T
	holder *tethered
	far    string // the cable's end over there, and its address
	addr   string
}

// newFarNetwork makes one. It takes root and iproute2.
func newFarNetwork(t *testing.T) *farNetwork {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a network of its own takes root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed: install the package iproute2")
	}
	holder := tether(t, "unshare", "-n", "sh", "-c", "ip link set lo up && echo ready && cat >/dev/null")
	holder.says("ready", "a network namespace is not to be had here")
	number := rand.IntN(1 << 14) // of the /30 networks in 198.18.0.0/16, which are for such trials
	n := &farNetwork{t: t, holder: holder, far: fmt.Sprintf("afar%d", number)}
	near := fmt.Sprintf("near%d", number)
	network := fmt.Sprintf("198.18.%d.", number>>6)
	n.addr = network + fmt.Sprint(number&63*4+2)
	n.run("ip", "link", "add", near, "type", "veth", "peer", "name", n.far, "netns", fmt.Sprint(holder.pid()))
	n.run("ip", "addr", "add", network+fmt.Sprint(number&63*4+1)+"/30", "dev", near)
	n.run("ip", "link", "set", near, "up")
	n.inside("ip", "addr", "add", n.addr+"/30", "dev", n.far)
	n.inside("ip", "link", "set", n.far, "up")
	return n
}

func (n *farNetwork) run(words ...string) {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), words[0], words[1:]...).CombinedOutput()
	require.NoError(n.t, err, "%v: %s", words, out)
}

func (n *farNetwork) words() []string {
	return []string{"nsenter", "-n", "-t", fmt.Sprint(n.holder.pid()), "--"}
}

func (n *farNetwork) inside(words ...string) { n.t.Helper(); n.run(append(n.words(), words...)...) }

// pull pulls the cable: whatever is sent is swallowed, and nobody is told. plug plugs it in again.
func (n *farNetwork) pull() { n.t.Helper(); n.inside("ip", "link", "set", n.far, "down") }
func (n *farNetwork) plug() { n.t.Helper(); n.inside("ip", "link", "set", n.far, "up") }

// The network to the database swallows everything. Callers hear after their own patience that the service cannot, or
// that the outcome is unknown; the server ends the transaction that nobody goes on with, so that the server in it is
// free; a call without a patience of its own ends, too; and when the network is back, so is the service.
//
// Faults: F-N2.
func TestNetworkSwallowsEverything(t *testing.T) {
	t.Parallel()
	network := newFarNetwork(t)
	node := postgrestest.NewNode(t, postgrestest.NodeOptions{
		Address: network.addr, Before: network.words(), Settings: map[string]string{"idle_in_transaction_session_timeout": "2s", "log_min_messages": "log"},
	})
	w := worldAt(t, node.URL(), 1)
	pool, err := postgres.Open(w.ctx, w.with(map[string]string{"idle_in_transaction_session_timeout": "2000"}), postgres.PoolOptions{Silence: 5 * time.Second})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w.serve(pool)
	ctx, arrived, release := w.pauseAt(gate.ReserveAfterInsert)
	paused := w.begin(ctx, request("paused"))
	w.wait(arrived)
	endless := make(chan error, 1)
	go func() {
		_, err := pool.Exec(context.WithoutCancel(w.ctx), `SELECT pg_sleep(1000) -- without a statement_timeout it would be so`)
		endless <- err
	}()
	require.Eventually(t, func() bool {
		return one[bool](w, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep')`)
	}, patience, 10*time.Millisecond)

	network.pull()
	for range 3 {
		short, cancel := context.WithTimeout(w.ctx, time.Second)
		_, err := w.allocator.Reserve(short, w.caller, request("in the hole"))
		cancel()
		require.Error(t, err)
		short, cancel = context.WithTimeout(w.ctx, time.Second)
		require.Error(t, postgres.NewHealth(pool).Ready(short))
		cancel()
	}
	require.Eventually(t, func() bool { return strings.Contains(node.Log(), "idle-in-transaction timeout") }, patience, 20*time.Millisecond)
	require.Error(t, receive(w, endless), "it ends by itself, with the network still gone")

	network.plug()
	release()
	require.Error(t, w.receive(paused).err)
	require.Eventually(t, func() bool {
		o, err := w.allocator.Reserve(w.ctx, w.caller, request("afterwards"))
		return err == nil && o.Code != allocation.OutcomeContended
	}, 2*patience, 50*time.Millisecond)
	require.Equal(t, 1, one[int](w, `SELECT count(*) FROM reservations WHERE state = 'held'`))
	w.sound()
}

// latencyEnv is how slow TestSlowNetwork is, in milliseconds.
const latencyEnv = "CONCURRENCY_LATENCY"

// A slow network with jitter, a byte at a time, changes nothing but the time: of many buyers over fewer servers each
// server goes once, and everything that was acknowledged is there.
//
// Requirements: R16, R21. Faults: F-N3.
func TestSlowNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.servers(8)
	latency := time.Duration(number(t, latencyEnv, 20)) * time.Millisecond
	slow := w.through(latency)
	allocator, reservations := w.replica(slow)
	other, _ := w.replica(slow)
	outcomes := make([]*allocation.Outcome, 12)
	together(len(outcomes), func(i int) {
		service := allocator
		if i%2 == 0 {
			service = other
		}
		req := request(fmt.Sprint(i))
		req.Wait = allocation.MaxWait
		var err error
		if outcomes[i], err = service.Reserve(w.ctx, w.caller, req); err != nil {
			t.Errorf("reserve: %v", err)
		}
	})
	require.False(t, t.Failed())
	counts := tally(outcomes)
	require.Equal(t, 8, counts["reserved"], "%v", counts)
	together(len(outcomes), func(i int) {
		if outcomes[i].Refused() {
			return
		}
		if _, err := reservations.Convert(w.ctx, w.caller, outcomes[i].Reservation.ID, "", fmt.Sprint(i)); err != nil {
			t.Errorf("convert: %v", err)
		}
	})
	require.Equal(t, 8, one[int](w, `SELECT count(*) FROM bindings`))
	w.sound()
	t.Logf("tried: %d buyers of 8 servers at %s each way and a byte at a time", len(outcomes), latency)
}

// through is the world's database behind a slow network.
func (w *world) through(latency time.Duration) string {
	w.t.Helper()
	u, err := url.Parse(w.url)
	require.NoError(w.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = listener.Close() })
	server := u.Host
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			go crawl(near, far, latency)
			go crawl(far, near, latency)
		}
	}()
	u.Host = listener.Addr().String()
	return u.String()
}

// crawl passes on what comes, late and by the byte.
func crawl(to, from net.Conn, latency time.Duration) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	chunk := make([]byte, 4096)
	for {
		n, err := from.Read(chunk)
		<-time.After(latency/2 + rand.N(latency))
		for i := range n {
			if _, err := to.Write(chunk[i : i+1]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
