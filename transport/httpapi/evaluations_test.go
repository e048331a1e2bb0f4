package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/client"
)

// lines asks for an evaluation in full.
func (w *world) lines(who, wish string) (raw []string, lines []client.EvaluationLine) {
	w.t.Helper()
	a := w.post(who, "/v1/evaluations", wish, "Accept", "application/x-ndjson").is(200, "")
	require.Equal(w.t, "application/x-ndjson", a.header.Get("Content-Type"))
	require.Equal(w.t, "no-store", a.header.Get("Cache-Control"))
	for line := range strings.Lines(string(a.body)) {
		var one client.EvaluationLine
		require.NoError(w.t, json.Unmarshal([]byte(line), &one))
		raw, lines = append(raw, strings.TrimSpace(line)), append(lines, one)
	}
	return raw, lines
}

// The list in full has every server once, each as the JSON form shows it, with the same summary, and says at its end how
// many there were. A checkout gets counts alone, another organization its own servers, and nobody gets a list while the
// switch is off.
//
// Requirements: R33, R36.
func TestEvaluationInLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 6 {
		w.post("acme:operator", "/v1/servers", fmt.Sprintf(
			`{"name":"s%d <&> \"ü\"","site":"FSN1","state":"ready","rack":"A12","position":"%d","memory":{"mib":%d}}`, i, i+1, 1000*(i+1))).is(201, "")
	}
	w.addServer(5000)
	w.lease("acme:operator", "PUT", "rack:A12", "?part=u1", minute).is(200, "")
	w.lease("acme:operator", "PUT", "rack:A12", "?part=u5", minute).is(200, "")
	w.post("acme:operator", "/v1/servers", `{"name":"h","site":"HEL1","state":"maintenance"}`).is(201, "")
	wish := `{"key":"k","requirements":{"memory":{"mib_min":3500},"sites":["FSN1"]}}`

	whole := w.post("acme:support", "/v1/evaluations", wish).is(200, "")
	require.Nil(t, whole.at("left_out"))
	raw, lines := w.lines("acme:support", wish)
	require.Len(t, lines, 1+8+1)
	var ranked, rejected []string
	for _, line := range raw[1:9] {
		text, isRanked := strings.CutPrefix(line, `{"ranked":`)
		if isRanked {
			ranked = append(ranked, strings.TrimSuffix(text, "}"))
			continue
		}
		text, isRejected := strings.CutPrefix(line, `{"rejected":`)
		require.True(t, isRejected, line)
		rejected = append(rejected, strings.TrimSuffix(text, "}"))
	}
	asIn := func(list string, got []string) {
		t.Helper()
		for i, want := range whole.at(list).([]any) {
			text, err := json.Marshal(want)
			require.NoError(t, err)
			require.JSONEq(t, string(text), got[i])
		}
		require.Len(t, got, len(whole.at(list).([]any)))
	}
	asIn("ranked", ranked)
	asIn("rejected", rejected)
	require.Len(t, ranked, 4)
	require.Equal(t, &client.EvaluationEnd{Ranked: 4, Rejected: 4}, lines[9].Complete)
	var summary client.Evaluation
	require.NoError(t, json.Unmarshal(whole.body, &summary))
	summary.Ranked, summary.Rejected, summary.At = nil, nil, lines[0].Summary.At
	require.Equal(t, summary, *lines[0].Summary)
	require.Equal(t, 2, strings.Count(string(whole.body), "under_edit"))
	require.Equal(t, 2, strings.Count(strings.Join(raw, ""), "under_edit"))

	raw, lines = w.lines("acme:checkout", wish)
	require.Len(t, lines, 2)
	require.NotContains(t, raw[0], "srv_")
	require.Equal(t, "Fitting and free at this instant: 4 of 8.", lines[0].Summary.Text)
	require.Equal(t, &client.EvaluationEnd{}, lines[1].Complete)
	_, lines = w.lines("rival:support", wish)
	require.Len(t, lines, 2)
	require.Equal(t, client.CauseInventoryEmpty, lines[0].Summary.Cause)
	w.turn("acme", false)
	w.post("acme:support", "/v1/evaluations", wish, "Accept", "application/x-ndjson").is(403, "feature_disabled")
}

// Lines are for those who would rather have them.
func TestWhoGetsLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for accept, kind := range map[string]string{
		"":                     "application/json",
		"*/*":                  "application/json",
		"application/*":        "application/json",
		"application/json":     "application/json",
		"text/html":            "application/json",
		"application/x-ndjson": "application/x-ndjson",
		"Application/X-NDJSON; q=0.3, application/json;q=0.2": "application/x-ndjson",
		"application/x-ndjson, */*":                           "application/x-ndjson",
		"application/json, application/x-ndjson":              "application/json",
		"application/x-ndjson;q=0":                            "application/json",
		"application/x-ndjson;q=0.5, application/json":        "application/json",
	} {
		a := w.post("acme:support", "/v1/evaluations", `{"requirements":{}}`, "Accept", accept).is(200, "")
		require.Equal(t, kind, a.header.Get("Content-Type"), accept)
	}
}

// What the JSON form leaves out it counts, and says how to get it.
func TestEvaluationSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`INSERT INTO servers (organization_id, id, source, external_id, site, state, memory_mib)
		SELECT 'acme', uuid_v7(), 'test', n::text, 'FSN1', 'ready', CASE WHEN n <= 503 THEN 2048 ELSE 1024 END FROM generate_series(1, 2510) n`)
	a := w.post("acme:support", "/v1/evaluations", `{"requirements":{"memory":{"mib_min":2048}}}`).is(200, "")
	require.Len(t, a.at("ranked"), 500)
	require.Len(t, a.at("rejected"), 2000)
	require.Equal(t, "3", a.text("left_out.ranked"))
	require.Equal(t, "7", a.text("left_out.rejected"))
	require.Contains(t, a.text("left_out.text"), "application/x-ndjson")
	_, lines := w.lines("acme:support", `{"requirements":{"memory":{"mib_min":2048}}}`)
	require.Equal(t, &client.EvaluationEnd{Ranked: 503, Rejected: 2007}, lines[len(lines)-1].Complete)
	require.Empty(t, w.post("acme:checkout", "/v1/evaluations", `{"requirements":{}}`).is(200, "").at("left_out"))
}
