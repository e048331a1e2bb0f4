package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth bounds the nesting of a request. The deepest one of the contract has five levels.
const MaxDepth = 16

// Parse reads exactly one JSON value. A fault of the syntax ends the reading, with a nil Value; repeated fields do not,
// so that Check can list the other faults beside them.
func Parse(text []byte) (*Value, []Fault) {
	p := parser{dec: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true))}
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return nil, []Fault{{"", CodeRequired, "A JSON value is missing."}}
	case !utf8.Valid(text):
		return nil, []Fault{{"", CodeInvalidUTF8, fmt.Sprintf("The text is not UTF-8 at byte %d.", firstInvalid(text))}}
	}
	value, err := p.value("")
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, []Fault{p.explain(err)}
	}
	return &value, p.repeated
}

func firstInvalid(text []byte) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

type parser struct {
	dec      *jsontext.Decoder
	repeated faults
}

var (
	errTooDeep  = errors.New("too deep")
	errTrailing = errors.New("trailing data")
)

// explain says what is wrong with the syntax in our own words; those of the decoder are for programmers.
func (p *parser) explain(err error) Fault {
	switch {
	case errors.Is(err, errTooDeep):
		return Fault{"", CodeTooDeep, fmt.Sprintf("Lists and objects are nested deeper than %d levels.", MaxDepth)}
	case errors.Is(err, errTrailing):
		return Fault{"", CodeTrailingData, fmt.Sprintf("Something stands behind the JSON value, from byte %d on.", p.dec.InputOffset())}
	default:
		return Fault{"", CodeMalformedJSON, fmt.Sprintf("The text stops being JSON behind byte %d.", p.dec.InputOffset())}
	}
}

// end makes sure that nothing but blanks follows.
func (p *parser) end() error {
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}

func (p *parser) value(pointer string) (Value, error) {
	token, err := p.dec.ReadToken()
	if err != nil {
		return Value{}, err
	}
	switch token.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		return Value{Kind: Bool, Bool: token.Bool()}, nil
	case jsontext.KindNumber:
		return Value{Kind: Number, Text: token.String()}, nil
	case jsontext.KindString:
		return Value{Kind: Text, Text: token.String()}, nil
	case jsontext.KindBeginArray:
		return p.list(pointer)
	case jsontext.KindBeginObject:
		return p.object(pointer)
	default:
		return Value{Kind: Null}, nil
	}
}

func (p *parser) list(pointer string) (Value, error) {
	v := Value{Kind: List}
	if p.dec.StackDepth() > MaxDepth {
		return v, errTooDeep
	}
	for p.dec.PeekKind() != jsontext.KindEndArray {
		element, err := p.value(item(pointer, len(v.Items)))
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, element)
	}
	_, err := p.dec.ReadToken()
	return v, err
}

func (p *parser) object(pointer string) (Value, error) {
	v := Value{Kind: Object}
	if p.dec.StackDepth() > MaxDepth {
		return v, errTooDeep
	}
	seen := map[string]bool{}
	for p.dec.PeekKind() != jsontext.KindEndObject {
		name, err := p.dec.ReadToken()
		if err != nil {
			return v, err
		}
		field := Member{Name: name.String()}
		at := member(pointer, field.Name)
		if seen[field.Name] {
			p.repeated.add(at, CodeRepeatedField, "The field is given more than once.")
		}
		seen[field.Name] = true
		if field.Value, err = p.value(at); err != nil {
			return v, err
		}
		v.Members = append(v.Members, field)
	}
	_, err := p.dec.ReadToken()
	return v, err
}
