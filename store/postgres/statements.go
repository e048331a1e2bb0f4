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

// maxStatements bounds the memory; what is forgotten is written again. The driver bounds what is prepared.
const maxStatements = 256

func (s *statements) reserveAtOnce(asked allocation.RuleSet) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atOnce == nil || len(s.atOnce) == maxStatements {
		s.atOnce = map[allocation.RuleSet]string{}
	}
	sql, known := s.atOnce[asked]
	if !known {
		sql = reserveAtOnceSQL(asked)
		s.atOnce[asked] = sql
	}
	return sql
}
