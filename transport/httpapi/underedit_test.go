package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notesOf reads the notes of the servers in a list, by id.
func notesOf(list any, id string) map[string][]any {
	notes := map[string][]any{}
	for _, one := range list.([]any) {
		row := one.(map[string]any)
		server, _ := row[id].(string)
		if server == "" {
			server = row["server"].(map[string]any)["id"].(string)
		}
		noted, _ := row["notes"].([]any)
		notes[server] = noted
	}
	return notes
}

// A server whose record, rack or chassis is leased is noted as under edit, beside its reasons. It is ranked and sold as if
// nobody edited it, and what is not leased any more is not noted.
func TestUnderEditIsANoteAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	add := func(more string) string {
		return w.post("acme:operator", "/v1/servers", fmt.Sprintf(
			`{"name":"s%d","site":"FSN1","state":"ready","memory":{"mib":%d}%s}`, w.next(), 1000+w.next(), more)).is(201, "").text("id")
	}
	record, rack := add(`,"rack":"A1","position":"1"`), add(`,"rack":"A12","position":"17"`)
	place, neighbour := add(`,"rack":"A13","position":"5"`), add(`,"rack":"A13","position":"6"`)
	node, otherNode := add(`,"attributes":{"chassis":"7","node":"node-3"}`), add(`,"attributes":{"chassis":"7","node":"node-4"}`)
	lapsed := add(`,"rack":"B1"`)
	evaluate := func() *answer {
		return w.post("acme:all", "/v1/evaluations", `{"key":"k","requirements":{"memory":{"mib_min":1}}}`).is(200, "")
	}
	before := evaluate()
	w.lease("acme:operator", "PUT", "rack:B1", "", minute).is(200, "")
	w.expire()
	for _, key := range []string{"server:" + record, "rack:A12", "rack:A13?part=u5", "chassis:7?part=node-3", "anything:else"} {
		w.do(call{who: "acme:operator", method: "PUT", path: "/v1/leases/" + key, body: minute}).is(200, "")
	}

	after := evaluate()
	notes := notesOf(after.at("ranked"), "server_id")
	for _, id := range []string{record, rack, place, node} {
		require.Len(t, notes[id], 1, id)
		require.Equal(t, "under_edit", notes[id][0].(map[string]any)["code"])
	}
	for _, id := range []string{neighbour, otherNode, lapsed} {
		require.Empty(t, notes[id], id)
	}
	require.Len(t, notes, 7)
	for i := range 7 {
		path := fmt.Sprintf("ranked.%d.server.id", i)
		require.Equal(t, before.text(path), after.text(path), "the rank is the same")
	}
	require.Equal(t, before.at("counts"), after.at("counts"))

	// Sold although it is under edit, and noted where it is explained; what it is about is read beside the request.
	var decision string
	sold := 0
	require.Eventually(t, func() bool {
		r := w.reserve("acme:all", fmt.Sprint("u", w.next()), `"requirements":{"servers":["`+record+`"]}`).is(201, "")
		sold++
		decision = r.text("decision_id")
		noted := len(notesOf(w.get("acme:all", "/v1/decisions/"+decision).at("walked"), "server_id")[record]) == 1
		w.post("acme:all", "/v1/reservations/"+r.text("id")+"/cancel", `{"reason_code":"staff","text":"again"}`).is(200, "")
		return noted
	}, patience, 10*time.Millisecond)
	require.Positive(t, sold)
	frozen := notesOf(w.get("acme:all", "/v1/decisions/"+decision+"/candidates").at("items"), "server_id")
	require.Len(t, frozen[rack], 1, "rejected, and noted")
	require.Empty(t, frozen[neighbour])
	w.expire()
	require.Equal(t, frozen, notesOf(w.get("acme:all", "/v1/decisions/"+decision+"/candidates").at("items"), "server_id"), "it is frozen")
	require.Empty(t, notesOf(evaluate().at("ranked"), "server_id")[record])
}
