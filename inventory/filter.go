package inventory

import "strconv"

// Filter narrows a list of servers, which is in the order of their ids, that is of their creation. Values of one field
// are alternatives, different fields must all hold, and an empty field asks for nothing. Texts are compared exactly,
// serials without regard to case, since vendors print them in capitals and people type them as they like.
type Filter struct {
	Sites   []string
	Racks   []string
	States  []State
	Models  []string
	Serials []string
	Names   []string
	Query   string // is found in the name, serial, model or external_id, without regard to case

	After ServerID // only servers behind this one
	Limit int      // 0: no limit
}

// maxAlternatives bounds the values of one field of a filter.
const maxAlternatives = 200

func (filter *Filter) validate() error {
	f := faults{}
	f.alternatives("/site", filter.Sites, MaxWord)
	f.alternatives("/rack", filter.Racks, MaxWord)
	f.alternatives("/model", filter.Models, MaxText)
	f.alternatives("/serial", filter.Serials, MaxText)
	f.alternatives("/name", filter.Names, MaxText)
	f.atMost("/state", len(filter.States), maxAlternatives)
	for i, state := range filter.States {
		oneOf(&f, "/state/"+strconv.Itoa(i), state, States()...)
	}
	f.text("/q", filter.Query, MaxText)
	return f.err()
}

func (f *faults) alternatives(pointer string, values []string, limit int) {
	f.atMost(pointer, len(values), maxAlternatives)
	for i, value := range values {
		f.required(pointer+"/"+strconv.Itoa(i), value, limit)
	}
}
