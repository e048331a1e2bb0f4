package lease

import "strings"

// The longest texts, in bytes.
const (
	MaxResource = 255
	MaxPart     = 64
)

// Key is what a lease is on: a resource such as "rack:A12", as a whole or one part of it such as "u17".
type Key struct {
	Resource string
	Part     string // empty: the whole resource
}

// Whole tells whether the key is the resource as a whole.
func (k Key) Whole() bool { return k.Part == "" }

// Overlaps tells whether two holders could not have both keys at the same time: the whole overlaps every part, a part
// itself alone. It is symmetric.
func (k Key) Overlaps(other Key) bool {
	return k.Resource == other.Resource && (k.Whole() || other.Whole() || k.Part == other.Part)
}

// Covers tells whether the holder of k may write other: the holder of the whole writes every part, the holder of a part
// that part alone.
func (k Key) Covers(other Key) bool {
	return k.Resource == other.Resource && (k.Whole() || k.Part == other.Part)
}

// String writes the key for people.
func (k Key) String() string {
	if k.Whole() {
		return k.Resource
	}
	return k.Resource + " part " + k.Part
}

// ValidPart tells whether a text can name a part: 1 to 64 of letters, digits, '_' and '-'.
func ValidPart(text string) bool {
	return text != "" && len(text) <= MaxPart && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}
