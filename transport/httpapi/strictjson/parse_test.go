package strictjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"allocator/transport/httpapi/strictjson"
)

// What is not exactly one well-formed JSON value is refused, with the place.
//
// Faults: F-H2, F-H3.
func TestParseRefusesBrokenSyntax(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, code string }{
		"nothing at all":                       {"", strictjson.CodeRequired},
		"blanks alone":                         {" \n\t", strictjson.CodeRequired},
		"an object that does not end":          {`{"a":1`, strictjson.CodeMalformedJSON},
		"a comma too many":                     {`{"a":1,}`, strictjson.CodeMalformedJSON},
		"a comma too few":                      {`{"a":1 "b":2}`, strictjson.CodeMalformedJSON},
		"single quotes":                        {`{'a':1}`, strictjson.CodeMalformedJSON},
		"a comment":                            {`{"a":1} // one`, strictjson.CodeTrailingData},
		"a second value":                       {`{"a":1}{"a":2}`, strictjson.CodeTrailingData},
		"a bracket behind the value":           {`{"a":1}}`, strictjson.CodeTrailingData},
		"NaN":                                  {`{"a":NaN}`, strictjson.CodeMalformedJSON},
		"a number with a leading zero":         {`{"a":01}`, strictjson.CodeMalformedJSON},
		"a number with a plus":                 {`{"a":+1}`, strictjson.CodeMalformedJSON},
		"a control character in a text":        {"{\"a\":\"\x01\"}", strictjson.CodeMalformedJSON},
		"half of a surrogate pair":             {`{"a":"\ud800"}`, strictjson.CodeMalformedJSON},
		"the second half of a surrogate pair":  {`{"a":"\udc00x"}`, strictjson.CodeMalformedJSON},
		"half of a surrogate pair in a name":   {`{"\ud800":1}`, strictjson.CodeMalformedJSON},
		"a byte that is no UTF-8":              {"{\"a\":\"\xff\"}", strictjson.CodeInvalidUTF8},
		"an overlong encoding":                 {"{\"a\":\"\xc0\xaf\"}", strictjson.CodeInvalidUTF8},
		"a byte order mark":                    {"\ufeff{}", strictjson.CodeMalformedJSON},
		"lists nested deeper than is sensible": {strings.Repeat("[", 10001), strictjson.CodeTooDeep},
		"objects nested deeper":                {strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40), strictjson.CodeTooDeep},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, faults := strictjson.Parse([]byte(test.text))
			require.Nil(t, value)
			require.Len(t, faults, 1)
			require.Equal(t, test.code, faults[0].Code)
			require.NotContains(t, faults[0].Detail, "jsontext")
		})
	}
}

func TestParseKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	value, faults := strictjson.Parse([]byte(` {"n":1e3,"t":"\u00e9\ud83d\ude00","l":[true,null],"o":{}} `))
	require.Empty(t, faults)
	require.Equal(t, "1e3", value.Get("n").Text)
	require.Equal(t, "é😀", value.Get("t").Text)
	require.Equal(t, []strictjson.Value{{Kind: strictjson.Bool, Bool: true}, {Kind: strictjson.Null}}, value.Get("l").Items)
	require.Equal(t, strictjson.Object, value.Get("o").Kind)
	require.Nil(t, value.Get("absent"))
	require.Nil(t, value.Get("absent").Get("deeper"))
}

func TestParseListsEveryRepeatedField(t *testing.T) {
	t.Parallel()
	value, faults := strictjson.Parse([]byte(`{"a":1,"a":2,"b":{"c/d":1,"c/d":1},"l":[{"x":1,"x":1}]}`))
	require.NotNil(t, value)
	require.Equal(t, []string{"/a", "/b/c~1d", "/l/0/x"}, pointers(faults))
	for _, fault := range faults {
		require.Equal(t, strictjson.CodeRepeatedField, fault.Code)
	}
}

func pointers(faults []strictjson.Fault) []string {
	var all []string
	for _, fault := range faults {
		all = append(all, fault.Pointer)
	}
	return all
}

// FuzzParse holds that hostile bytes neither panic nor blow up the answer, and that what is accepted is what any other
// JSON parser reads.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,2.5,"x",null,true]}`, `{"a":1,"a":2}`, "\xff", `"\ud800"`, `[[[[`, `{"":""}`, `1 2`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, faults := strictjson.Parse(text)
		require.LessOrEqual(t, len(faults), strictjson.MaxFaults)
		for _, fault := range faults {
			require.True(t, utf8.ValidString(fault.Pointer+fault.Detail))
		}
		if value == nil {
			require.NotEmpty(t, faults)
			return
		}
		require.True(t, json.Valid(text))
		other := read(t, text)
		if s, isText := other.(string); isText {
			require.Equal(t, s, value.Text)
		}
	})
}

// read is what another parser reads. Numbers stay as they are written: which of them fit is for the schema to say.
func read(t *testing.T, text []byte) (value any) {
	t.Helper()
	other := json.NewDecoder(bytes.NewReader(text))
	other.UseNumber()
	require.NoError(t, other.Decode(&value))
	return value
}
