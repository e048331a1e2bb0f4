package redisport

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// Limits that Redis has too, and does not let anybody change.
const (
	maxLine         = 64 << 10 // of an inline command, and of a line that says a length
	strangersArgs   = 10       // of a command before AUTH
	strangersLength = 16 << 10 // of an argument before AUTH
)

// frames takes commands out of what a client has sent so far. Its faults are the protocol errors of Redis, behind which a
// connection cannot be understood any more.
type frames struct {
	in      []byte
	args    [][]byte // of the command that is being read
	missing int      // how many more of them there are to come
	length  int      // of the next one; -1: its line is still to come
	size    int      // of all arguments so far
}

// add appends what was read.
func (f *frames) add(p []byte) { f.in = append(f.in, p...) }

// begun tells whether a part of a command is here.
func (f *frames) begun() bool { return len(f.in) > 0 || f.missing > 0 }

// next returns the arguments of the next command, nil if it is not here yet, or a fault. Commands without arguments are
// passed over.
func (f *frames) next(limits *Limits, stranger bool) (args [][]byte, fault string) {
	for {
		var complete bool
		switch {
		case f.missing > 0:
			complete, fault = f.argument(limits, stranger)
		case len(f.in) == 0:
			return nil, ""
		case f.in[0] == '*':
			complete, fault = f.count(limits, stranger)
		default:
			complete, fault = f.inline()
		}
		if !complete || fault != "" {
			return nil, fault
		}
		if f.missing == 0 && len(f.args) > 0 {
			args, f.args, f.size = f.args, nil, 0
			return args, ""
		}
	}
}

// inline reads a command as people type it.
func (f *frames) inline() (complete bool, fault string) {
	end := bytes.IndexByte(f.in, '\n')
	if end < 0 {
		if len(f.in) > maxLine {
			return false, "too big inline request"
		}
		return false, ""
	}
	words, balanced := splitWords(bytes.TrimSuffix(f.in[:end], []byte("\r")))
	f.skip(end + 1)
	if !balanced {
		return true, "unbalanced quotes in request"
	}
	f.args = words
	return true, ""
}

// count reads the number of arguments.
func (f *frames) count(limits *Limits, stranger bool) (complete bool, fault string) {
	line, complete := f.line()
	if !complete {
		if len(f.in) > maxLine {
			return false, "too big mbulk count string"
		}
		return false, ""
	}
	n, ok := parseInt(line[1:])
	switch {
	case !ok || n > math.MaxInt32:
		return true, "invalid multibulk length"
	case n > strangersArgs && stranger:
		return true, "unauthenticated multibulk length"
	case n > int64(limits.Arguments):
		return true, "invalid multibulk length"
	case n > 0:
		f.missing, f.length = int(n), -1
		f.args = make([][]byte, 0, n)
	}
	return true, ""
}

// argument reads the next argument, or the line before it.
func (f *frames) argument(limits *Limits, stranger bool) (complete bool, fault string) {
	if f.length < 0 {
		if complete, fault := f.bulkLength(limits, stranger); !complete || fault != "" {
			return complete, fault
		}
	}
	if len(f.in) < f.length+2 {
		return false, ""
	}
	f.args = append(f.args, append([]byte{}, f.in[:f.length]...))
	f.skip(f.length + 2) // whatever stands there instead of a line break: Redis does not look either
	f.missing, f.length = f.missing-1, -1
	return true, ""
}

func (f *frames) bulkLength(limits *Limits, stranger bool) (complete bool, fault string) {
	line, complete := f.line()
	if !complete {
		if len(f.in) > maxLine {
			return false, "too big bulk count string"
		}
		return false, ""
	}
	if len(line) == 0 || line[0] != '$' {
		got := byte('\r')
		if len(line) > 0 {
			got = line[0]
		}
		return true, fmt.Sprintf("expected '$', got '%c'", got)
	}
	n, ok := parseInt(line[1:])
	switch {
	case !ok || n < 0 || n > int64(limits.Argument):
		return true, "invalid bulk length"
	case n > strangersLength && stranger:
		return true, "unauthenticated bulk length"
	}
	if f.size += int(n); f.size > limits.Command {
		return true, "invalid bulk length"
	}
	f.length = int(n)
	return true, ""
}

// line takes the next line, without its end.
func (f *frames) line() (line []byte, complete bool) {
	end := bytes.IndexByte(f.in, '\r')
	if end < 0 || end+1 >= len(f.in) {
		return nil, false
	}
	line = f.in[:end]
	f.skip(end + 2)
	return line, true
}

// skip drops the first n bytes, and lets go of a buffer that a large command has left.
func (f *frames) skip(n int) {
	f.in = f.in[n:]
	if len(f.in) == 0 {
		f.in = nil
	}
}

// parseInt reads an integer as Redis does: no sign +, no leading zeros, nothing around it.
func parseInt(text []byte) (int64, bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == string(text)
}
