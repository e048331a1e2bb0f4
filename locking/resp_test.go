package locking

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readCommand reads one command as clients of Redis send it.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r, '*')
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		length, err := readLength(r, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, length+len("\r\n"))
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:length])
	}
	return command, nil
}

func readLength(r *bufio.Reader, kind byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q does not begin with %q", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

func writeCommand(w io.Writer, command []string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// asRedis84 makes an older Redis understand the two commands that Redis 8.4 has for comparing and acting in one step, so
// that the way over them is tested where there is no such server. Everything else goes through as it is.
func asRedis84(command []string) []string {
	switch {
	case len(command) == 4 && is(command[0], "DELEX") && is(command[2], "IFEQ"):
		return []string{"EVAL", `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`, "1", command[1], command[3]}
	case len(command) == 7 && is(command[0], "SET") && is(command[5], "IFEQ"):
		return []string{
			"EVAL", `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('SET', KEYS[1], ARGV[2], ARGV[3], ARGV[4]) end return false`,
			"1", command[1], command[6], command[2], command[3], command[4],
		}
	}
	return command
}

// asRedis70 takes the two commands away from a newer Redis.
func asRedis70(command []string) []string {
	switch {
	case is(command[0], "DELEX"):
		return []string{"NODELEX"}
	case is(command[0], "SET") && is(command[len(command)-2], "IFEQ"):
		return []string{"SET", "key", "value", "NOIFEQ"}
	}
	return command
}

func is(word, name string) bool { return strings.EqualFold(word, name) }
