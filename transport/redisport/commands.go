package redisport

// command is one row of the table of commands. Arity, flags and keys are those that Redis gives in COMMAND.
type command struct {
	name    string
	arity   int // with the name; negative: at least as many
	flags   []string
	keys    [3]int // first, last, step
	group   string
	since   string
	summary string
	open    bool // also before AUTH
	run     func(*call)
}

// takes tells whether a command of n words, its name included, has as many as it takes.
func (c *command) takes(n int) bool { return n == c.arity || c.arity < 0 && n >= -c.arity }

var (
	oneKey   = [3]int{1, 1, 1}
	manyKeys = [3]int{1, -1, 1}
	noKey    = [3]int{}

	reads  = []string{"readonly", "fast"}
	writes = []string{"write", "fast"}
	talks  = []string{"noscript", "loading", "stale", "fast"}
)

// commands are found by their names in lower case.
var commands = map[string]*command{}

func init() { //nolint:gochecknoinits // COMMAND lists the table that it stands in
	for _, c := range []command{
		{"auth", -2, talks, noKey, "connection", "1.0.0", "Authenticates the connection with an API key.", true, (*call).auth},
		{"client", -2, talks, noKey, "connection", "2.4.0", "ID, GETNAME, SETNAME and SETINFO of this connection.", false, (*call).client},
		{"command", -1, []string{"loading", "stale"}, noKey, "server", "2.8.13", "Tells about the commands.", false, (*call).command},
		{"del", -2, writes, manyKeys, "generic", "1.0.0", "Breaks locks, whoever has them; for admins.", false, (*call).del},
		{"delex", -2, writes, oneKey, "string", "8.4.0", "Releases a lock, or cancels a hold, by its token.", false, (*call).delex},
		{"delifeq", 3, writes, oneKey, "string", "9.0.0", "DELEX key IFEQ token, as Valkey spells it.", false, (*call).delifeq},
		{"digest", 2, reads, oneKey, "string", "8.4.0", "XXH3 of a value.", false, (*call).digest},
		{"echo", 2, talks, noKey, "connection", "1.0.0", "Returns the text.", false, (*call).echo},
		{"exists", -2, reads, manyKeys, "generic", "1.0.0", "Counts the keys that exist.", false, (*call).exists},
		{"expire", -3, writes, oneKey, "generic", "1.0.0", "Sets what is left to a lock, in seconds.", false, (*call).expire},
		{"get", 2, reads, oneKey, "string", "1.0.0", "The token of a lock, the state of a hold, a frozen reason.", false, (*call).get},
		{"hello", -1, talks, noKey, "connection", "6.0.0", "Chooses the protocol, and authenticates.", true, (*call).hello},
		{"info", -1, []string{"loading", "stale"}, noKey, "server", "1.0.0", "Tells about the service.", false, (*call).info},
		{"pexpire", -3, writes, oneKey, "generic", "2.6.0", "Sets what is left to a lock, in milliseconds.", false, (*call).pexpire},
		{"ping", -1, talks, noKey, "connection", "1.0.0", "Says PONG.", false, (*call).ping},
		{"pttl", 2, reads, oneKey, "generic", "2.6.0", "What is left, in milliseconds.", false, (*call).pttl},
		{"quit", -1, talks, noKey, "connection", "1.0.0", "Closes the connection.", true, (*call).goodbye},
		{"select", 2, talks, noKey, "connection", "1.0.0", "Takes 0 alone.", false, (*call).selectDB},
		{"set", -3, []string{"write"}, oneKey, "string", "1.0.0", "Takes, extends or takes over a lock.", false, (*call).set},
		{"ttl", 2, reads, oneKey, "generic", "1.0.0", "What is left, in seconds.", false, (*call).ttl},
		{"type", 2, reads, oneKey, "generic", "1.0.0", "string, or none.", false, (*call).typeOf},
	} {
		commands[c.name] = &c
	}
}
