//go:build gates && unix

package concurrency_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
	"allocator/reservation"
	"allocator/store/postgres"
	"allocator/store/postgres/postgrestest"
)

// What a copy of this test binary reads from its environment. With programEnv set it runs no tests: it is a service
// process of its own, which a test can stop and kill as one.
const (
	programEnv = "CONCURRENCY_TEST_PROGRAM"
	nameEnv    = "CONCURRENCY_TEST_NAME" // shown as application_name
	urlEnv     = "CONCURRENCY_TEST_URL"
)

// programs are what such a copy can be.
var programs = map[string]func(ctx context.Context, c *child) error{
	"sweep":   sweepProgram,
	"reserve": reserveProgram,
	"deed":    deedProgram,
	"history": historyProgram,
}

func TestMain(m *testing.M) {
	if program := os.Getenv(programEnv); program != "" {
		os.Exit(runProgram(program))
	}
	code := m.Run()
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

func runProgram(program string) int {
	c := &child{told: make(chan string)}
	go c.listen()
	if err := programs[program](context.Background(), c); err != nil {
		fmt.Fprintln(os.Stderr, program+":", err)
		return 1
	}
	return 0
}

// child is the inside of such a process.
type child struct {
	told chan string // lines that the test wrote
}

// listen ends the process when the test that started it is gone.
func (c *child) listen() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		c.told <- lines.Text()
	}
	os.Exit(3)
}

// say tells the test something. A line is written at once and whole.
func (*child) say(words ...any) { fmt.Println(words...) }

// stand tells the test that the process is at a place, and stays there until the test says to go on.
func (c *child) stand(place string) {
	c.say("at " + place)
	<-c.told
}

// service connects as the service does. Its catalog is that of production if nothing else is said.
func (c *child) service(ctx context.Context, options ...allocation.Option) (*allocation.Allocator, *reservation.Service, error) {
	pool, err := postgres.Open(ctx, os.Getenv(urlEnv), postgres.PoolOptions{Application: os.Getenv(nameEnv)})
	if err != nil {
		return nil, nil, err
	}
	if pool, err = withLines(ctx, pool); err != nil {
		return nil, nil, err
	}
	tokens, err := reservation.ParseTokenKeys(tokenKeys)
	if err != nil {
		return nil, nil, err
	}
	old, err := catalogAge(os.Getenv(catalogEnv))
	if err != nil {
		return nil, nil, err
	}
	options = append(old, options...)
	return allocation.New(postgres.NewAllocations(pool), &release{}, tokens, options...), reservation.NewService(postgres.NewReservations(pool), tokens), nil
}

// tester may do everything.
var tester = identity.LocalCaller(org, identity.Actor{Kind: identity.ActorPerson, ID: "tester"})

// process is such a process as the test sees it.
type process struct {
	w      *world
	name   string
	cmd    *exec.Cmd
	stdin  io.Writer
	said   chan string   // closed at the end of its output
	ended  chan struct{} // closed when it has ended
	faults bytes.Buffer  // to be read after ended
}

// start starts a program over the world's database. Whatever becomes of it, it does not outlive the test.
func (w *world) start(program, name, database string, environment map[string]string) *process {
	w.t.Helper()
	p := &process{w: w, name: name, cmd: exec.Command(os.Args[0]), said: make(chan string, 1<<16), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), programEnv+"="+program, nameEnv+"="+name, urlEnv+"="+database)
	for key := range maps.Keys(environment) {
		p.cmd.Env = append(p.cmd.Env, key+"="+environment[key])
	}
	p.cmd.Stderr = &p.faults
	stdin, err := p.cmd.StdinPipe()
	require.NoError(w.t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, p.cmd.Start())
	p.stdin = stdin
	go p.read(stdout)
	w.t.Cleanup(func() {
		p.kill()
		if w.t.Failed() && p.faults.Len() > 0 {
			w.t.Logf("%s wrote:\n%s", p.name, p.faults.String())
		}
	})
	return p
}

func (p *process) read(stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		p.said <- lines.Text()
	}
	close(p.said)
	_ = p.cmd.Wait() // how it ended is in ProcessState
	close(p.ended)
}

// hear returns the next line that the process says.
func (p *process) hear() string {
	p.w.t.Helper()
	select {
	case line, more := <-p.said:
		require.True(p.w.t, more, "%s said nothing more", p.name)
		return line
	case <-time.After(patience):
		require.FailNow(p.w.t, p.name+" says nothing")
		return ""
	}
}

// tell writes a line to the process.
func (p *process) tell(line string) {
	p.w.t.Helper()
	_, err := io.WriteString(p.stdin, line+"\n")
	require.NoError(p.w.t, err)
}

func (p *process) signal(s syscall.Signal) {
	p.w.t.Helper()
	require.NoError(p.w.t, p.cmd.Process.Signal(s))
}

// kill ends the process without giving it a chance, and returns when it is gone.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.w.t.Errorf("kill %s: %v", p.name, err)
	}
	<-p.ended
}

// exits waits for the process to end by itself and returns its exit code.
func (p *process) exits() int {
	p.w.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		require.FailNow(p.w.t, p.name+" does not end")
		return -1
	}
}

// sessions counts the process's sessions at the server.
func (p *process) sessions() int {
	p.w.t.Helper()
	return one[int](p.w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, p.name)
}

// forgotten waits until the server has ended every session of the process and rolled back what they were at.
func (p *process) forgotten() {
	p.w.t.Helper()
	require.Eventually(p.w.t, func() bool { return p.sessions() == 0 }, patience, 10*time.Millisecond, "sessions of %s are left", p.name)
}

// with adds settings to the world's connection string.
func (w *world) with(settings map[string]string) string {
	w.t.Helper()
	return postgrestest.With(w.t, w.url, settings)
}
