package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// stocked is a service that has so many servers, in pages as large as they are asked for.
func stocked(t *testing.T, servers int) map[string]string {
	t.Helper()
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("page_size"))
		from, _ := strconv.Atoi(r.URL.Query().Get("page_token"))
		page := client.ServerList{Items: []client.Server{}}
		for i := from; i < min(from+size, servers); i++ {
			page.Items = append(page.Items, client.Server{ID: fmt.Sprintf("srv_%d", i), Name: "one", Site: "FSN1", State: "ready"})
		}
		if from+size < servers {
			page.NextPageToken = strconv.Itoa(from + size)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(door.Close)
	return map[string]string{"ALLOCATOR_URL": door.URL, "ALLOCATOR_API_KEY": "alk_x"}
}

func TestAListOfServersSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		servers int
		args    []string
		lines   int
		says    string
	}{
		"more than the limit":                    {51, nil, 51, "50 shown, there are more: --limit N, 0 for all\n"},
		"exactly the limit":                      {50, nil, 51, ""},
		"less than the limit":                    {3, nil, 4, ""},
		"the limit ends within the last page":    {700, []string{"--limit", "600"}, 601, "600 shown, there are more: --limit N, 0 for all\n"},
		"all of them":                            {700, []string{"--limit", "0"}, 701, ""},
		"none":                                   {0, nil, 0, "no server matches\n"},
		"none, for a program, which gets a list": {0, []string{"--json"}, 3, "no server matches\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got := inProcess(t, stocked(t, c.servers), append([]string{"servers", "list"}, c.args...)...)
			require.Equal(t, exitDone, got.code, got.stderr)
			require.Equal(t, c.says, got.stderr)
			require.Equal(t, c.lines, strings.Count(got.stdout, "\n"), got.stdout)
		})
	}
}

func TestCapacityIsATable(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 3)
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"at":"2026-03-14T10:00:00Z","total":{"free":2,"held":0,"bound":1,"out":0,"servers":3},"items":[
			{"site":"FSN1","model":"","counts":{"free":2,"held":0,"bound":1,"out":0,"servers":3}}, {"site":"HEL1","counts":{"free":0}}]}`))
	}))
	t.Cleanup(door.Close)
	env := map[string]string{"ALLOCATOR_URL": door.URL, "ALLOCATOR_API_KEY": "alk_x"}
	got := inProcess(t, env, "servers", "capacity")
	require.Equal(t, exitDone, got.code, got.stderr)
	require.Equal(t, "/v1/capacity?group_by=site%2Cmodel", <-asked)
	var lines [][]string
	for line := range strings.Lines(got.stdout) {
		lines = append(lines, strings.Fields(line))
	}
	require.Equal(t, [][]string{
		{"SITE", "MODEL", "FREE", "HELD", "BOUND", "OUT", "ALL"},
		{"FSN1", "-", "2", "0", "1", "0", "3"},
		{"HEL1", "-", "0", "-", "-", "-", "-"},
		{"all", "-", "2", "0", "1", "0", "3"},
	}, lines)
	require.Equal(t, exitDone, inProcess(t, env, "servers", "capacity", "--by", "site").code)
	require.Equal(t, "/v1/capacity?group_by=site", <-asked)
	var seen client.Capacity
	require.NoError(t, json.Unmarshal([]byte(inProcess(t, env, "servers", "capacity", "--json").stdout), &seen))
	require.Equal(t, 1, *seen.Total.Bound)
	require.Nil(t, seen.Items[1].Counts.Held)
}
