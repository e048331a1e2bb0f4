package postgres

import (
	"fmt"
	"strings"

	"allocator/identity"
)

// where builds the condition of a list: alternatives within a field, all fields together, always inside one
// organization, and only ever with parameters.
type where struct {
	conditions []string
	args       []any
}

func whereOrganization(alias string, org identity.OrganizationID) *where {
	return &where{conditions: []string{alias + ".organization_id = $1"}, args: []any{org}}
}

// and adds a condition; %s in it stands for the parameter.
func (w *where) and(condition string, arg any) {
	w.args = append(w.args, arg)
	w.conditions = append(w.conditions, fmt.Sprintf(condition, fmt.Sprintf("$%d", len(w.args))))
}

// oneOf adds that a text column has one of the values; no values ask for nothing.
func oneOf[T ~string](w *where, column string, values []T) {
	if len(values) > 0 {
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = string(v)
		}
		w.and(column+" = ANY (%s::text[])", texts)
	}
}

// oneOfIDs adds that an id column has one of the values; ids of another form match nothing.
func oneOfIDs[T ~string](w *where, column, prefix string, values []T) {
	if len(values) == 0 {
		return
	}
	ids := [][16]byte{}
	for _, v := range values {
		if id, known := parseID(prefix, string(v)); known {
			ids = append(ids, id)
		}
	}
	w.and(column+" = ANY (%s::uuid[])", ids)
}

// olderThan continues a list that goes from the newest to the oldest; ids sort by time.
func (w *where) olderThan(column, prefix, after string) {
	if id, known := parseID(prefix, after); known {
		w.and(column+" < %s", id)
	}
}

// newestFirst ends the statement.
func (w *where) newestFirst(column string, limit int) string {
	w.args = append(w.args, limit)
	return fmt.Sprintf(" WHERE %s ORDER BY %s DESC LIMIT $%d", strings.Join(w.conditions, " AND "), column, len(w.args))
}
