package postgrestest

import (
	"net/url"
	"strings"
	"testing"
)

// With adds settings to a connection string, such as the search path of its sessions.
func With(tb testing.TB, connection string, settings map[string]string) string {
	tb.Helper()
	u, err := url.Parse(connection)
	if err != nil {
		tb.Fatalf("settings for a connection string: %v", err)
	}
	query := u.Query()
	for name, value := range settings {
		query.Set(name, value)
	}
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // PostgreSQL's own clients know no other blank
	return u.String()
}
