package redisport

import (
	"time"

	"allocator/identity"
	"allocator/locking"
)

// lockWriters may take, extend and release locks; adminsOnly may break those of others.
var (
	lockWriters = []identity.Scope{identity.ScopeCheckout, identity.ScopeOrders, identity.ScopeOperator}
	adminsOnly  = []identity.Scope{identity.ScopeAdmin}
)

func lookAtLock(c *call, name string) (*entry, error) {
	held, err := c.door.deps.Locks.Look(c.ctx, c.org(), name)
	if err != nil || held == nil {
		return nil, err
	}
	return &entry{value: held.Token, left: held.Left, ends: true}, nil
}

// lockOf finds the lock that a command is to change, or answers why it is not changed. verb is what the command would do
// to keys that are read-only.
func (c *call) lockOf(key []byte, verb string) (name string, ok bool) {
	s, name := c.spaceOf(key)
	switch s {
	case nil:
		return "", false
	case holdSpace:
		c.err("ERR a hold cannot be " + verb + " here: renew and convert it over HTTP, or cancel it with DELEX key IFEQ <hold token>")
		return "", false
	case reasonSpace:
		c.err("ERR a reason is frozen and cannot be " + verb)
		return "", false
	}
	return name, true
}

// set is SET key value and its options in any order and case.
func (c *call) set() {
	o, fault := parseSet(c.args[2:])
	if fault != "" {
		c.err(fault)
		return
	}
	name, ok := c.lockOf(c.args[0], "set")
	if !ok || !c.maySet(&o) {
		return
	}
	put := o.put
	put.Key, put.Token = name, string(c.args[1])
	if put.Until.Keeps() && put.If != locking.Held {
		c.err("ERR a lock without an expiry would stay for ever if its holder died: add PX milliseconds or EX seconds")
		return
	}
	placed, err := c.door.deps.Locks.Put(c.ctx, c.org(), put)
	switch {
	case err != nil:
		c.fail(err)
	case put.Before && placed.Before != nil:
		c.bulk(*placed.Before)
	case put.Before || !placed.Done:
		c.null()
	default:
		c.ok()
	}
}

// maySet judges who may give this SET: one that would free anybody's lock is a DEL.
func (c *call) maySet(o *setOptions) bool {
	if o.frees(time.Now()) {
		return c.mayBreak()
	}
	return c.may(lockWriters...)
}

// mayBreak tells whether the caller may free a lock whoever has it, and answers if not.
func (c *call) mayBreak() bool {
	if c.session.caller.Scopes.Has(identity.ScopeAdmin) {
		return true
	}
	c.forbid("DEL frees a lock whoever has it, so it takes a key with the scope admin: release your own with DELEX key IFEQ token")
	return false
}

func (c *call) expire()  { c.setTime("expire", 1000) }
func (c *call) pexpire() { c.setTime("pexpire", 1) }

// setTime is EXPIRE and PEXPIRE. They do not ask for the token, so a time that has passed would free anybody's lock.
func (c *call) setTime(name string, unit int64) {
	o, fault := parseExpire(name, c.args[1:], unit)
	if fault != "" {
		c.err(fault)
		return
	}
	lock, ok := c.lockOf(c.args[0], "given another time")
	if !ok {
		return
	}
	switch {
	case o.frees() && c.may(adminsOnly...):
		n, err := c.door.deps.Locks.Break(c.ctx, c.org(), []string{lock})
		c.count(n > 0, err)
	case o.frees() || !c.may(lockWriters...): // answered
	case o.never || o.after == 0:
		c.integer(0)
	default:
		c.count(c.door.deps.Locks.Prolong(c.ctx, c.org(), lock, locking.Until{After: o.after}, o.later))
	}
}

// count answers 1 or 0.
func (c *call) count(changed bool, err error) {
	switch {
	case err != nil:
		c.fail(err)
	case changed:
		c.integer(1)
	default:
		c.integer(0)
	}
}

// del is DEL key …, and DELEX without a condition. It would free anybody's lock.
func (c *call) del() {
	names := make([]string, 0, len(c.args))
	for _, key := range c.args {
		s, name := c.spaceOf(key)
		if s == nil {
			return
		}
		if s != lockSpace {
			c.err("ERR " + s.prefix + "* cannot be deleted: a hold is cancelled with DELEX key IFEQ <hold token>")
			return
		}
		names = append(names, name)
	}
	if !c.mayBreak() {
		return
	}
	n, err := c.door.deps.Locks.Break(c.ctx, c.org(), names)
	if err != nil {
		c.fail(err)
		return
	}
	c.integer(n)
}

// delifeq is DELIFEQ key token.
func (c *call) delifeq() { c.removeIf(c.args[0], "ifeq", c.args[1]) }

// delex is DELEX key [condition].
func (c *call) delex() {
	switch len(c.args) {
	case 1:
		c.del()
	case 3:
		c.removeIf(c.args[0], string(c.args[1]), c.args[2])
	default:
		c.wrongArity("delex")
	}
}

// removeIf ends what is under the key if the condition holds.
func (c *call) removeIf(key []byte, condition string, value []byte) {
	match, fault := parseMatch(condition, value)
	if fault != "" {
		c.err(fault)
		return
	}
	s, name := c.spaceOf(key)
	switch {
	case s == nil:
	case s == holdSpace:
		c.cancelHold(name, match)
	case s == reasonSpace:
		c.err("ERR a reason is frozen and cannot be deleted")
	case match.NotToken != nil || match.NotDigest != nil:
		c.removeOthers(name, match)
	case c.may(lockWriters...):
		c.count(c.door.deps.Locks.Remove(c.ctx, c.org(), name, match))
	}
}

// removeOthers frees a lock of everybody but one, which is as much as breaking it.
func (c *call) removeOthers(name string, match locking.Match) {
	if c.may(adminsOnly...) {
		c.count(c.door.deps.Locks.Remove(c.ctx, c.org(), name, match))
	}
}
