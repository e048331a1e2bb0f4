package strictjson

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// Schema is a compiled schema. Immutable; safe for concurrent use.
type Schema struct {
	kinds    []Kind // those allowed
	integer  bool   // a Number must be an integer
	required []string
	fields   map[string]*Schema
	others   *Schema // of fields that are not in fields; nil: there are none
	minCount uint64  // of members or items
	maxCount *uint64
	items    *Schema

	minLength uint64 // of texts, in characters
	maxLength *uint64
	pattern   *regexp.Regexp
	dateTime  bool
	enum      []string
	example   string
	min, max  int64
}

// maxInteger is the largest integer that JavaScript holds exactly.
const maxInteger = 1<<53 - 1

var kindNames = map[string]Kind{
	"null": Null, "boolean": Bool, "integer": Number, "string": Text, "array": List, "object": Object,
}

// Compile makes a Schema of one from an OpenAPI 3.1 document. It refuses what Check would not hold.
func Compile(ref *openapi3.SchemaRef) (*Schema, error) {
	source := ref.Value
	if len(source.OneOf) > 0 {
		return compileNullable(source)
	}
	if keyword := unsupported(source); keyword != "" {
		return nil, fmt.Errorf("the keyword %s is not supported in requests", keyword)
	}
	s := &Schema{
		required: source.Required, minLength: source.MinLength, maxLength: source.MaxLength,
		dateTime: source.Format == "date-time", min: -maxInteger, max: maxInteger, fields: map[string]*Schema{},
	}
	steps := []func(*openapi3.Schema) error{s.compileKinds, s.compileText, s.compileNumber, s.compileList, s.compileObject}
	for _, step := range steps {
		if err := step(source); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// compileNullable compiles {oneOf: [schema, {type: "null"}]}, the one form of oneOf that is supported.
func compileNullable(source *openapi3.Schema) (*Schema, error) {
	if len(source.OneOf) != 2 || !source.OneOf[1].Value.Type.Is("null") {
		return nil, fmt.Errorf("oneOf is supported in requests only as a schema and null")
	}
	s, err := Compile(source.OneOf[0])
	if err != nil {
		return nil, err
	}
	s.kinds = append(s.kinds, Null)
	return s, nil
}

func unsupported(source *openapi3.Schema) string {
	used := map[string]bool{
		"anyOf": source.AnyOf != nil, "allOf": source.AllOf != nil, "not": source.Not != nil, "const": source.Const != nil,
		"uniqueItems": source.UniqueItems, "multipleOf": source.MultipleOf != nil, "if": source.If != nil,
		"exclusiveMinimum": source.ExclusiveMin.IsSet(), "exclusiveMaximum": source.ExclusiveMax.IsSet(),
		"prefixItems": source.PrefixItems != nil, "contains": source.Contains != nil,
		"patternProperties": source.PatternProperties != nil, "propertyNames": source.PropertyNames != nil,
		"dependentRequired": source.DependentRequired != nil, "dependentSchemas": source.DependentSchemas != nil,
	}
	for keyword, is := range used {
		if is {
			return keyword
		}
	}
	return ""
}

func (s *Schema) compileKinds(source *openapi3.Schema) error {
	for _, name := range source.Type.Slice() {
		kind, known := kindNames[name]
		if !known {
			return fmt.Errorf("the type %q is not supported in requests", name)
		}
		s.kinds = append(s.kinds, kind)
		s.integer = s.integer || name == "integer"
	}
	if len(s.kinds) == 0 {
		return fmt.Errorf("a schema of a request says its type")
	}
	return nil
}

func (s *Schema) compileText(source *openapi3.Schema) (err error) {
	for _, value := range source.Enum {
		if word, ok := value.(string); ok {
			s.enum = append(s.enum, word)
		}
	}
	if len(source.Examples) > 0 {
		s.example, _ = source.Examples[0].(string)
	}
	if s.allows(Text) && s.maxLength == nil && s.enum == nil && source.Pattern == "" && !s.dateTime {
		return fmt.Errorf("a text of a request has a maxLength")
	}
	if source.Pattern != "" {
		s.pattern, err = regexp.Compile(source.Pattern)
	}
	return err
}

func (s *Schema) compileNumber(source *openapi3.Schema) error {
	if source.Min != nil {
		s.min = int64(*source.Min)
	}
	if source.Max != nil {
		s.max = int64(*source.Max)
	}
	return nil
}

func (s *Schema) allows(kind Kind) bool { return slices.Contains(s.kinds, kind) }
