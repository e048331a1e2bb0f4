package postgres

import (
	"strings"

	"allocator/inventory"
)

// maxChangedDetails leaves room for one more detail in an entry of the audit trail, which has at most 16.
const maxChangedDetails = 15

// changedDetail tells of each field what it was and what it became; of more fields than an entry holds, the names.
func changedDetail(changed []inventory.Changed) map[string]string {
	detail := map[string]string{}
	var more []string
	for _, c := range changed {
		if len(detail) < maxChangedDetails {
			detail[c.Field] = c.From + " → " + c.To
		} else {
			more = append(more, c.Field)
		}
	}
	if len(more) > 0 {
		detail["more"] = strings.Join(more, ", ")
	}
	return detail
}
