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
