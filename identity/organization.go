package identity

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// OrganizationID is a short name in lower case, such as "demo". It is chosen once and never changes.
type OrganizationID string

var organizationIDPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Valid tells whether the id could belong to an organization.
func (id OrganizationID) Valid() bool { return organizationIDPattern.MatchString(string(id)) }

// Organization is a hosting company that owns servers, keys and switches. It is never deleted: decisions and the audit
// trail go on naming it, and nobody else may come to own its id.
type Organization struct {
	ID          OrganizationID
	Name        string
	HoldSeconds int  // how long a new or renewed reservation holds its server
	HoldLimit   int  // how many open holds one customer_ref may have
	Closing     bool // no new reservations; everything that exists goes on
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Version     int64 // grows by one with every change of the record
}

// HoldTime is HoldSeconds as a duration.
func (o Organization) HoldTime() time.Duration { return time.Duration(o.HoldSeconds) * time.Second }

// The limits of an organization's settings.
const (
	DefaultHoldTime  = 15 * time.Minute
	MinHoldTime      = time.Minute
	MaxHoldTime      = 24 * time.Hour
	DefaultHoldLimit = 10
	MaxHoldLimit     = 10_000

	maxOrganizationName = 200 // characters
)

// NewOrganization is what Organizations.Create is asked for. Nil settings get the defaults; an empty ID is derived from
// the name.
type NewOrganization struct {
	ID          OrganizationID
	Name        string
	HoldSeconds *int
	HoldLimit   *int
}

// OrganizationPatch is what Organizations.Update is asked for: nil leaves a setting as it is.
type OrganizationPatch struct {
	Name        *string
	HoldSeconds *int
	HoldLimit   *int
	Closing     *bool
}

// Apply gives the organization as the patch makes it, and what changed, for the audit trail. Nothing changed: empty.
func (p OrganizationPatch) Apply(o Organization) (Organization, map[string]string) {
	changed := map[string]string{}
	assign(changed, "name", &o.Name, p.Name, func(s string) string { return s })
	assign(changed, "hold_seconds", &o.HoldSeconds, p.HoldSeconds, strconv.Itoa)
	assign(changed, "hold_limit", &o.HoldLimit, p.HoldLimit, strconv.Itoa)
	assign(changed, "closing", &o.Closing, p.Closing, strconv.FormatBool)
	return o, changed
}

func assign[T comparable](changed map[string]string, name string, field, value *T, text func(T) string) {
	if value != nil && *value != *field {
		*field = *value
		changed[name] = text(*value)
	}
}

// slug derives an id from a name: ASCII letters and digits stay, each run of anything else becomes one dash. It is
// empty if nothing is left.
func slug(name string) OrganizationID {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	id := strings.Join(words, "-")
	return OrganizationID(strings.TrimRight(id[:min(len(id), 63)], "-"))
}

func checkOrganizationName(name string) *FieldError {
	return checkText("/name", name, maxOrganizationName)
}

func checkHoldSeconds(seconds *int, least time.Duration) *FieldError {
	return checkRange("/hold_seconds", seconds, int(least.Seconds()), int(MaxHoldTime.Seconds()))
}

func checkHoldLimit(limit *int) *FieldError { return checkRange("/hold_limit", limit, 1, MaxHoldLimit) }

func checkRange(pointer string, n *int, least, most int) *FieldError {
	if n == nil || (*n >= least && *n <= most) {
		return nil
	}
	return &FieldError{pointer, CodeOutOfRange, fmt.Sprintf("must lie between %d and %d", least, most)}
}
