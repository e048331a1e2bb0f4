package redisport

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// taken reads all commands out of what was sent in pieces of that size.
func taken(sent []byte, piece int, limits *Limits) (commands [][][]byte, fault string) {
	var f frames
	for len(sent) > 0 {
		n := min(piece, len(sent))
		f.add(sent[:n])
		sent = sent[n:]
		for {
			args, fault := f.next(limits, false)
			if fault != "" {
				return commands, fault
			}
			if args == nil {
				break
			}
			commands = append(commands, args)
		}
	}
	return commands, ""
}

// Whatever is sent, in whatever pieces it arrives, is the same commands up to the same fault; none is larger than the
// limits; and what is handed to redcon is what redcon reads, so that it never meets anything it cannot.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"*1\r\n$4\r\nPING\r\n", "PING\r\n", "SET \"a b\" 'c\\'d' \"\\x41\\n\"\r\n", "*0\r\n*-1\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "*1\r\nPING\r\n",
		"*1\r\n$-1\r\n", "*9223372036854775807\r\n", "*1\r\n$9223372036854775807\r\n", "\"", "'a'b\r\n", "*\r\n", "*1\r\n$\r\n", "*3\r\n$3\r\nSET\r\n", "\n\n\n", "*1\r$4\r\n", "$5\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, sent []byte, piece int) {
		limits := &Limits{Argument: 1000, Arguments: 20, Command: 2000}
		whole, fault := taken(sent, len(sent)+1, limits)
		parts, faultOfParts := taken(sent, max(1, piece%64), limits)
		require.Equal(t, whole, parts)
		require.Equal(t, fault, faultOfParts)
		for _, args := range whole {
			text := redcon.AppendArray(nil, len(args))
			for _, arg := range args {
				text = redcon.AppendBulk(text, arg)
			}
			read, err := redcon.Parse(text)
			require.NoError(t, err)
			require.Len(t, read.Args, len(args))
			for i := range args {
				require.True(t, bytes.Equal(args[i], read.Args[i]))
			}
		}
	})
}

// The options of SET mean the same in any case, and in any order of those that stand for themselves; an accepted SET has
// at most one condition and one expiry, and a time above zero.
func FuzzSetOptions(f *testing.F) {
	for _, seed := range []string{
		"NX PX 30000", "ex 30 nx", "IFEQ tok PX 1", "IFDEQ 00006c38adf31777 EX 1", "IFDNE 123 EX 1", "GET KEEPTTL XX", "EXAT 1 GET", "PXAT 9223372036854775807", "EX 9223372036854775807",
		"NX XX", "PX", "IFNE", "PX 1 EX 1", "KEEPTTL PX 1", "IFEQ nx NX", "PX px", "GET ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		o, fault := parseSet(bytesOf(words))
		upper, faultOfUpper := parseSet(bytesOf(options(words)))
		require.Equal(t, fault, faultOfUpper)
		require.Equal(t, o, upper)
		if fault != "" {
			return
		}
		require.GreaterOrEqual(t, o.put.Until.After, time.Duration(0))
		require.True(t, o.put.Until.After == 0 || o.put.Until.At.IsZero(), "one expiry")
		given := 0
		for _, asked := range []bool{o.put.Match.Token != nil, o.put.Match.NotToken != nil, o.put.Match.Digest != nil, o.put.Match.NotDigest != nil} {
			if asked {
				given++
			}
		}
		require.LessOrEqual(t, given, 1, "one condition")
		rotated, fault := parseSet(bytesOf(append([]string{"get"}, words...)))
		require.Empty(t, fault)
		o.put.Before = true
		require.Equal(t, o, rotated)
	})
}

func bytesOf(words []string) [][]byte {
	list := make([][]byte, len(words))
	for i, word := range words {
		list[i] = []byte(word)
	}
	return list
}

// options writes the options, but not their values, in the other case.
func options(words []string) []string {
	list := append([]string{}, words...)
	for i := 0; i < len(list); i++ {
		option := strings.ToLower(list[i])
		list[i] = strings.ToUpper(option)
		if isCondition(option) || isExpiry(option) {
			i++
		}
	}
	return list
}
