package httpapi

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"allocator/transport/httpapi/strictjson"
)

// checkPath answers an id that cannot be one like an id that nobody has, and a word of the caller's own that cannot be one
// like any other fault of a request.
func checkPath(c echo.Context, op *operation) error {
	for _, p := range op.params {
		if p.in != "path" {
			continue
		}
		text := c.Param(p.name)
		if c.Request().URL.RawPath != "" {
			unescaped, err := url.PathUnescape(text)
			if err != nil {
				return newProblem("not_found")
			}
			text = unescaped
		}
		switch faults := p.check("path:"+p.name, []string{text}); {
		case len(faults) > 0 && p.chosen:
			return refuseFaults(faults)
		case len(faults) > 0:
			return newProblem("not_found")
		}
		if loggedIDs[p.name] {
			note(c.Request().Context(), p.name, text)
		}
	}
	return nil
}

// loggedIDs are the ids in paths that stand in the log.
var loggedIDs = map[string]bool{
	"reservation_id": true, "order_id": true, "decision_id": true, "binding_id": true, "server_id": true, "key_id": true,
}

// checkQuery holds the query against the contract: no unknown parameter, none repeated that is single, none missing, each
// well formed.
func checkQuery(c echo.Context, op *operation) error {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return invalid(strictjson.Fault{
			Pointer: "query:", Code: strictjson.CodeMalformed, Detail: "The query is not encoded as a URL demands.",
		})
	}
	var faults []strictjson.Fault
	for name, values := range query {
		i := slices.IndexFunc(op.params, func(p parameter) bool { return p.in == "query" && p.name == name })
		if i < 0 {
			faults = append(faults, strictjson.Fault{
				Pointer: "query:" + shortened(name), Code: strictjson.CodeUnknownField, Detail: "There is no such parameter.",
			})
			continue
		}
		faults = append(faults, op.params[i].check("query:"+name, values)...)
	}
	for _, p := range op.params {
		if p.in == "query" && p.required && !query.Has(p.name) {
			faults = append(faults, missingParameter("query:"+p.name))
		}
	}
	return refuseFaults(faults)
}

func missingParameter(pointer string) strictjson.Fault {
	return strictjson.Fault{Pointer: pointer, Code: strictjson.CodeRequired, Detail: "It is missing."}
}

// check holds the values of one parameter against the contract.
func (p *parameter) check(pointer string, values []string) []strictjson.Fault {
	if len(values) > 1 && !p.many {
		return []strictjson.Fault{{Pointer: pointer, Code: strictjson.CodeRepeatedField, Detail: "It is given more than once."}}
	}
	faults := p.faults(values...)
	for i := range faults {
		faults[i].Pointer = pointer
	}
	return faults
}

// faults reads the texts as the values that the contract means and checks those.
func (p *parameter) faults(values ...string) []strictjson.Fault {
	list := strictjson.Value{Kind: strictjson.List}
	for _, text := range values {
		if !utf8.ValidString(text) {
			return []strictjson.Fault{{Code: strictjson.CodeInvalidUTF8, Detail: "It is not UTF-8."}}
		}
		list.Items = append(list.Items, p.value(text))
	}
	if p.many {
		return p.schema.Check(&list)
	}
	return p.schema.Check(&list.Items[0])
}

var integerPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// value is the JSON value that a text of a parameter stands for; what cannot be one stays a text and fails the check.
func (p *parameter) value(text string) strictjson.Value {
	switch {
	case p.kind == strictjson.Number && integerPattern.MatchString(text):
		return strictjson.Value{Kind: strictjson.Number, Text: text}
	case p.kind == strictjson.Bool && (text == "true" || text == "false"):
		b, _ := strconv.ParseBool(text)
		return strictjson.Value{Kind: strictjson.Bool, Bool: b}
	default:
		return strictjson.Value{Kind: strictjson.Text, Text: text}
	}
}

func refuseFaults(faults []strictjson.Fault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortFunc(faults, func(a, b strictjson.Fault) int { return strings.Compare(a.Pointer, b.Pointer) })
	return invalid(faults[:min(len(faults), strictjson.MaxFaults)]...)
}

// shortened bounds a caller's own words in an answer.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) > 100 {
		text = string([]rune(text)[:100]) + "…"
	}
	return text
}
