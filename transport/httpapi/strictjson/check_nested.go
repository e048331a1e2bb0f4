package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

func (s *Schema) checkList(f *faults, pointer string, items []Value) {
	switch n := uint64(len(items)); {
	case n > *s.maxCount:
		f.add(pointer, CodeTooMany, fmt.Sprintf("It must have at most %d entries.", *s.maxCount))
		return
	case n < s.minCount:
		f.add(pointer, CodeTooFew, fmt.Sprintf("It must have at least %d.", s.minCount))
	}
	for i := range items {
		s.items.check(f, item(pointer, i), &items[i])
	}
}

func (s *Schema) checkObject(f *faults, pointer string, members []Member) {
	given := make(map[string]bool, len(members))
	for i := range members {
		name := members[i].Name
		given[name] = true
		at := member(pointer, name)
		switch field := s.fields[name]; {
		case field != nil:
			field.check(f, at, &members[i].Value)
		case s.others != nil:
			checkName(f, at, name)
			s.others.check(f, at, &members[i].Value)
		default:
			f.add(at, CodeUnknownField, s.unknown(name))
		}
	}
	for _, name := range s.required {
		if !given[name] {
			f.add(member(pointer, name), CodeRequired, "It must be given.")
		}
	}
	s.checkCount(f, pointer, uint64(len(given)))
}

func (s *Schema) checkCount(f *faults, pointer string, n uint64) {
	switch {
	case s.maxCount != nil && n > *s.maxCount:
		f.add(pointer, CodeTooMany, fmt.Sprintf("It must have at most %d fields.", *s.maxCount))
	case n < s.minCount:
		f.add(pointer, CodeTooFew, fmt.Sprintf("It must have at least %d of the fields there are.", s.minCount))
	}
}

// maxName bounds the names that callers may choose, in characters.
const maxName = 100

func checkName(f *faults, pointer, name string) {
	switch {
	case name == "":
		f.add(pointer, CodeRequired, "Its name must not be empty.")
	case utf8.RuneCountInString(name) > maxName:
		f.add(pointer, CodeTooLong, fmt.Sprintf("Its name must have at most %d characters.", maxName))
	case strings.ContainsFunc(name, IsControl):
		f.add(pointer, CodeControlCharacter, "Its name must not contain control characters or line breaks.")
	}
}

// unknown helps with a name that is merely spelled differently.
func (s *Schema) unknown(name string) string {
	for field := range s.fields {
		if strings.EqualFold(field, name) {
			return "There is no such field; it is spelled " + strconv.Quote(field) + "."
		}
	}
	return "There is no such field."
}
