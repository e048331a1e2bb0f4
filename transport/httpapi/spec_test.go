package httpapi_test

import (
	"encoding/json"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// contract is the served document, as a caller reads it.
type contract struct {
	document *openapi3.T
	routes   []route
}

// route is one operation of it.
type route struct {
	id, method, path string
	scopes           []string
	op               *openapi3.Operation
	match            *regexp.Regexp
}

func loadSpec(tb testing.TB, text []byte) *contract {
	tb.Helper()
	document, err := openapi3.NewLoader().LoadFromData(text)
	require.NoError(tb, err)
	c := &contract{document: document}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			r := route{id: op.OperationID, method: method, path: path, op: op}
			for _, scope := range op.Extensions["x-scopes"].([]any) {
				r.scopes = append(r.scopes, scope.(string))
			}
			r.match = regexp.MustCompile("^" + regexp.MustCompile(`\{[a-z_]+\}`).ReplaceAllString(path, "[^/]+") + "$")
			c.routes = append(c.routes, r)
		}
	}
	sort.Slice(c.routes, func(i, j int) bool { return c.routes[i].id < c.routes[j].id })
	return c
}

// of finds the operation that a request meets; nil for an address that is none.
func (c *contract) of(method, path string) *route {
	path, _, _ = strings.Cut(path, "?")
	for i := range c.routes {
		if c.routes[i].method == method && c.routes[i].match.MatchString(path) {
			return &c.routes[i]
		}
	}
	return nil
}

// holdSchema demands that a text is what a schema describes.
func (c *contract) holdSchema(tb testing.TB, schema *openapi3.Schema, text []byte) (value any) {
	tb.Helper()
	require.NoError(tb, json.Unmarshal(text, &value))
	require.NoError(tb, c.document.ValidateSchemaJSON(schema, value, openapi3.EnableFormatValidation()), "%s", text)
	return value
}

// hold demands of an answer what the document promises: status, media type, headers and body. A refusal must be one of
// the codes that the operation lists.
func (c *contract) hold(tb testing.TB, method, path string, a *answer) {
	tb.Helper()
	r := c.of(method, path)
	if r == nil {
		return
	}
	response := r.op.Responses.Value(strconv.Itoa(a.status))
	require.NotNil(tb, response, "%s %s answered %d, which the document does not list: %s", method, path, a.status, a.body)
	for name, header := range response.Value.Headers {
		if header.Value.Required {
			require.NotEmpty(tb, a.header.Get(name), "%s %s: header %s", method, path, name)
		}
	}
	if len(response.Value.Content) == 0 {
		require.Empty(tb, a.body)
		return
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	media := response.Value.Content[kind]
	require.NotNil(tb, media, "%s %s answered %s", method, path, kind)
	if kind == "text/html" || kind == "text/event-stream" {
		return
	}
	if kind == "application/x-ndjson" {
		for line := range strings.Lines(string(a.body)) {
			c.holdSchema(tb, media.Schema.Value, []byte(line))
		}
		return
	}
	value := c.holdSchema(tb, media.Schema.Value, a.body)
	if kind == "application/problem+json" {
		require.Contains(tb, *response.Value.Description, "`"+value.(map[string]any)["code"].(string)+"`", "%s %s", method, path)
	}
}
