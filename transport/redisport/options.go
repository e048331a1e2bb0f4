package redisport

import (
	"math"
	"strings"
	"time"

	"allocator/locking"
)

// setOptions are what stands behind key and value of a SET.
type setOptions struct {
	put     locking.Put // without key and token
	judged  bool        // a condition was given
	expires bool        // an expiry was given, KEEPTTL included
}

// parseSet reads the options of SET in any order and case. Two conditions, or two expiries, are a syntax error, as in
// Redis.
func parseSet(args [][]byte) (o setOptions, fault string) {
	for len(args) > 0 {
		option := strings.ToLower(string(args[0]))
		switch {
		case len(args) > 1 && isCondition(option) && !o.judged:
			fault = o.match(option, args[1])
			args = args[2:]
		case len(args) > 1 && isExpiry(option) && !o.expires:
			o.expires = true
			o.put.Until, fault = parseExpiry(option, args[1])
			args = args[2:]
		default:
			fault = o.word(option)
			args = args[1:]
		}
		if fault != "" {
			return o, fault
		}
	}
	return o, ""
}

// frees tells whether the lock is to be over at once whoever has it: at an instant that has passed, without asking for
// the holder's token or its digest. NX ends nobody's lock.
func (o *setOptions) frees(now time.Time) bool {
	at, match := o.put.Until.At, o.put.Match
	return !at.IsZero() && !at.After(now) && match.Token == nil && match.Digest == nil && o.put.If != locking.Free
}

// word takes an option without a value.
func (o *setOptions) word(option string) (fault string) {
	switch {
	case option == "get":
		o.put.Before = true
	case option == "nx" && !o.judged:
		o.judged, o.put.If = true, locking.Free
	case option == "xx" && !o.judged:
		o.judged, o.put.If = true, locking.Held
	case option == "keepttl" && !o.expires:
		o.expires = true
	default:
		return errSyntax
	}
	return ""
}

// match takes IFEQ and its kin. Those that ask for a value do not create the key, the others do.
func (o *setOptions) match(option string, value []byte) (fault string) {
	o.judged = true
	o.put.Match, fault = parseMatch(option, value)
	if option == "ifeq" || option == "ifdeq" {
		o.put.If = locking.Held
	}
	return fault
}

func isCondition(option string) bool {
	return option == "ifeq" || option == "ifne" || option == "ifdeq" || option == "ifdne"
}

func isExpiry(option string) bool {
	return option == "ex" || option == "px" || option == "exat" || option == "pxat"
}

// parseMatch reads a condition of SET or DELEX.
func parseMatch(condition string, value []byte) (match locking.Match, fault string) {
	token := string(value)
	digest, isDigest := parseDigest(value)
	switch strings.ToLower(condition) {
	case "ifeq":
		match.Token = &token
	case "ifne":
		match.NotToken = &token
	case "ifdeq", "ifdne":
		if !isDigest {
			return match, errDigest
		}
		if strings.EqualFold(condition, "ifdeq") {
			match.Digest = &digest
		} else {
			match.NotDigest = &digest
		}
	default:
		return match, "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
	}
	return match, ""
}

// parseExpiry reads EX, PX, EXAT or PXAT. Milliseconds must fit 64 bits; how long a lock may have is judged elsewhere.
func parseExpiry(option string, value []byte) (until locking.Until, fault string) {
	n, ok := parseInt(value)
	if !ok {
		return until, errNotInteger
	}
	inSeconds := option == "ex" || option == "exat"
	if n <= 0 || inSeconds && n > math.MaxInt64/1000 {
		return until, "ERR invalid expire time in 'set' command"
	}
	if inSeconds {
		n *= 1000
	}
	if option == "exat" || option == "pxat" {
		return locking.Until{At: time.UnixMilli(n)}, ""
	}
	return locking.Until{After: milliseconds(n)}, ""
}

// milliseconds stays within what a duration can hold, which is longer than any lock.
func milliseconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(n, most)) * time.Millisecond
}

// expireOptions are what stands behind the key of EXPIRE or PEXPIRE.
type expireOptions struct {
	after time.Duration // zero: at once
	later locking.Later
	never bool // NX: only a key without an expiry, and every lock has one
}

// frees tells whether the key is to be over at once. What has passed is not later than anything.
func (o *expireOptions) frees() bool { return o.after == 0 && !o.never && o.later != locking.OnlyLater }

// parseExpire reads a time in units of so many milliseconds and the options of EXPIRE in any order and case.
func parseExpire(name string, args [][]byte, unit int64) (o expireOptions, fault string) {
	if fault := o.words(args[1:]); fault != "" {
		return o, fault
	}
	n, ok := parseInt(args[0])
	if !ok {
		return o, errNotInteger
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-time.Now().UnixMilli() {
		return o, "ERR invalid expire time in '" + name + "' command"
	}
	o.after = milliseconds(max(n*unit, 0))
	return o, ""
}

func (o *expireOptions) words(args [][]byte) (fault string) {
	given := map[string]bool{}
	for _, arg := range args {
		option := strings.ToLower(string(arg))
		if option != "nx" && option != "xx" && option != "gt" && option != "lt" {
			return "ERR Unsupported option " + string(arg)
		}
		given[option] = true
	}
	o.never = given["nx"]
	switch {
	case o.never && len(given) > 1:
		return "ERR NX and XX, GT or LT options at the same time are not compatible"
	case given["gt"] && given["lt"]:
		return "ERR GT and LT options at the same time are not compatible"
	case given["gt"]:
		o.later = locking.OnlyLater
	case given["lt"]:
		o.later = locking.OnlyEarlier
	}
	return ""
}
