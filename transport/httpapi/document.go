package httpapi

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"allocator/identity"
	"allocator/transport/httpapi/strictjson"
)

//go:embed openapi.yaml
var contract []byte

// scopeOpen in x-scopes says that an operation needs no key. It is written out, so that a forgotten scope is a fault
// and not an open door.
const scopeOpen = "open"

// operation is what the contract says about one route, compiled.
type operation struct {
	id       string
	method   string
	path     string // as in the contract, "/v1/servers/{server_id}"
	open     bool
	scopes   []identity.Scope // one of them is enough
	problems []string         // codes beyond those that every operation can answer with
	params   []parameter
	body     *strictjson.Schema // nil: takes no body
	needBody bool
}

// parameter is one parameter of a route.
type parameter struct {
	name     string
	in       string // "path", "query", "header"
	required bool
	many     bool // may be repeated
	chosen   bool // in a path: the caller's own word for something, and not an id that somebody was given
	schema   *strictjson.Schema
	kind     strictjson.Kind // of one value
}

// loadContract reads the contract and compiles its operations, by operationId. It refuses an operation without scopes
// and a schema that the checks would not hold, so that neither can be deployed.
func loadContract() (*openapi3.T, map[string]*operation, error) {
	document, err := openapi3.NewLoader().LoadFromData(contract)
	if err != nil {
		return nil, nil, fmt.Errorf("openapi.yaml cannot be read: %w", err)
	}
	operations := map[string]*operation{}
	for path, item := range document.Paths.Map() {
		for method, source := range item.Operations() {
			op, err := compileOperation(method, path, item, source)
			if err != nil {
				return nil, nil, fmt.Errorf("%s %s in openapi.yaml: %w", method, path, err)
			}
			operations[op.id] = op
		}
	}
	return document, operations, nil
}

func compileOperation(method, path string, item *openapi3.PathItem, source *openapi3.Operation) (*operation, error) {
	op := &operation{id: source.OperationID, method: method, path: path, problems: texts(source.Extensions["x-problems"])}
	if err := op.compileScopes(texts(source.Extensions["x-scopes"])); err != nil {
		return nil, err
	}
	for _, ref := range slices.Concat(item.Parameters, source.Parameters) {
		p, err := compileParameter(ref.Value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", ref.Value.Name, err)
		}
		op.params = append(op.params, p)
	}
	for _, code := range op.problems {
		if problemTypes[code] == nil {
			return nil, fmt.Errorf("there is no problem %q", code)
		}
	}
	return op, op.compileBody(source)
}

func (op *operation) compileScopes(names []string) error {
	if slices.Equal(names, []string{scopeOpen}) {
		op.open = true
		return nil
	}
	for _, name := range names {
		scope := identity.Scope(name)
		if !scope.Valid() {
			return fmt.Errorf("x-scopes names %q, which is no scope", name)
		}
		op.scopes = append(op.scopes, scope)
	}
	if len(op.scopes) == 0 {
		return fmt.Errorf("x-scopes is missing: say who may call it")
	}
	return nil
}

func compileParameter(source *openapi3.Parameter) (parameter, error) {
	p := parameter{name: source.Name, in: source.In, required: source.Required}
	p.chosen, _ = source.Extensions["x-chosen"].(bool)
	one := source.Schema
	if one.Value.Type.Is("array") {
		p.many, one = true, one.Value.Items
	}
	switch {
	case one.Value.Type.Is("integer"):
		p.kind = strictjson.Number
	case one.Value.Type.Is("boolean"):
		p.kind = strictjson.Bool
	default:
		p.kind = strictjson.Text
	}
	var err error
	p.schema, err = strictjson.Compile(source.Schema)
	return p, err
}

func (op *operation) compileBody(source *openapi3.Operation) error {
	if source.RequestBody == nil {
		return nil
	}
	op.needBody = source.RequestBody.Value.Required
	media := source.RequestBody.Value.Content["application/json"]
	if media == nil || len(source.RequestBody.Value.Content) != 1 {
		return fmt.Errorf("a body is application/json and nothing else")
	}
	var err error
	op.body, err = strictjson.Compile(media.Schema)
	return err
}

// echoPath is the path as echo writes it, "/v1/servers/:server_id".
func (op *operation) echoPath() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(op.path)
}

// texts reads a list of texts out of an extension.
func texts(extension any) []string {
	list, _ := extension.([]any)
	var out []string
	for _, one := range list {
		if text, ok := one.(string); ok {
			out = append(out, text)
		}
	}
	return out
}
