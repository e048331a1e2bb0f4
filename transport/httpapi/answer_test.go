package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// call is one request.
type call struct {
	who, method, path, body string
	header                  http.Header
}

// answer is what came back, read to the end.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// do sends a request and holds the answer against the contract.
func (w *world) do(c call) *answer {
	w.t.Helper()
	a := w.raw(c)
	if w.spec != nil {
		w.spec.hold(w.t, c.method, c.path, a)
	}
	return a
}

func (w *world) raw(c call) *answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), c.method, w.server.URL+c.path, strings.NewReader(c.body))
	require.NoError(w.t, err)
	if c.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key := w.key(c.who); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	maps.Copy(r.Header, c.header)
	res, err := w.server.Client().Do(r)
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, res.Body.Close()) }()
	body, err := readAnswer(res)
	require.NoError(w.t, err)
	return &answer{t: w.t, status: res.StatusCode, header: res.Header, body: body}
}

// readAnswer reads to the end, and of a stream, which has none, the first event.
func readAnswer(res *http.Response) ([]byte, error) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") || res.Request.Method == http.MethodHead {
		return io.ReadAll(res.Body)
	}
	var text []byte
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		text = append(text, line...)
		if err != nil || len(line) == 1 && bytes.Contains(text, []byte("data:")) {
			return text, err
		}
	}
}

func (w *world) get(who, path string) *answer {
	w.t.Helper()
	return w.do(call{who: who, method: "GET", path: path})
}

func (w *world) post(who, path, body string, headers ...string) *answer {
	w.t.Helper()
	return w.do(call{who: who, method: "POST", path: path, body: body, header: headersOf(headers...)})
}

// headersOf makes a header of names and values in turn.
func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// is demands a status and, for an error, its code.
func (a *answer) is(status int, code string) *answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s", a.body)
	if code != "" {
		require.Equal(a.t, code, a.text("code"), "%s", a.body)
	}
	return a
}

// json reads the answer.
func (a *answer) json() map[string]any {
	a.t.Helper()
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.UseNumber()
	require.NoError(a.t, decoder.Decode(&tree), "%s", a.body)
	return tree
}

// at follows a path such as "server.id" or "items.0.id"; nil if there is nothing.
func (a *answer) at(path string) any {
	a.t.Helper()
	var node any = a.json()
	for step := range strings.SplitSeq(path, ".") {
		switch n := node.(type) {
		case map[string]any:
			node = n[step]
		case []any:
			var i int
			_, err := fmt.Sscanf(step, "%d", &i)
			require.NoError(a.t, err)
			if i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}

// text is at, as text; empty if there is nothing.
func (a *answer) text(path string) string {
	a.t.Helper()
	if value := a.at(path); value != nil {
		return fmt.Sprint(value)
	}
	return ""
}
