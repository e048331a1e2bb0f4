package redisport

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"allocator/events"
	"allocator/identity"
	"allocator/locking"
	"allocator/reservation"
)

// The errors of Redis that more than one command gives.
const (
	errSyntax     = "ERR syntax error"
	errNotInteger = "ERR value is not an integer or out of range"
	errDigest     = "ERR must be exactly 16 hexadecimal characters"
)

// quoteMost is how much of an unknown command and of its arguments is said back.
const quoteMost = 128

// scripts are asked for by clients that compare and delete in Lua. Here each of those scripts is one command.
var scripts = map[string]bool{
	"eval": true, "evalsha": true, "eval_ro": true, "evalsha_ro": true, "script": true, "fcall": true, "fcall_ro": true, "function": true,
}

// unknown refuses a command that there is none of.
func (c *call) unknown(name string) {
	if scripts[strings.ToLower(name)] {
		c.err("ERR there are no scripts here: to release a lock send DELEX key IFEQ token, to extend it SET key token IFEQ token PX milliseconds")
		return
	}
	var args strings.Builder
	for _, arg := range c.args {
		left := quoteMost - args.Len()
		if left <= 0 {
			break
		}
		fmt.Fprintf(&args, "'%.*s' ", left, arg)
	}
	c.err(fmt.Sprintf("ERR unknown command '%.*s', with args beginning with: %s", quoteMost, name, args.String()))
}

func (c *call) wrongArity(name string) {
	c.err("ERR wrong number of arguments for '" + name + "' command")
}

// fail answers with what went wrong, in words that are fit for strangers, and never with nil.
func (c *call) fail(err error) {
	invalid, isInvalid := errors.AsType[*locking.InvalidError](err)
	switch {
	case isInvalid:
		c.err("ERR " + invalidWords(invalid))
	case errors.Is(err, reservation.ErrOutcomeUnknown):
		c.log().WarnContext(c.ctx, "the outcome of a command is unknown", "error", err)
		c.err("ERR " + reservation.ErrOutcomeUnknown.Error())
	case isAway(err) || c.ctx.Err() != nil:
		c.log().WarnContext(c.ctx, "the database did not answer a command", "error", err)
		c.err("ERR the database cannot be reached at the moment, so nobody can tell: try again shortly, and do not take it for a lock that somebody has")
	default:
		c.log().ErrorContext(c.ctx, "a command failed", "error", err)
		c.err("ERR the service failed at this command: its log says why")
	}
}

// isAway tells whether the database did not answer.
func isAway(err error) bool {
	return errors.Is(err, locking.ErrBackend) || errors.Is(err, reservation.ErrUnavailable) || errors.Is(err, identity.ErrUnavailable)
}

// invalidWords speaks of what a Redis client sends: a value and an expiry.
func invalidWords(invalid *locking.InvalidError) string {
	switch invalid.Field {
	case "token":
		return "the value of a lock is its token, which " + invalid.Reason
	case "ttl_ms":
		return fmt.Sprintf("invalid expire time in milliseconds: it %s", invalid.Reason)
	}
	return "the key of a lock " + invalid.Reason
}

// refusedKey writes down a key that was not accepted, in the trail of its organization if the secret was right.
func (c *call) refusedKey(err error) {
	entry := events.AuditEntry{ActorKind: string(identity.ActorKey), Detail: map[string]string{"code": "unauthenticated"}}
	if refused, ok := errors.AsType[*identity.RefusedError](err); ok {
		entry.OrganizationID, entry.ActorID = string(refused.Organization), string(refused.KeyID)
		entry.Detail["reason"] = string(refused.Refusal)
	}
	c.record(entry)
}

// may tells whether the caller has one of the scopes, and answers if not.
func (c *call) may(scopes ...identity.Scope) bool {
	if slices.ContainsFunc(scopes, c.session.caller.Scopes.Has) {
		return true
	}
	c.forbid(fmt.Sprintf("User default has no permissions to run the '%s' command: this needs a key with one of these scopes: %s",
		c.commandName(), identity.NewScopeSet(scopes...)))
	return false
}

// forbid refuses what the key does not allow, and leaves a trace.
func (c *call) forbid(why string) {
	caller := c.session.caller
	c.record(events.AuditEntry{
		OrganizationID: string(caller.Organization), ActorKind: string(caller.Actor.Kind), ActorID: caller.Actor.ID,
		Detail: map[string]string{"code": "missing_scope"},
	})
	c.err("NOPERM " + why)
}

// record never changes the answer: the attempt was refused already.
func (c *call) record(entry events.AuditEntry) {
	entry.Action, entry.RequestID, entry.Subject = events.ActionRequest, c.caller().RequestID, "REDIS "+strings.ToUpper(c.commandName())
	if err := c.door.deps.Attempts.Record(c.ctx, entry); err != nil {
		c.log().WarnContext(c.ctx, "a refused attempt could not be recorded", "error", err)
	}
}
