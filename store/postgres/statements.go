package postgres

import (
	"sync"

	"allocator/allocation"
)

// statements keeps the texts that depend on which rules a request asks, one for each set of rules. Shops ask the same
// few sets again and again, and each text is prepared once on each connection. Safe for concurrent use.
type statements struct {
	mu     sync.Mutex
	atOnce map[allocation.RuleSet]string
}

// maxStatements bounds what one process prepares: callers that ask a new set each time would have nothing but that done.
const maxStatements = 64

// reserveAtOnce returns "" when there are too many already.
func (s *statements) reserveAtOnce(asked allocation.RuleSet) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sql, known := s.atOnce[asked]
	if known || len(s.atOnce) == maxStatements {
		return sql
	}
	if s.atOnce == nil {
		s.atOnce = map[allocation.RuleSet]string{}
	}
	sql = reserveAtOnceSQL(asked)
	s.atOnce[asked] = sql
	return sql
}
