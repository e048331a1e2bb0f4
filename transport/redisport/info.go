package redisport

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// info is INFO [section …].
func (c *call) info() {
	sections := []struct{ name, text string }{
		{"server", fmt.Sprintf("# Server\r\nredis_version:%s\r\nredis_mode:standalone\r\nserver_name:allocator\r\nallocator_version:%s\r\nuptime_in_seconds:%d\r\n",
			redisVersion, c.door.deps.Version, int(time.Since(c.door.began).Seconds()))},
		{"clients", fmt.Sprintf("# Clients\r\nconnected_clients:%d\r\nmaxclients:%d\r\n", c.door.connected.Load(), c.door.limits.Connections)},
		{"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"},
	}
	wanted := map[string]bool{}
	for _, arg := range c.args {
		wanted[strings.ToLower(string(arg))] = true
	}
	everything := len(wanted) == 0 || wanted["all"] || wanted["everything"] || wanted["default"]
	var texts []string
	for _, s := range sections {
		if everything || wanted[s.name] {
			texts = append(texts, s.text)
		}
	}
	c.text(strings.Join(texts, "\r\n"))
}

// command is COMMAND and what clients ask of it at start.
func (c *call) command() {
	names := slices.Sorted(maps.Keys(commands))
	if len(c.args) == 0 {
		c.array(len(names))
		for _, name := range names {
			c.describe(name)
		}
		return
	}
	c.commandAbout(strings.ToLower(string(c.args[0])), texts(c.args[1:]), names)
}

// commandAbout is COMMAND with a subcommand; names are those of all commands.
func (c *call) commandAbout(sub string, asked, names []string) {
	all := asked
	if len(all) == 0 {
		all = names
	}
	switch {
	case sub == "count" && len(asked) == 0:
		c.integer(int64(len(names)))
	case sub == "count":
		c.wrongArity("command|count")
	case sub == "list" && len(asked) == 0:
		c.setOf(len(names))
		for _, name := range names {
			c.bulk(name)
		}
	case sub == "list":
		c.err(errSyntax)
	case sub == "info":
		c.array(len(all))
		for _, name := range all {
			c.describe(name)
		}
	case sub == "docs":
		c.document(all)
	default:
		c.err("ERR unknown subcommand '" + string(c.args[0]) + "'. Try COMMAND HELP.")
	}
}

// describe writes the ten fields of COMMAND INFO.
func (c *call) describe(name string) {
	cmd := commands[strings.ToLower(name)]
	if cmd == nil {
		c.null()
		return
	}
	c.array(10)
	c.bulk(cmd.name)
	c.integer(int64(cmd.arity))
	c.setOf(len(cmd.flags))
	for _, flag := range cmd.flags {
		c.status(flag)
	}
	for _, key := range cmd.keys {
		c.integer(int64(key))
	}
	c.setOf(1)
	c.status("@" + cmd.group)
	c.array(0) // tips
	c.array(0) // key specifications
	c.array(0) // subcommands
}

// document writes what redis-cli shows as help. Commands that there are none of are left out.
func (c *call) document(names []string) {
	var known []*command
	for _, name := range names {
		if cmd := commands[strings.ToLower(name)]; cmd != nil {
			known = append(known, cmd)
		}
	}
	c.pairs(len(known))
	for _, cmd := range known {
		c.bulk(cmd.name)
		c.pairs(3)
		for _, field := range [][2]string{{"summary", cmd.summary}, {"since", cmd.since}, {"group", cmd.group}} {
			c.bulk(field[0])
			c.bulk(field[1])
		}
	}
}

func texts(args [][]byte) []string {
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = string(arg)
	}
	return list
}
