package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is changed through the door, and behind its back, is counted in the very next answer; nobody sees the servers of
// another organization, and a checkout sees what is free alone.
//
// Requirements: R61.
func TestCapacityIsWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	none := w.get("acme:operator", "/v1/capacity").is(200, "")
	require.Equal(t, numbers(map[string]int{"free": 0, "held": 0, "bound": 0, "out": 0, "servers": 0}), none.at("total"))
	require.Empty(t, none.at("items"))
	w.addServer(1024)
	sold, held := w.bound(), w.held()
	counts := func(free, held, bound, out int) map[string]any {
		return numbers(map[string]int{"free": free, "held": held, "bound": bound, "out": out, "servers": free + held + bound + out})
	}
	total := func() any { return w.get("acme:operator", "/v1/capacity").is(200, "").at("total") }
	require.Equal(t, counts(1, 1, 1, 0), total())

	w.lapse(held.text("id"))
	require.Equal(t, counts(2, 0, 1, 0), total())
	w.post("acme:all", "/v1/bindings/"+sold.text("id")+"/end", `{"reason":"terminated"}`).is(200, "")
	require.Equal(t, counts(2, 0, 0, 1), total(), "a server that comes back is not sold again before somebody looked at it")
	w.exec(`UPDATE servers SET state = 'maintenance', state_reason = 'fan' WHERE organization_id = 'acme' AND id = ANY (SELECT id FROM servers WHERE state = 'ready' LIMIT 1)`)
	w.exec(`UPDATE servers SET model = 'AX41' WHERE organization_id = 'acme' AND state = 'ready'`)
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, site, model, state) VALUES ('acme', uuid_v7(), 'test', 'x', 'HEL1', 'AX41', 'ready')`)

	all := w.get("acme:operator", "/v1/capacity?group_by=site,model").is(200, "")
	require.Equal(t, counts(2, 0, 0, 2), all.at("total"))
	require.Equal(t, []any{
		map[string]any{"site": "FSN1", "model": "", "counts": counts(0, 0, 0, 2)},
		map[string]any{"site": "FSN1", "model": "AX41", "counts": counts(1, 0, 0, 0)},
		map[string]any{"site": "HEL1", "model": "AX41", "counts": counts(1, 0, 0, 0)},
	}, all.at("items"))
	require.Equal(t, []any{
		map[string]any{"model": "", "counts": counts(0, 0, 0, 2)}, map[string]any{"model": "AX41", "counts": counts(2, 0, 0, 0)},
	}, w.get("acme:operator", "/v1/capacity?group_by=model").is(200, "").at("items"))
	w.get("acme:operator", "/v1/capacity?group_by=rack").is(400, "invalid_request")

	seen := w.get("acme:checkout", "/v1/capacity?group_by=site").is(200, "")
	require.Equal(t, numbers(map[string]int{"free": 2}), seen.at("total"))
	require.Equal(t, []any{
		map[string]any{"site": "FSN1", "counts": numbers(map[string]int{"free": 1})}, map[string]any{"site": "HEL1", "counts": numbers(map[string]int{"free": 1})},
	}, seen.at("items"))
	require.Equal(t, all.header.Get("ETag"), w.get("acme:operator", "/v1/capacity").is(200, "").header.Get("ETag"))
	require.NotEqual(t, all.header.Get("ETag"), none.header.Get("ETag"))
	require.Equal(t, none.at("total"), w.get("rival:operator", "/v1/capacity").is(200, "").at("total"))
}

// numbers are as they are read from an answer.
func numbers(of map[string]int) map[string]any {
	read := map[string]any{}
	for name, n := range of {
		read[name] = json.Number(fmt.Sprint(n))
	}
	return read
}
