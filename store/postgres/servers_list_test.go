package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

func TestServersFilters(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	full, bare, none := fullServer("m-1"), bareServer("x_2"), noneServer("M%3")
	full.Name, full.Serial, none.Name, none.Serial, none.Model = "Web_01", "ABC123", "db-01", "abd\\124", "R640"
	_, err := b.service.CreateMany(t.Context(), by, []inventory.Server{full, bare, none})
	require.NoError(t, err)

	tests := map[string]struct {
		filter inventory.Filter
		want   []string
	}{
		"nothing asked":                        {inventory.Filter{}, []string{"m-1", "x_2", "M%3"}},
		"a site":                               {inventory.Filter{Sites: []string{"FSN1"}}, []string{"m-1"}},
		"one of two sites":                     {inventory.Filter{Sites: []string{"FSN1", "HEL1"}}, []string{"m-1", "x_2", "M%3"}},
		"a site in other letters":              {inventory.Filter{Sites: []string{"fsn1"}}, nil},
		"a rack":                               {inventory.Filter{Racks: []string{"A1", "A2"}}, []string{"m-1"}},
		"a state":                              {inventory.Filter{States: []inventory.State{inventory.StatePlanned}}, []string{"x_2", "M%3"}},
		"a model and a state":                  {inventory.Filter{Models: []string{"R640"}, States: []inventory.State{inventory.StatePlanned}}, []string{"M%3"}},
		"a name":                               {inventory.Filter{Names: []string{"db-01"}}, []string{"M%3"}},
		"a serial in other letters":            {inventory.Filter{Serials: []string{"abc123"}}, []string{"m-1"}},
		"a part of a serial is no serial":      {inventory.Filter{Serials: []string{"abc"}}, nil},
		"words in a name, case aside":          {inventory.Filter{Query: "WEB"}, []string{"m-1"}},
		"words in a model":                     {inventory.Filter{Query: "640"}, []string{"m-1", "M%3"}},
		"words in an external id":              {inventory.Filter{Query: "m-1"}, []string{"m-1"}},
		"a percent sign is a percent sign":     {inventory.Filter{Query: "%"}, []string{"M%3"}},
		"an underscore is an underscore":       {inventory.Filter{Query: "_"}, []string{"m-1", "x_2"}},
		"a backslash is a backslash":           {inventory.Filter{Query: `d\1`}, []string{"M%3"}},
		"a quote ends nothing":                 {inventory.Filter{Query: `' OR true --`}, nil},
		"words that are nowhere":               {inventory.Filter{Query: "nowhere"}, nil},
		"words and a site that exclude it":     {inventory.Filter{Query: "web", Sites: []string{"HEL1"}}, nil},
		"no more than so many":                 {inventory.Filter{Limit: 2}, []string{"m-1", "x_2"}},
		"an empty list of values asks nothing": {inventory.Filter{Sites: []string{}}, []string{"m-1", "x_2", "M%3"}},
	}
	for name, tt := range tests {
		list, err := b.service.List(t.Context(), "acme", tt.filter)
		require.NoError(t, err, name)
		var ids []string // in the order in which they were given
		for _, s := range list {
			ids = append(ids, s.ExternalID)
		}
		require.Equal(t, tt.want, ids, name)
	}
}

// Pages in the order of ids: whatever exists throughout is seen once, also while others are created.
func TestServersPages(t *testing.T) {
	t.Parallel()
	b := setupServers(t)
	var servers []inventory.Server
	for i := range 23 {
		servers = append(servers, bareServer(fmt.Sprintf("m-%02d", i)))
	}
	_, err := b.service.CreateMany(t.Context(), by, servers)
	require.NoError(t, err)

	seen := map[string]int{}
	filter := inventory.Filter{Limit: 5}
	for page := 0; ; page++ {
		list, err := b.service.List(t.Context(), "acme", filter)
		require.NoError(t, err)
		require.True(t, slices.IsSortedFunc(list, func(a, b inventory.Server) int { return strings.Compare(string(a.ID), string(b.ID)) }))
		for _, s := range list {
			seen[s.ExternalID]++
		}
		if len(list) < filter.Limit {
			break
		}
		filter.After = list[len(list)-1].ID
		_, err = b.service.Create(t.Context(), by, bareServer(fmt.Sprintf("late-%d", page)))
		require.NoError(t, err)
		require.Less(t, page, 50, "each page makes one more and shows five, so the list must end")
	}
	for _, s := range servers {
		require.Equal(t, 1, seen[s.ExternalID], s.ExternalID)
	}

	_, err = b.service.List(t.Context(), "acme", inventory.Filter{After: "somewhere"})
	require.ErrorIs(t, err, inventory.ErrNotFound)
}
