package strictjson

// Kind is the kind of a JSON value.
type Kind int

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Object
)

// Value is a JSON value as it was written: numbers keep their digits, objects their order.
type Value struct {
	Kind    Kind
	Bool    bool
	Text    string // of a Text, decoded; of a Number, as written
	Items   []Value
	Members []Member
}

// Member is one field of an object.
type Member struct {
	Name  string
	Value Value
}

// Get returns a field of an object; nil if there is none, or v is nil or no object.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return &v.Members[i].Value
		}
	}
	return nil
}
