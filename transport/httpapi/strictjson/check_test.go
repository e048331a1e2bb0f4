package strictjson_test

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"allocator/transport/httpapi/strictjson"
)

const orderSchema = `
type: object
additionalProperties: false
required: [order_id]
properties:
  order_id: {type: string, minLength: 1, maxLength: 5}
  unit: {type: [integer, "null"], minimum: 1, maximum: 10}
  big: {type: integer}
  at: {type: string, format: date-time}
  money: {type: string, pattern: '^[0-9]+$', examples: ["38"]}
  state: {type: [string, "null"], enum: [held, expired, null]}
  sure: {type: boolean}
  tags: {type: array, minItems: 1, maxItems: 2, items: {type: string, maxLength: 3}}
  map: {type: object, maxProperties: 2, additionalProperties: {type: string, maxLength: 3}}
  price: {oneOf: [{type: object, additionalProperties: false, required: [a], properties: {a: {type: integer}}}, {type: "null"}]}
`

func compile(tb testing.TB, schema string) (*strictjson.Schema, error) {
	tb.Helper()
	document := "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\ncomponents:\n  schemas:\n    S:\n" +
		"      " + strings.ReplaceAll(strings.TrimSpace(schema), "\n", "\n      ") + "\n"
	loaded, err := openapi3.NewLoader().LoadFromData([]byte(document))
	require.NoError(tb, err)
	return strictjson.Compile(loaded.Components.Schemas["S"])
}

// Faults: F-H2, F-H3, F-H4.
func TestCheckNamesTheFieldAndTheFault(t *testing.T) {
	t.Parallel()
	schema, err := compile(t, orderSchema)
	require.NoError(t, err)
	tests := map[string]struct {
		text, pointer, code string
	}{
		"a list instead of an object":          {`[]`, "", strictjson.CodeWrongType},
		"null instead of an object":            {`null`, "", strictjson.CodeWrongType},
		"a missing field":                      {`{}`, "/order_id", strictjson.CodeRequired},
		"null where a value is needed":         {`{"order_id":null}`, "/order_id", strictjson.CodeWrongType},
		"an empty text":                        {`{"order_id":""}`, "/order_id", strictjson.CodeRequired},
		"six characters of five":               {`{"order_id":"öööööö"}`, "/order_id", strictjson.CodeTooLong},
		"a number instead of a text":           {`{"order_id":1}`, "/order_id", strictjson.CodeWrongType},
		"NUL in a text":                        {`{"order_id":"a\u0000"}`, "/order_id", strictjson.CodeControlCharacter},
		"a line separator in a text":           {`{"order_id":"a\u2028"}`, "/order_id", strictjson.CodeControlCharacter},
		"an unknown field":                     {`{"order_id":"a","org_id":"b"}`, "/org_id", strictjson.CodeUnknownField},
		"a field in other case":                {`{"order_id":"a","Unit":1}`, "/Unit", strictjson.CodeUnknownField},
		"a field that folds to another":        {`{"order_id":"a","\u017fure":true}`, "/\u017fure", strictjson.CodeUnknownField},
		"Go's zero time":                       {`{"order_id":"a","at":"0001-01-01T00:00:00Z"}`, "/at", strictjson.CodeMalformed},
		"an offset of a day":                   {`{"order_id":"a","at":"2026-01-01T00:00:00+24:00"}`, "/at", strictjson.CodeMalformed},
		"an offset of sixty minutes":           {`{"order_id":"a","at":"2026-01-01T00:00:00+23:60"}`, "/at", strictjson.CodeMalformed},
		"a comma in the seconds":               {`{"order_id":"a","at":"2026-01-01T00:00:00,5Z"}`, "/at", strictjson.CodeMalformed},
		"an hour of one digit":                 {`{"order_id":"a","at":"2026-01-01T1:00:00Z"}`, "/at", strictjson.CodeMalformed},
		"a time without zone":                  {`{"order_id":"a","at":"2026-01-01T01:00:00"}`, "/at", strictjson.CodeMalformed},
		"a number as text":                     {`{"order_id":"a","unit":"5"}`, "/unit", strictjson.CodeWrongType},
		"a fraction":                           {`{"order_id":"a","unit":1.5}`, "/unit", strictjson.CodeWrongType},
		"a whole number with a point":          {`{"order_id":"a","unit":1.0}`, "/unit", strictjson.CodeWrongType},
		"an exponent":                          {`{"order_id":"a","unit":1e1}`, "/unit", strictjson.CodeWrongType},
		"a number too small":                   {`{"order_id":"a","unit":-1}`, "/unit", strictjson.CodeOutOfRange},
		"a number that no integer holds":       {`{"order_id":"a","big":9223372036854775808}`, "/big", strictjson.CodeOutOfRange},
		"a number that JavaScript would round": {`{"order_id":"a","big":9007199254740992}`, "/big", strictjson.CodeOutOfRange},
		"a time without a zone":                {`{"order_id":"a","at":"2026-01-01T00:00:00"}`, "/at", strictjson.CodeMalformed},
		"a day that does not exist":            {`{"order_id":"a","at":"2026-02-30T00:00:00Z"}`, "/at", strictjson.CodeMalformed},
		"the year 0":                           {`{"order_id":"a","at":"0000-01-01T00:00:00Z"}`, "/at", strictjson.CodeMalformed},
		"a text of another form":               {`{"order_id":"a","money":"1,5"}`, "/money", strictjson.CodeMalformed},
		"a word that is not in the list":       {`{"order_id":"a","state":"HELD"}`, "/state", strictjson.CodeUnknownValue},
		"a number instead of true":             {`{"order_id":"a","sure":1}`, "/sure", strictjson.CodeWrongType},
		"a list with too many entries":         {`{"order_id":"a","tags":["a","b","c"]}`, "/tags", strictjson.CodeTooMany},
		"a list with too few entries":          {`{"order_id":"a","tags":[]}`, "/tags", strictjson.CodeTooFew},
		"a fault inside a list":                {`{"order_id":"a","tags":["a","abcd"]}`, "/tags/1", strictjson.CodeTooLong},
		"a map with too many names":            {`{"order_id":"a","map":{"a":"","b":"","c":""}}`, "/map", strictjson.CodeTooMany},
		"an empty name in a map":               {`{"order_id":"a","map":{"":"x"}}`, "/map/", strictjson.CodeRequired},
		"NUL in a name of a map":               {`{"order_id":"a","map":{"\u0000":"x"}}`, "/map/\x00", strictjson.CodeControlCharacter},
		"a fault inside an object":             {`{"order_id":"a","price":{"a":true}}`, "/price/a", strictjson.CodeWrongType},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, faults := strictjson.Parse([]byte(test.text))
			require.Empty(t, faults)
			got := schema.Check(value)
			require.Len(t, got, 1)
			require.Equal(t, test.pointer, got[0].Pointer)
			require.Equal(t, test.code, got[0].Code)
		})
	}
}

func TestCheckAcceptsWhatIsMeant(t *testing.T) {
	t.Parallel()
	schema, err := compile(t, orderSchema)
	require.NoError(t, err)
	for _, text := range []string{
		`{"order_id":"a"}`,
		`{"order_id":"ööööö","unit":null,"state":null,"price":null}`,
		`{"order_id":"a","unit":10,"big":9007199254740991,"at":"2026-01-01T00:00:00.123456+02:00","money":"38"}`,
		`{"order_id":"a","tags":["a"],"map":{"x":"y"},"price":{"a":-9007199254740991},"sure":false,"state":"held"}`,
	} {
		value, faults := strictjson.Parse([]byte(text))
		require.Empty(t, faults)
		require.Empty(t, schema.Check(value), text)
	}
}

func TestCheckListsAllFaultsAtOnceAndBoundsThem(t *testing.T) {
	t.Parallel()
	schema, err := compile(t, orderSchema)
	require.NoError(t, err)
	value, _ := strictjson.Parse([]byte(`{"unit":0,"sure":"yes","x":1}`))
	require.ElementsMatch(t, []string{"/unit", "/sure", "/x", "/order_id"}, pointers(schema.Check(value)))

	value, _ = strictjson.Parse([]byte(`{"a` + strings.Repeat(`":1,"a`, 5000) + `":1}`))
	faults := schema.Check(value)
	require.Len(t, faults, strictjson.MaxFaults)
	require.Equal(t, strictjson.CodeMore, faults[strictjson.MaxFaults-1].Code)
}

func TestCompileRefusesWhatItWouldNotHold(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"a keyword that is not checked":    `{type: array, maxItems: 1, uniqueItems: true, items: {type: boolean}}`,
		"an object that is open":           `{type: object, properties: {a: {type: boolean}}}`,
		"a text without a limit":           `{type: string}`,
		"a list without a limit":           `{type: array, items: {type: boolean}}`,
		"a schema without a type":          `{description: anything}`,
		"a choice between schemas":         `{oneOf: [{type: boolean}, {type: integer}]}`,
		"a number that need not be whole":  `{type: number}`,
		"a combination of schemas":         `{allOf: [{type: boolean}]}`,
		"a fault somewhere inside of it":   `{type: object, additionalProperties: false, properties: {a: {type: string}}}`,
		"a fault in the values of its map": `{type: object, additionalProperties: {type: string}}`,
	} {
		_, err := compile(t, schema)
		require.Error(t, err, name)
	}
}

// FuzzCheck holds that no value makes the check panic, and that its answer stays small and says where.
func FuzzCheck(f *testing.F) {
	schema, err := compile(f, orderSchema)
	require.NoError(f, err)
	f.Add([]byte(`{"order_id":"a","unit":1,"tags":["a"],"map":{"x":"y"},"price":{"a":1}}`))
	f.Add([]byte(`{"order_id":1e400,"unit":"\u0000","tags":{},"map":[],"price":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		value, _ := strictjson.Parse(text)
		if value == nil {
			return
		}
		for _, fault := range schema.Check(value) {
			require.Less(t, len(fault.Pointer)+len(fault.Detail), 2000)
			require.NotEmpty(t, fault.Code)
		}
	})
}
