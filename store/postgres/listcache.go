package postgres

import (
	"sync"
	"time"
)

// listCache remembers which frozen lists are stored this month, so that they do not travel again with every decision.
// Safe for concurrent use.
type listCache struct {
	mu    sync.Mutex
	month time.Month
	seen  map[string]bool
}

// maxLists bounds the memory; beyond it everything is forgotten, which costs a statement that finds the list there.
const maxLists = 10_000

func (c *listCache) known(hash []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew()
	return c.seen[string(hash)]
}

// remember is called after the commit that stored the lists.
func (c *listCache) remember(hashes [][]byte) {
	if len(hashes) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renew()
	for _, h := range hashes {
		c.seen[string(h)] = true
	}
}

// renew forgets at the turn of a month, since lists are stored once for each; a process whose clock is off by minutes
// then refers to a list of the month before, which is kept as long as the decisions of this one.
func (c *listCache) renew() {
	month := time.Now().UTC().Month() //nolint:forbidigo // no deadline hangs on it
	if c.seen == nil || c.month != month || len(c.seen) > maxLists {
		c.month, c.seen = month, map[string]bool{}
	}
}
