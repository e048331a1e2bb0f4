package redisport

import (
	"errors"
	"strings"

	"allocator/identity"
)

// redisVersion is the Redis whose commands and replies these are. Clients choose what they send by it.
const redisVersion = "8.4.0"

// auth is AUTH [user] key.
func (c *call) auth() {
	switch len(c.args) {
	case 1:
		c.logIn("default", string(c.args[0]))
	case 2:
		c.logIn(string(c.args[0]), string(c.args[1]))
	default:
		c.err(errSyntax)
		return
	}
	if c.b == nil {
		c.ok()
	}
}

// logIn takes the key, or answers why not. The user, where one has to be given, is "default" or the organization.
func (c *call) logIn(user, key string) {
	caller, err := c.door.deps.Authenticator.Authenticate(c.ctx, key)
	switch {
	case errors.Is(err, identity.ErrUnauthenticated):
		c.refusedKey(err)
		c.err("WRONGPASS invalid username-password pair or user is disabled.")
	case err != nil:
		c.fail(err)
	case user != "default" && user != string(caller.Organization):
		c.err("WRONGPASS invalid username-password pair or user is disabled.")
	default:
		c.session.key, c.session.caller, c.session.guard.known = key, caller, true
	}
}

// hello is HELLO [protocol [AUTH user key] [SETNAME name]].
func (c *call) hello() {
	resp3 := c.session.resp3
	if len(c.args) > 0 {
		version, ok := parseInt(c.args[0])
		switch {
		case !ok:
			c.err("ERR Protocol version is not an integer or out of range")
			return
		case version != 2 && version != 3:
			c.err("NOPROTO unsupported protocol version")
			return
		}
		resp3 = version == 3
	}
	o, fault := c.helloOptions()
	if fault != "" {
		c.err(fault)
		return
	}
	if o.key != nil {
		if c.logIn(o.user, *o.key); c.b != nil {
			return
		}
	}
	if c.session.key == "" {
		c.err("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
			"option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if !c.authenticated() {
		return
	}
	if o.name != nil {
		c.session.name = *o.name
	}
	c.session.resp3, c.resp3 = resp3, resp3
	c.greet()
}

// helloOptions are what stands behind the protocol of a HELLO.
type helloOptions struct {
	user      string
	key, name *string
}

func (c *call) helloOptions() (o helloOptions, fault string) {
	if len(c.args) == 0 {
		return o, ""
	}
	for rest := c.args[1:]; len(rest) > 0; {
		option := strings.ToLower(string(rest[0]))
		switch {
		case option == "auth" && len(rest) >= 3:
			key := string(rest[2])
			o.user, o.key, rest = string(rest[1]), &key, rest[3:]
		case option == "setname" && len(rest) >= 2:
			name := string(rest[1])
			if !validName(name) {
				return o, errClientName
			}
			o.name, rest = &name, rest[2:]
		default:
			return o, "ERR Syntax error in HELLO option '" + string(rest[0]) + "'"
		}
	}
	return o, ""
}

// greet is the answer to HELLO.
func (c *call) greet() {
	c.pairs(7)
	c.bulk("server")
	c.bulk("redis")
	c.bulk("version")
	c.bulk(redisVersion)
	c.bulk("proto")
	if c.resp3 {
		c.integer(3)
	} else {
		c.integer(2)
	}
	c.bulk("id")
	c.integer(c.session.id)
	c.bulk("mode")
	c.bulk("standalone")
	c.bulk("role")
	c.bulk("master")
	c.bulk("modules")
	c.array(0)
}
