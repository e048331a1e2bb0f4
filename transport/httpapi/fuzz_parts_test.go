package httpapi

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"allocator/allocation"
	"allocator/identity"
)

// FuzzPageToken holds that a page token is good for its organization, list and filter alone and in one spelling, that
// what is none is refused, and that a made-up place behind which a page begins never reaches the database.
//
// Faults: F-H4.
func FuzzPageToken(f *testing.F) {
	const list, filter, id = "reservations", "state=held", "res_0123456789abcdef0123456789abcdef"
	caller := identity.Caller{Organization: "acme"}
	_, token := cut(firstPage(f, caller, list, filter), []string{id, "next"}, func(s string) string { return s })
	for _, seed := range []string{token, token + "\n", token + "=", token[:20], token + token, "", "\x00", "AAAA", "é", strings.Repeat("A", 4096)} {
		f.Add(seed, "acme", list, filter, int64(1))
	}
	f.Add(token, "rival", list, filter, int64(1<<62))
	f.Add(token, "acme", "servers", filter, int64(-1))
	f.Fuzz(func(t *testing.T, text, org, of, by string, size int64) {
		p, err := newPage(identity.Caller{Organization: identity.OrganizationID(org)}, of, by, size, text)
		if err != nil {
			return
		}
		require.Positive(t, p.limit)
		require.LessOrEqual(t, p.limit, maxPage)
		if text == "" {
			require.Empty(t, p.after)
			return
		}
		_, again := cut(page{limit: 1, bound: p.bound}, []string{p.after, ""}, func(s string) string { return s })
		require.Equal(t, text, again, "two texts for one place")
		if p.isID("res_") {
			require.Len(t, p.after, len(id))
		}
		if text == token {
			require.Equal(t, []string{"acme", list, filter}, []string{org, of, by})
		}
	})
}

func firstPage(f *testing.F, caller identity.Caller, list, filter string) page {
	f.Helper()
	p, err := newPage(caller, list, filter, 1, "")
	require.NoError(f, err)
	return p
}

// FuzzPrefer holds that a wish to wait is never below nothing nor above the limit, whatever is written, and that it is
// told exactly when it was understood.
//
// Faults: F-T5.
func FuzzPrefer(f *testing.F) {
	for _, seed := range []string{"wait=5", "wait=0", "wait=-1", "wait=9223372036854775808", "wait=999999999", `wait="3"`, "wait=1.5", "respond-async, wait=2", "wait=2;x=y", "wait = 2", "awaits=2", "wait=٣", "wait=1e3", "", "wait", "wait=2wait=3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, prefer string) {
		got := wait(prefer)
		require.GreaterOrEqual(t, got, time.Duration(0))
		require.LessOrEqual(t, got, allocation.MaxWait)
		if told := applied(prefer); told != nil {
			require.Equal(t, got, wait(*told), "what is told is what is done")
		} else {
			require.Zero(t, got)
		}
	})
}

// FuzzIfMatch holds that a tag is one version, any, or none, and never another's.
func FuzzIfMatch(f *testing.F) {
	for _, seed := range []string{"*", `"1"`, `W/"1"`, `"01"`, `"9223372036854775807"`, `"99999999999999999999"`, `"999999999999999999"`, `"1", "2"`, "1", `"-1"`, `"0"`, ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		switch n := version(tag); n {
		case anyVersion:
			require.Equal(t, "*", tag)
		case noVersion:
		default:
			require.Positive(t, n)
			require.Equal(t, `"`+strconv.FormatInt(n, 10)+`"`, tag)
		}
	})
}
