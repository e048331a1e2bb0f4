package postgres

import (
	"fmt"
	"strings"

	"allocator/allocation"
)

// The rules of package allocation as SQL, put together once. In a statement they need s (a row of servers), o (held and
// bound as booleans) and q (questionRecord over the request's arguments as jsonb).
var (
	failsSQL   = verdictSQL(fails)
	unknownSQL = verdictSQL(unknown)
	// questionRecord is the column list of jsonb_to_record.
	questionRecord = recordSQL()
)

// verdictSQL adds up one bit for each rule whose condition is true, as allocation.Verdict has them.
func verdictSQL(condition func(*allocation.Rule) string) string {
	var terms []string
	for i, rule := range allocation.Rules() {
		if c := condition(&rule); c != "" {
			terms = append(terms, fmt.Sprintf("CASE WHEN %s THEN %d ELSE 0 END", c, uint64(1)<<i))
		}
	}
	return "(" + strings.Join(terms, "\n\t+ ") + ")::bigint"
}

// fails is true where the rule is asked, its attribute known, and the server does not pass.
func fails(r *allocation.Rule) string {
	condition := "(" + r.HoldsSQL + ") IS NOT TRUE"
	if r.UnknownSQL != "" {
		condition = "(" + r.UnknownSQL + ") IS NOT TRUE AND " + condition
	}
	return asked(r) + condition
}

// unknown is true where the rule is asked and its attribute is unknown; empty for a rule that always knows.
func unknown(r *allocation.Rule) string {
	if r.UnknownSQL == "" {
		return ""
	}
	return asked(r) + "(" + r.UnknownSQL + ") IS TRUE"
}

func asked(r *allocation.Rule) string {
	if r.Param == "" {
		return ""
	}
	return "q." + r.Param + " IS NOT NULL AND "
}

func recordSQL() string {
	var columns []string
	for _, rule := range allocation.Rules() {
		if rule.Param != "" {
			columns = append(columns, rule.Param+" "+rule.ParamType)
		}
	}
	return strings.Join(columns, ", ")
}
