package redisport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"allocator/identity"
	"allocator/locking"
)

// space is one kind of key: what stands before the colon, and what can be done with such keys.
type space struct {
	prefix string
	// look reads what a GET returns, or nil if there is no such key.
	look func(c *call, name string) (*entry, error)
	// readers are the scopes of which one is needed to look.
	readers []identity.Scope
}

// entry is what there is under a key.
type entry struct {
	value string
	left  time.Duration
	ends  bool // whether it has an expiry; left is what is left then
}

// spaces are the kinds of keys. Whoever works on orders or machines may use locks; staff may see who has one.
var spaces = []*space{lockSpace, holdSpace, reasonSpace}

var (
	lockSpace = &space{
		prefix: "lock:", look: lookAtLock,
		readers: slices.Concat(lockWriters, []identity.Scope{identity.ScopeSupport, identity.ScopeAdmin}),
	}
	holdSpace   = &space{prefix: "hold:", look: lookAtHold, readers: []identity.Scope{identity.ScopeCheckout, identity.ScopeSupport}}
	reasonSpace = &space{prefix: "reason:", look: lookAtReason, readers: []identity.Scope{identity.ScopeSupport}}
)

// spaceOf finds the kind of a key and its name within it, or answers that there is no such kind. It is an error and not
// nil, which somebody with a mistyped key would take for a lock that is free.
func (c *call) spaceOf(key []byte) (*space, string) {
	for _, s := range spaces {
		if name, found := strings.CutPrefix(string(key), s.prefix); found {
			return s, name
		}
	}
	c.err("ERR no such kind of key: there are lock:<name>, hold:<reservation> and reason:<reservation>")
	return nil, ""
}

// look reads a key. answered is true if the command is over, since there was an error.
func (c *call) look(key []byte) (found *entry, answered bool) {
	s, name := c.spaceOf(key)
	if s == nil || !c.may(s.readers...) {
		return nil, true
	}
	found, err := s.look(c, name)
	if err != nil {
		c.fail(err)
		return nil, true
	}
	return found, false
}

func (c *call) get() {
	switch found, answered := c.look(c.args[0]); {
	case answered:
	case found == nil:
		c.null()
	default:
		c.bulk(found.value)
	}
}

// digest is DIGEST key.
func (c *call) digest() {
	switch found, answered := c.look(c.args[0]); {
	case answered:
	case found == nil:
		c.null()
	default:
		c.bulk(fmt.Sprintf("%016x", locking.Digest(found.value)))
	}
}

func (c *call) typeOf() {
	switch found, answered := c.look(c.args[0]); {
	case answered:
	case found == nil:
		c.status("none")
	default:
		c.status("string")
	}
}

func (c *call) pttl() { c.timeLeft(1) }

// ttl rounds half seconds up, as Redis does.
func (c *call) ttl() { c.timeLeft(1000) }

// timeLeft answers in units of so many milliseconds: -2 if there is no key, -1 if it has no expiry. Milliseconds that
// have begun to pass do not count, so that nobody is told more than there is.
func (c *call) timeLeft(unit int64) {
	switch found, answered := c.look(c.args[0]); {
	case answered:
	case found == nil:
		c.integer(-2)
	case !found.ends:
		c.integer(-1)
	default:
		c.integer((found.left.Milliseconds() + unit/2) / unit)
	}
}

// exists is EXISTS key …; a key that is named twice counts twice. Locks are counted in one question.
func (c *call) exists() {
	var locks []string
	var n int64
	for _, key := range c.args {
		s, name := c.spaceOf(key)
		switch {
		case s == nil || !c.may(s.readers...):
			return
		case s == lockSpace:
			locks = append(locks, name)
			continue
		}
		found, err := s.look(c, name)
		if err != nil {
			c.fail(err)
			return
		}
		if found != nil {
			n++
		}
	}
	if len(locks) > 0 {
		held, err := c.door.deps.Locks.Count(c.ctx, c.org(), locks)
		if err != nil {
			c.fail(err)
			return
		}
		n += held
	}
	c.integer(n)
}

// parseDigest reads 16 hexadecimal digits of either case.
func parseDigest(text []byte) (uint64, bool) {
	if len(text) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 16, 64)
	return n, err == nil
}
