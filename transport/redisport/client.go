package redisport

import (
	"strings"
)

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

// ping is PING [text].
func (c *call) ping() {
	switch len(c.args) {
	case 0:
		c.status("PONG")
	case 1:
		c.bulk(string(c.args[0]))
	default:
		c.wrongArity("ping")
	}
}

func (c *call) echo() { c.bulk(string(c.args[0])) }

// goodbye is QUIT.
func (c *call) goodbye() {
	c.ok()
	c.quit = true
}

// selectDB is SELECT: there is one database.
func (c *call) selectDB() {
	switch n, ok := parseInt(c.args[0]); {
	case !ok:
		c.err(errNotInteger)
	case n != 0:
		c.err("ERR DB index is out of range")
	default:
		c.ok()
	}
}

// client is CLIENT, of which clients send four subcommands.
func (c *call) client() {
	sub := strings.ToLower(string(c.args[0]))
	n := map[string]int{"id": 1, "getname": 1, "setname": 2, "setinfo": 3}[sub]
	switch {
	case n == 0:
		c.err("ERR unknown subcommand '" + string(c.args[0]) + "'. Try CLIENT HELP.")
		return
	case len(c.args) != n:
		c.wrongArity("client|" + sub)
		return
	}
	switch sub {
	case "id":
		c.integer(c.session.id)
	case "getname":
		c.getName()
	case "setname":
		c.setName(string(c.args[1]))
	case "setinfo":
		c.setInfo(strings.ToLower(string(c.args[1])), string(c.args[2]))
	}
}

func (c *call) getName() {
	if c.session.name == "" {
		c.null()
		return
	}
	c.bulk(c.session.name)
}

func (c *call) setName(name string) {
	if !validName(name) {
		c.err(errClientName)
		return
	}
	c.session.name = name
	c.ok()
}

// setInfo takes what a client library says of itself, and keeps nothing of it.
func (c *call) setInfo(what, value string) {
	switch {
	case what != "lib-name" && what != "lib-ver":
		c.err("ERR Unrecognized option '" + string(c.args[1]) + "'")
	case !validName(value):
		c.err("ERR " + what + " cannot contain spaces, newlines or special characters.")
	default:
		c.ok()
	}
}

func validName(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r < '!' || r > '~' })
}
