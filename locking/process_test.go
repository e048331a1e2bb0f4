//go:build unix

package locking

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/locking/redistest"
	"allocator/store/postgres/postgrestest"
)

// nodeEnv makes the test binary a process that runs one job under the configuration in it.
const nodeEnv = "LOCKING_TEST_NODE"

// nodeConfig says what such a process does.
type nodeConfig struct {
	Backend string `json:"backend"`
	URL     string `json:"url"`
	Prefix  string `json:"prefix"`
	Forever bool   `json:"forever"` // the job runs until its context ends
}

func (c nodeConfig) config() Config {
	return Config{
		Backend: c.Backend, Redis: RedisConfig{URL: c.URL, KeyPrefix: c.Prefix}, PG: PostgresConfig{URL: c.URL}, Margin: time.Second,
	}
}

func (c nodeConfig) forever() nodeConfig {
	c.Forever = true
	return c
}

func TestMain(m *testing.M) {
	if config := os.Getenv(nodeEnv); config != "" {
		playNode(config)
	}
	os.Exit(m.Run())
}

// playNode is another process. It ends with its input, so that none outlives the test, and says what happens: the tick
// of each run and, where the job runs for ever, why it ended.
func playNode(text string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	var c nodeConfig
	quit := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	quit(json.Unmarshal([]byte(text), &c))
	locker, err := Open(context.Background(), c.config(), log)
	quit(err)
	var s *Scheduler
	job := Job{ID: "audit", Interval: time.Second, Hint: RequireGlobal, Expected: 100 * time.Millisecond}
	job.Run = func(ctx context.Context) error {
		fmt.Println("run", s.Jobs()[0].NextTick.Unix())
		if c.Forever {
			<-ctx.Done()
			fmt.Println("lost", context.Cause(ctx))
		}
		return nil
	}
	s, err = NewScheduler(SchedulerOptions{Jobs: []Job{job}, Locker: locker, Config: c.config(), Log: log})
	quit(err)
	s.Run(context.Background())
}

// process is such a process, seen from the test.
type process struct {
	*exec.Cmd

	lines chan string
}

func startNode(t *testing.T, c nodeConfig) *process {
	t.Helper()
	text, err := json.Marshal(c)
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000)}
	p.Env = append(os.Environ(), nodeEnv+"="+string(text))
	p.Stderr = io.Discard
	input, err := p.StdinPipe()
	require.NoError(t, err)
	output, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = input.Close()
		_ = p.Process.Kill() // it may be stopped, and never see the end of its input
		<-read
		_ = p.Wait()
	})
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(s))
}

// says returns the next line, which must begin with the word.
func (p *process) says(t *testing.T, word string) string {
	t.Helper()
	select {
	case line := <-p.lines:
		require.True(t, strings.HasPrefix(line, word), line)
		return line
	case <-time.After(hang):
		require.Fail(t, "nothing was said", "waiting for %q", word)
		return ""
	}
}

// processBench is a backend for processes.
type processBench struct {
	node nodeConfig
	// end ends what a process that does not answer holds, where time alone does not.
	end func(t *testing.T, key string)
}

var processBenches = map[string]func(t *testing.T) processBench{
	BackendRedis: func(t *testing.T) processBench {
		t.Helper()
		return processBench{
			nodeConfig{Backend: BackendRedis, URL: redistest.URL(t), Prefix: "test:" + rand.Text() + ":"},
			func(*testing.T, string) {},
		}
	},
	BackendPostgres: func(t *testing.T) processBench {
		t.Helper()
		address := postgrestest.EmptyURL(t)
		return processBench{
			nodeConfig{Backend: BackendPostgres, URL: address},
			func(t *testing.T, key string) { t.Helper(); endSession(t, address, key) },
		}
	},
}

func onProcesses(t *testing.T, test func(t *testing.T, b processBench)) {
	t.Helper()
	for name, open := range processBenches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// Two real processes run each tick once; when one of them is killed, the other goes on alone.
//
// Requirements: L30, L31, L37.
func TestTwoProcessesRunEachTickOnce(t *testing.T) {
	t.Parallel()
	onProcesses(t, func(t *testing.T, b processBench) {
		nodes := []*process{startNode(t, b.node), startNode(t, b.node)}
		seen, line := map[string]bool{}, ""
		for len(seen) < 5 {
			select {
			case line = <-nodes[0].lines:
			case line = <-nodes[1].lines:
			case <-time.After(hang):
				require.Fail(t, "nobody runs")
			}
			require.True(t, strings.HasPrefix(line, "run "), line)
			require.False(t, seen[line], "%s was run twice", line)
			seen[line] = true
		}
		nodes[0].signal(t, syscall.SIGKILL)
		cut := line // if it was in the middle of this one, the other may run it again
		for range 2 {
			line = nodes[1].says(t, "run ")
			require.True(t, line == cut || !seen[line], "%s was run twice", line)
			seen[line] = true
		}
	})
}

// A process that is killed in the middle of a run leaves its lock to the other: when its time is over, or with its
// connection.
//
// Requirements: L14, L24, L37.
func TestKilledProcessLosesItsLock(t *testing.T) {
	t.Parallel()
	onProcesses(t, func(t *testing.T, b processBench) {
		killed := startNode(t, b.node.forever())
		killed.says(t, "run ")
		other := startNode(t, b.node.forever())
		killed.signal(t, syscall.SIGKILL)
		other.says(t, "run ")
	})
}

// A process that is paused for longer than its lock lives loses it to the other; when it wakes up, its run is told.
// Without a time to live the lock stays until the server ends the session: nobody else runs before.
//
// Requirements: L05, L06, L22, L37.
func TestPausedProcessIsToldThatItsLockIsGone(t *testing.T) {
	t.Parallel()
	onProcesses(t, func(t *testing.T, b processBench) {
		paused := startNode(t, b.node.forever())
		paused.says(t, "run ")
		paused.signal(t, syscall.SIGSTOP)
		b.end(t, "job:audit")
		other := startNode(t, b.node.forever())
		other.says(t, "run ")

		paused.signal(t, syscall.SIGCONT)
		require.Equal(t, "lost "+ErrNotOwner.Error(), paused.says(t, "lost "))
		require.Empty(t, other.lines, "the other one keeps its lock")
	})
}
