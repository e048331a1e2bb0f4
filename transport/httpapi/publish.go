package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// publish makes the document that callers get: the contract, with the answers of the problem table in the place of each
// default response, and without the hints for the code generator. So statuses, codes and sentences are written in one
// place, and the document cannot promise others.
func publish(document *openapi3.T, operations map[string]*operation) ([]byte, error) {
	text, err := document.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("the contract cannot be written: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("the contract cannot be read again: %w", err)
	}
	for _, op := range operations {
		addProblems(at(tree, "paths", op.path, strings.ToLower(op.method), "responses"), op)
	}
	dropHints(tree)
	return json.Marshal(tree)
}

// at follows names through objects. The contract has been read and compiled before, so they are there.
func at(tree map[string]any, names ...string) map[string]any {
	for _, name := range names {
		tree, _ = tree[name].(map[string]any)
	}
	return tree
}

// addProblems describes every error that an operation can answer with, by status.
func addProblems(responses map[string]any, op *operation) {
	delete(responses, "default")
	for status, codes := range op.problemsByStatus() {
		lines := []string{}
		for _, code := range codes {
			lines = append(lines, "`"+code+"`: "+problemTypes[code].sentence)
		}
		responses[strconv.Itoa(status)] = map[string]any{
			"description": strings.Join(lines, "\n\n"),
			"content": map[string]any{"application/problem+json": map[string]any{
				"schema": map[string]any{"$ref": "#/components/schemas/Problem"},
			}},
		}
	}
}

// problemsByStatus lists the codes that the operation can answer with: its own, and those that come with a key, a body
// or an id.
func (op *operation) problemsByStatus() map[int][]string {
	codes := append([]string{"invalid_request", "unavailable", "internal"}, op.problems...)
	if !op.open {
		codes = append(codes, "unauthenticated", "missing_scope")
	}
	if op.body != nil {
		codes = append(codes, "unsupported_media_type")
	}
	if slices.ContainsFunc(op.params, func(p parameter) bool { return p.in == "path" }) {
		codes = append(codes, "not_found")
	}
	codes = append(codes, "too_large")
	byStatus := map[int][]string{}
	for _, code := range codes {
		status := problemTypes[code].status
		byStatus[status] = append(byStatus[status], code)
	}
	return byStatus
}

// dropHints removes what only the code generator needs.
func dropHints(node any) {
	switch n := node.(type) {
	case map[string]any:
		for key, child := range n {
			if strings.HasPrefix(key, "x-go-") || key == "x-omitempty" {
				delete(n, key)
				continue
			}
			dropHints(child)
		}
	case []any:
		for _, child := range n {
			dropHints(child)
		}
	}
}
