package httpapi

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"allocator/allocation"
	"allocator/transport/httpapi/strictjson"
)

// visiblePattern is what an Idempotency-Key is made of.
var visiblePattern = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

// checkHeaders holds the headers that the contract names. Those that have a code of their own answer with it.
func checkHeaders(c echo.Context, op *operation) error {
	header := c.Request().Header
	var faults []strictjson.Fault
	for _, p := range op.params {
		if p.in != "header" {
			continue
		}
		values := header.Values(p.name)
		switch {
		case p.name == "Idempotency-Key":
			if len(values) != 1 || !visiblePattern.MatchString(values[0]) {
				return newProblem("idempotency_key_invalid")
			}
		case p.name == "If-Match" && len(values) == 0:
			return newProblem("precondition_required")
		case p.required && len(values) == 0:
			faults = append(faults, missingParameter("header:"+p.name))
		case p.name == "Prefer" && len(values) > 1: // may come in several lines, which mean one list
			header.Set(p.name, strings.Join(values, ", "))
			values = header.Values(p.name)
			fallthrough
		case len(values) > 0:
			faults = append(faults, p.check("header:"+p.name, values)...)
		}
	}
	return refuseFaults(faults)
}

var waitPattern = regexp.MustCompile(`(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])`)

// wait reads how long the caller wants a contended request to be tried again. A preference that cannot be understood is
// none, as RFC 7240 says.
func wait(prefer string) time.Duration {
	m := waitPattern.FindStringSubmatch(prefer)
	if m == nil {
		return 0
	}
	seconds, _ := strconv.Atoi(m[1])
	return min(time.Duration(seconds)*time.Second, allocation.MaxWait)
}

// applied says in Preference-Applied which wait was granted; nil if none was asked for.
func applied(prefer string) *string {
	if !waitPattern.MatchString(prefer) {
		return nil
	}
	text := "wait=" + strconv.Itoa(int(wait(prefer)/time.Second))
	return &text
}

// anyVersion stands for If-Match: *, noVersion for a tag that no version ever had.
const (
	anyVersion int64 = 0
	noVersion  int64 = -1
)

var versionPattern = regexp.MustCompile(`^"([1-9][0-9]{0,17})"$`)

// version reads the version out of an If-Match. A tag of another form, a weak one included, matches nothing.
func version(ifMatch string) int64 {
	if ifMatch == "*" {
		return anyVersion
	}
	m := versionPattern.FindStringSubmatch(ifMatch)
	if m == nil {
		return noVersion
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	return n
}
