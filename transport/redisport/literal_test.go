package redisport_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/locking/redistest"
)

// exchange is bytes that are sent to both, and what may differ in the answers.
type exchange struct {
	send  string // a line of words, unless it ends with a line break: then it is sent as it is
	door  string // where the door differs on purpose: its answer
	why   string // and the reason
	skips bool   // the Redis of this machine does not know it: the answer is the documented one of 8.4
	bare  bool   // nothing is sent behind it, and the connection ends
}

func bare(send string) []exchange             { return []exchange{{send: send, bare: true}} }
func same(send string) exchange               { return exchange{send: send} }
func differs(send, door, why string) exchange { return exchange{send: send, door: door, why: why} }
func newer(send, documented string) exchange {
	return exchange{send: send, door: documented, skips: true}
}

func sameAll(lines ...string) (all []exchange) {
	for _, line := range lines {
		all = append(all, same(line))
	}
	return all
}

// zeros is a value whose digest begins with zeros, out of the discussion in which Redis 8.4 settled how a digest is written.
const zeros = "v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd"

const (
	noSecond    = "a lock without an expiry would stay for ever"
	noDel       = "DEL frees a lock whoever has it"
	ownKinds    = "there are three kinds of keys; nil would be taken for a lock that is free"
	words84     = "the words are those of Redis 8.4"
	ownName     = "the door has a version of its own"
	needExpir   = "-ERR a lock without an expiry would stay for ever if its holder died: add PX milliseconds or EX seconds\r\n"
	noAuthHello = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n"
	expireAdmin = "-NOPERM User default has no permissions to run the 'pexpire' command: this needs a key with one of these scopes: admin\r\n"
	onlyAdmin   = "-NOPERM DEL frees a lock whoever has it, so it takes a key with the scope admin: release your own with DELEX key IFEQ token\r\n"
)

// conversations are what clients say, each on a connection of its own that is authenticated already.
var conversations = map[string][]exchange{
	"taking a lock": sameAll(
		"SET lock:a tok NX PX 30000", "SET lock:a other NX PX 30000", "GET lock:a", "PTTL lock:a", "TTL lock:a", "EXISTS lock:a",
		"EXISTS lock:a lock:none", "TYPE lock:a", "TYPE lock:none", "GET lock:none", "PTTL lock:none", "TTL lock:none", "EXISTS lock:none",
		"set lock:a v px 30000 nx", "sEt lock:a v nX pX 30000", "SET lock:b v EX 30 NX", "set lock:b2 v ex 30 nx",
	),
	"options of SET": append(sameAll(
		"SET lock:c v XX PX 1000", "GET lock:c", "SET lock:c v NX GET PX 60000", "SET lock:c w NX GET PX 60000", "SET lock:c w XX PX 60000", "GET lock:c",
		"SET lock:c x GET PX 60000", "SET lock:none2 x XX GET PX 60000", "SET lock:c y XX KEEPTTL", "PTTL lock:c", "SET lock:c y KEEPTTL XX GET",
		"SET lock:e v GET PX 50000", "SET lock:e w PX 50000", "SET lock:e x PX 10000 XX GET", "GET lock:e",
	), differs("SET lock:d v EXAT 33177117420", "-ERR invalid expire time in milliseconds: it must be 1 to 604800000 (7 days)\r\n", "a lock has at most 7 days"),
		differs("SET lock:e y PXAT 1000", onlyAdmin, "a time that has passed is a DEL"),
	),
	"faults of SET": append(sameAll(
		"SET lock:f v NX XX PX 1000", "SET lock:f v PX", "SET lock:f v PX 10 EX 10", "SET lock:f v PX abc", "SET lock:f v PX 1.5", "SET lock:f v PX 0",
		"SET lock:f v PX -5", "SET lock:f v EX 0", "SET lock:f v EX 9223372036854775807", "SET lock:f v PX 99999999999999999999", "SET lock:f v bogus",
		"SET lock:f v NX PX 1000 bogus", "SET lock:f", "SET", "SET lock:f v KEEPTTL PX 10", "SET lock:f v EXAT -1", "SET lock:f v PXAT 0", "SET lock:f v PX 010",
		"SET lock:f v PX +10", "SET lock:f v GET PX",
	), differs("SET lock:g v", needExpir, noSecond),
		differs("SET lock:g v NX", needExpir, noSecond),
		differs("SET lock:g v KEEPTTL", needExpir, noSecond),
		differs("SET lock:g v NX PX 604800001", "-ERR invalid expire time in milliseconds: it must be 1 to 604800000 (7 days)\r\n", "a lock has at most 7 days"),
		differs("*5\r\n$3\r\nSET\r\n$6\r\nlock:g\r\n$0\r\n\r\n$2\r\nPX\r\n$3\r\n100\r\n", "-ERR the value of a lock is its token, which must not be empty: it is how the holder is known\r\n", "the value is the holder's token"),
		differs("SET other v PX 100", "-ERR no such kind of key: there are lock:<name>, hold:<reservation> and reason:<reservation>\r\n", ownKinds),
		differs("GET other", "-ERR no such kind of key: there are lock:<name>, hold:<reservation> and reason:<reservation>\r\n", ownKinds),
	),
	"more time": append(sameAll(
		"SET lock:h v NX PX 30000", "PEXPIRE lock:h 60000", "PTTL lock:h", "EXPIRE lock:h 90", "TTL lock:h", "PEXPIRE lock:none 1000", "EXPIRE lock:none 1000",
		"PEXPIRE lock:h 1000 NX", "PEXPIRE lock:h 95000 XX", "PEXPIRE lock:h 1000 GT", "PEXPIRE lock:h 200000 gt", "PEXPIRE lock:h 300000 LT", "PEXPIRE lock:h 100000 lt",
		"PEXPIRE lock:h 1000 NX XX", "PEXPIRE lock:h 1000 GT LT", "PEXPIRE lock:h 1000 XX GT", "PEXPIRE lock:h 1000 bogus", "PEXPIRE lock:h abc", "PEXPIRE lock:h",
		"PEXPIRE lock:h 9223372036854775807", "EXPIRE lock:h 9223372036854775", "EXPIRE lock:h -9223372036854775808", "PEXPIRE lock:h 99999999999999999999", "PTTL lock:h",
		"PEXPIRE lock:h -1 GT", "PTTL lock:h",
	), differs("PEXPIRE lock:none 0", expireAdmin, "a time that has passed is a DEL")),
	"deleting": {
		same("SET lock:i v NX PX 30000"), differs("DEL lock:i", onlyAdmin, noDel), differs("EXISTS lock:i", ":1\r\n", noDel), differs("DEL lock:none", onlyAdmin, noDel), same("DEL"),
		differs("PEXPIRE lock:i 0", expireAdmin, "a time that has passed is a DEL"),
	},
	"as Redis 8.4 does it": {
		newer("SET lock:j tok NX PX 30000", "+OK\r\n"),
		newer("SET lock:j tok IFEQ tok PX 60000", "+OK\r\n"), newer("SET lock:j new IFEQ wrong PX 60000", "$-1\r\n"), newer("set lock:j tok px 60000 ifeq tok", "+OK\r\n"),
		newer("SET lock:j new IFEQ wrong GET PX 60000", "$3\r\ntok\r\n"), newer("SET lock:none3 new IFEQ x PX 60000", "$-1\r\n"), newer("EXISTS lock:none3", ":0\r\n"),
		newer("SET lock:j new IFNE tok PX 60000", "$-1\r\n"), newer("SET lock:j new IFNE other PX 60000", "+OK\r\n"), newer("SET lock:k v IFNE x PX 60000", "+OK\r\n"),
		newer("SET lock:q "+zeros+" NX PX 30000", "+OK\r\n"), newer("DIGEST lock:q", "$16\r\n00006c38adf31777\r\n"), newer("SET lock:q x IFDEQ 00006c38adf31778 PX 100", "$-1\r\n"),
		newer("SET lock:q x IFDNE 00006c38adf31777 PX 100", "$-1\r\n"), newer("SET lock:q "+zeros+" IFDEQ 00006C38ADF31777 PX 30000", "+OK\r\n"), newer("DELEX lock:q IFDEQ 00006c38adf31778", ":0\r\n"), newer("DELEX lock:q IFDEQ 00006C38ADF31777", ":1\r\n"), newer("EXISTS lock:q", ":0\r\n"),
		newer("DIGEST lock:none", "$-1\r\n"), newer("DIGEST", "-ERR wrong number of arguments for 'digest' command\r\n"),
		newer("SET lock:j v NX IFEQ v PX 100", "-ERR syntax error\r\n"), newer("SET lock:j v IFEQ a IFNE b PX 100", "-ERR syntax error\r\n"), newer("SET lock:j v PX 100 IFEQ", "-ERR syntax error\r\n"),
		newer("SET lock:j v IFDEQ 123 PX 100", "-ERR must be exactly 16 hexadecimal characters\r\n"), newer("SET lock:j v IFDNE 123456789abcdefg PX 100", "-ERR must be exactly 16 hexadecimal characters\r\n"),
		newer("DELEX lock:j IFEQ wrong", ":0\r\n"), newer("DELEX lock:none IFEQ tok", ":0\r\n"), newer("DELEX lock:j", onlyAdmin), newer("DELEX lock:j IFEQ", "-ERR wrong number of arguments for 'delex' command\r\n"),
		newer("DELEX lock:j BOGUS x", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE\r\n"), newer("DELEX lock:j IFDEQ 12", "-ERR must be exactly 16 hexadecimal characters\r\n"),
		newer("delex lock:j ifeq new", ":1\r\n"), newer("DELEX lock:j IFEQ new", ":0\r\n"), newer("EXISTS lock:j", ":0\r\n"),
		newer("SET lock:l tok NX PX 30000", "+OK\r\n"), newer("DELIFEQ lock:l wrong", ":0\r\n"), newer("DELIFEQ lock:l tok", ":1\r\n"), newer("DELIFEQ lock:l", "-ERR wrong number of arguments for 'delifeq' command\r\n"),
		newer("CLIENT SETINFO lib-name test", "+OK\r\n"), newer("CLIENT SETINFO LIB-VER 1.0", "+OK\r\n"), newer("CLIENT SETINFO bogus 1", "-ERR Unrecognized option 'bogus'\r\n"),
		newer("CLIENT SETINFO lib-name", "-ERR wrong number of arguments for 'client|setinfo' command\r\n"),
	},
	"the connection": append(sameAll(
		"PING", "PING hello", "PING a b", "ping", "ECHO hello", "ECHO", "ECHO a b", "SELECT 0", "SELECT 99", "SELECT abc", "SELECT", "CLIENT SETNAME me", "CLIENT GETNAME",
		"CLIENT SETNAME", "CLIENT", "CLIENT GETNAME x", "CLIENT BOGUS", "CLIENT ID x", "GET", "GET a b", "EXISTS", "TYPE", "PTTL", "TTL a b",
		"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$3\r\na b\r\n", "NOSUCH", "NOSUCH a b", "nosuch a", "COMMAND BOGUS", "COMMAND COUNT x",
		"NOSUCH "+strings.Repeat("x", 200)+" y", strings.Repeat("z", 200)+" y", "NOSUCH aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbb cc",
		"COMMAND INFO nosuch", "COMMAND LIST x",
	), differs("COMMAND COUNT", ":30\r\n", "these are the commands that there are")),
	"greetings": append(sameAll("HELLO 4", "HELLO abc", "HELLO 2 bogus", "HELLO 3 SETNAME", "HELLO 3 AUTH a", "HELLO 3 AUTH nobody wrong", "AUTH wrong", "AUTH nobody wrong", "AUTH a b c", "AUTH", "HELLO 3 SETNAME a\tb"),
		differs("HELLO 2 SETNAME me", "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n8.4.0\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:ID\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n", ownName),
		same("CLIENT GETNAME"),
	),
	"RESP3": append([]exchange{
		differs("HELLO 3", "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n8.4.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:ID\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n", ownName),
	}, append(sameAll(
		"CLIENT GETNAME", "SET lock:m tok NX PX 30000", "SET lock:m tok NX PX 30000", "GET lock:m", "GET lock:none", "PTTL lock:m", "TYPE lock:m", "EXISTS lock:m", "PING", "PING x", "ECHO x",
		"SET lock:m tok GET XX PX 1000", "SET lock:none4 t GET PX 1000 NX", "NOSUCH a", "COMMAND INFO nosuch", "SET lock:m x NX PX abc", "COMMAND DOCS nosuch", "INFO nosuch",
	), newer("DIGEST lock:none", "_\r\n"), newer("DELEX lock:none IFEQ x", ":0\r\n"), newer("SET lock:none v IFEQ x PX 100", "_\r\n"))...),
	"by hand": sameAll(
		"PING\r\n", "PING\n", "\r\nPING\r\n", "  PING   x  \r\n", "SET lock:n \"a b\" NX PX 30000\r\n", "GET lock:n\r\n", "SET lock:o 'it\\'s' NX PX 30000\r\n", "GET lock:o\r\n",
		"ECHO \"\\x41\\n\\t\\\\\\\"\\q\"\r\n", "ECHO ''\r\n", "ECHO a\tb\r\n", "ECHO a\"b\"\r\n", "*0\r\n*1\r\n$4\r\nPING\r\n", "*-1\r\nPING\r\n", "*1\r\n$4\r\nPINGxxPING\r\n",
	),
	"faults of the protocol 1":  sameAll("*abc\r\n"),
	"faults of the protocol 2":  sameAll("*1\r\nPING\r\n"),
	"faults of the protocol 3":  sameAll("*1\r\n$abc\r\n"),
	"faults of the protocol 4":  sameAll("*1\r\n$-1\r\n"),
	"faults of the protocol 5":  sameAll("ECHO \"unbalanced\r\n"),
	"faults of the protocol 6":  sameAll("ECHO \"a\"b\r\n"),
	"faults of the protocol 7":  sameAll("*2147483648\r\n"),
	"faults of the protocol 8":  sameAll("*1\r\n$99999999999\r\n"),
	"faults of the protocol 9":  bare(strings.Repeat("x", 66_000)),
	"faults of the protocol 10": bare("*" + strings.Repeat("1", 66_000)),
	"faults of the protocol 11": bare("*1\r\n$" + strings.Repeat("1", 66_000)),
	"faults of the protocol 12": sameAll("*01\r\n$4\r\nPING\r\n"),
	"faults behind answers":     sameAll("PING\r\nECHO hello\r\n*x\r\nPING\r\n"),
	"leaving":                   sameAll("QUIT"),
	"leaving with more to say":  sameAll("PING\r\nQUIT\r\nPING\r\n"),
}

// strangers say these before AUTH.
var strangers = map[string][]exchange{
	"commands": sameAll("PING", "GET lock:a", "SET lock:a b NX PX 1000", "ECHO x", "SELECT 0", "CLIENT ID", "INFO", "COMMAND", "HELLO 9", "NOSUCH", "GET", "AUTH",
		"AUTH wrong", "AUTH default wrong", "HELLO 3 AUTH default wrong"),
	"greetings":      {differs("HELLO", noAuthHello, words84), differs("HELLO 3", noAuthHello, words84), differs("HELLO 2", noAuthHello, words84), same("QUIT")},
	"many arguments": sameAll("*11\r\n$4\r\nPING\r\n"),
	"long arguments": sameAll("*2\r\n$4\r\nECHO\r\n$16385\r\n"),
}

// What clients send goes to a real Redis and to the door, and the answers are compared byte for byte, RESP2 and RESP3.
// Where they differ, it is on purpose and stands here with the reason; docs/locks.md has the same table.
//
// Requirements: D01, D02, D05, D10, D18, D19.
func TestAnswersAreThoseOfRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	redis, password := realRedis(t)
	known := map[bool]map[string][]exchange{true: conversations, false: strangers}
	for authenticated, some := range known {
		for name, exchanges := range some {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				theirs, ours := dial(t, redis), dial(t, w.addr)
				if authenticated {
					theirs.want("+OK\r\n", "AUTH", password)
					ours.want("+OK\r\n", "AUTH", w.key("acme:operator"))
				}
				for _, e := range exchanges {
					compare(t, e, theirs, ours)
				}
			})
		}
	}
}

func compare(t *testing.T, e exchange, theirs, ours *wire) {
	t.Helper()
	got := withoutChance(say(ours, e))
	if e.skips {
		require.Equal(t, e.door, got, "%.200q, as Redis 8.4 documents it", e.send)
		return
	}
	want := withoutChance(say(theirs, e))
	if e.door == "" {
		require.Equal(t, want, got, "%.200q", e.send)
		return
	}
	require.Equal(t, e.door, got, "%.200q differs since %s", e.send, e.why)
	require.NotEqual(t, want, got, "%.200q does not differ any more", e.send)
}

// say sends it and returns all the answers: those that come before the answer to a marker, or before the end.
func say(c *wire, e exchange) string {
	const marker = "the marker behind it"
	send := e.send
	if !e.bare && !strings.HasSuffix(send, "\n") {
		send = encode(strings.Split(send, " ")...)
	}
	if !e.bare {
		send += encode("NOSUCHMARKER", marker)
	}
	c.raw(send)
	var answers strings.Builder
	for {
		text, err := readReply(c.in)
		if strings.Contains(text, marker) {
			return answers.String()
		}
		answers.WriteString(text)
		if err != nil {
			return answers.String() + "(closed)"
		}
	}
}

var (
	amount       = regexp.MustCompile(`^:(\d{2,})\r\n$`)
	connectionID = regexp.MustCompile(`(\$2\r\nid\r\n:)\d+`)
)

// withoutChance takes out what differs from run to run: numbers of connections, and what has passed of a time that was
// just set, which is rounded up to ten units of seconds or of milliseconds.
func withoutChance(text string) string {
	if m := amount.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		unit := 10
		if n > 1000 {
			unit = 10_000
		}
		return fmt.Sprintf(":%d\r\n", (n+unit-1)/unit*unit)
	}
	return connectionID.ReplaceAllString(text, "${1}ID")
}

// realRedis is a Redis of this test's own, also where REDIS_URL names another: the keys of these tests must be free.
func realRedis(t *testing.T) (addr, password string) {
	t.Helper()
	u, err := url.Parse(redistest.Start(t).URL())
	require.NoError(t, err)
	password, _ = u.User.Password()
	return u.Host, password
}

// Every difference stands in docs/locks.md, with the same reason.
func TestDifferencesAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/locks.md")
	require.NoError(t, err)
	for _, some := range []map[string][]exchange{conversations, strangers} {
		for _, exchanges := range some {
			for _, e := range exchanges {
				require.Contains(t, string(doc), e.why, "%.60q", e.send)
			}
		}
	}
}
