package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// exampled is a command with examples, one per line, as they are typed. Commands below it have the same.
type exampled interface{ examples() string }

// printHelp shows a command's examples before everything else, since most people look for one to change.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	for node := ctx.Selected(); node != nil; node = node.Parent {
		if command, ok := commandOf(node); ok {
			fmt.Fprint(ctx.Stdout, "Examples:\n")
			for line := range strings.Lines(strings.TrimSpace(command.examples())) {
				fmt.Fprint(ctx.Stdout, "  "+strings.TrimSpace(line)+"\n")
			}
			fmt.Fprintln(ctx.Stdout)
			break
		}
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	_, err := fmt.Fprint(ctx.Stdout, exitCodes)
	return err
}

// exitCodes is the table in exit.go, for those who write scripts.
const exitCodes = `
Exit codes:
    0  done
    1  it failed
    2  the command line, or a request that the service calls invalid
    3  not found
    4  no server: none fits, or the release switch is off
    5  the same may succeed shortly
    6  the key may not do this
    7  another conflict, or doctor found something
  130  interrupted
`

func commandOf(node *kong.Node) (exampled, bool) {
	target := node.Target
	if target.Kind() != reflect.Pointer && target.CanAddr() {
		target = target.Addr()
	}
	return reflect.TypeAssert[exampled](target)
}

// describeFlag names the environment variable beside what a flag is for.
func describeFlag(value *kong.Value) string {
	name := value.Tag.Get(settingTag)
	switch {
	case name == "":
		return value.Help
	case value.Tag.Has(secretTag):
		return fmt.Sprintf("%s (%s%s, or a file named by %[2]s%[3]s_FILE)", value.Help, envPrefix, name)
	default:
		return fmt.Sprintf("%s (%s%s)", value.Help, envPrefix, name)
	}
}
