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

// passesSQL joins to the servers of a statement, whose parameter $3 is the question, the condition that nothing speaks
// against the server on which the given rules are asked. Whether it is held or bound is left to the statement. What is
// not asked is not compiled, which is most of the table in most requests.
func passesSQL(asked allocation.RuleSet) string {
	var columns, conditions []string
	for i, rule := range allocation.Rules() {
		switch {
		case rule.Code == allocation.CodeHeld || rule.Code == allocation.CodeBound || !asked.Has(i):
			continue
		case rule.Param != "":
			columns = append(columns, rule.Param+" "+rule.ParamType)
		}
		if rule.UnknownSQL != "" {
			conditions = append(conditions, "("+rule.UnknownSQL+") IS NOT TRUE")
		}
		conditions = append(conditions, "("+rule.HoldsSQL+") IS TRUE")
	}
	from := " CROSS JOIN (SELECT $3::jsonb) AS q" // the parameter is given in any case
	if len(columns) > 0 {
		from = " CROSS JOIN jsonb_to_record($3::jsonb) AS q (" + strings.Join(columns, ", ") + ")"
	}
	return from + "\n\t\t\tWHERE " + strings.Join(conditions, "\n\t\t\t\tAND ")
}
