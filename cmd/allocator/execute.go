package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"allocator/bench"
)

// process is what a command gets from the operating system, so that a test can hand in its own.
type process struct {
	stdin     io.Reader
	stdout    io.Writer // what was asked for, and nothing else
	stderr    io.Writer // everything else
	lookupEnv func(name string) (string, bool)
	terminal  bool // a person watches stderr

	json    bool            // --json
	serves  bool            // a signal is how the command is meant to end
	served  bool            // it has begun to serve
	sources *settingSources // where each setting came from
}

// notef writes a line for people to stderr.
func (p *process) notef(format string, args ...any) { fmt.Fprintf(p.stderr, format+"\n", args...) }

// aside prints to stderr what otherwise goes to stdout.
func (p *process) aside() *process { return &process{stdout: p.stderr, stderr: p.stderr} }

// progressf writes a line about long work, if somebody watches.
func (p *process) progressf(format string, args ...any) {
	if p.terminal {
		p.notef(format, args...)
	}
}

// execute runs one command line and returns the exit code. The first interrupt ends ctx, the second ends the process at
// once.
func execute(ctx context.Context, p *process, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	selected, helped, err := parse(p, args)
	switch {
	case helped:
		return exitDone
	case err != nil:
		return p.usage(err)
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	return p.report(ctx, selected.Run(p))
}

// parse finds the command and its settings. helped tells that help was asked for and has been printed.
func parse(p *process, args []string) (selected *kong.Context, helped bool, err error) {
	p.sources = newSettingSources(p.lookupEnv)
	root := &commands{}
	root.sources = p.sources
	parser, err := kong.New(root,
		kong.Name("allocator"),
		kong.Description("Reserves and allocates dedicated servers. Data goes to stdout, everything else to stderr."),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { helped = true }),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.ValueFormatter(describeFlag),
		kong.Vars{"benchNames": strings.Join(bench.Names(), ", ")},
		kong.Resolvers(p.sources),
		kong.ExplicitGroups([]kong.Group{
			{Key: "run", Title: "Run the service:"},
			{Key: "sell", Title: "Sell servers:"},
			{Key: "keep", Title: "Keep it in order:"},
			{Key: "wanted", Title: "What is asked for:"},
		}),
	)
	if err != nil {
		return nil, false, err
	}
	selected, err = parser.Parse(asksForHelp(args))
	if !helped && err == nil {
		p.json = root.JSON
		p.sources.noteFlags(selected)
	}
	return selected, helped, err
}

// asksForHelp lets people ask as they are used to: with nothing at all, with "help", with "help reserve", with "--version".
func asksForHelp(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	default:
		return args
	}
}

// usage says what is wrong with a command line.
func (p *process) usage(err error) int {
	command := "allocator"
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
		command = strings.TrimSpace("allocator " + wrong.Context.Selected().Path())
	}
	p.notef("allocator: %v", err)
	p.notef("Run %q for help and examples.", command+" --help")
	return exitUsage
}
