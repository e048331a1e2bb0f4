package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2031, 1, 1, 12, 0, 0, 0, time.UTC)

// A lease is on a resource or on one part of it.
//
// Requirements: E01, E04, E05.
func TestKeysOverlapAndCover(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		a, b              Key
		overlap           bool
		covers, isCovered bool // a covers b, b covers a
	}{
		"the same whole":            {Key{"rack:1", ""}, Key{"rack:1", ""}, true, true, true},
		"the same part":             {Key{"rack:1", "u1"}, Key{"rack:1", "u1"}, true, true, true},
		"the whole and a part":      {Key{"rack:1", ""}, Key{"rack:1", "u1"}, true, true, false},
		"two parts":                 {Key{"rack:1", "u1"}, Key{"rack:1", "u2"}, false, false, false},
		"a part in another case":    {Key{"rack:1", "u1"}, Key{"rack:1", "U1"}, false, false, false},
		"two resources":             {Key{"rack:1", ""}, Key{"rack:2", ""}, false, false, false},
		"the same part of others":   {Key{"rack:1", "u1"}, Key{"rack:2", "u1"}, false, false, false},
		"a resource as a beginning": {Key{"rack:1", ""}, Key{"rack:12", "u1"}, false, false, false},
	}
	for name, tt := range tests {
		require.Equal(t, tt.overlap, tt.a.Overlaps(tt.b), name)
		require.Equal(t, tt.overlap, tt.b.Overlaps(tt.a), name)
		require.Equal(t, tt.covers, tt.a.Covers(tt.b), name)
		require.Equal(t, tt.isCovered, tt.b.Covers(tt.a), name)
	}
}

// Whatever the keys are: overlapping is symmetric, what covers overlaps, and a key covers itself.
//
// Requirements: E04, E05.
func TestOverlapIsSymmetric(t *testing.T) {
	t.Parallel()
	word := rapid.SampledFrom([]string{"", "a", "b", "A"})
	rapid.Check(t, func(t *rapid.T) {
		a := Key{word.Draw(t, "resource"), word.Draw(t, "part")}
		b := Key{word.Draw(t, "resource"), word.Draw(t, "part")}
		require.Equal(t, a.Overlaps(b), b.Overlaps(a))
		require.True(t, a.Covers(a))
		if a.Covers(b) {
			require.True(t, a.Overlaps(b))
		}
		require.Equal(t, a.Overlaps(b), a.Covers(b) || b.Covers(a))
	})
}

// The bounds of resource, part, holder, name and seconds; all faults are told at once.
//
// Requirements: E02, E03, E06.
func TestBoundsOfWhatIsAsked(t *testing.T) {
	t.Parallel()
	ok := func() (Writer, Key, int64) {
		return Writer{Holder: Holder{ID: "anna", Name: "Anna"}}, Key{"rack:1", ""}, 60
	}
	tests := map[string]struct {
		change func(w *Writer, k *Key, s *int64)
		want   []string // field and code
	}{
		"as it should be":                {func(*Writer, *Key, *int64) {}, nil},
		"a resource of 0 bytes":          {func(_ *Writer, k *Key, _ *int64) { k.Resource = "" }, []string{"resource required"}},
		"a resource of 1 byte":           {func(_ *Writer, k *Key, _ *int64) { k.Resource = "x" }, nil},
		"a resource of 255 bytes":        {func(_ *Writer, k *Key, _ *int64) { k.Resource = strings.Repeat("x", 255) }, nil},
		"a resource of 256 bytes":        {func(_ *Writer, k *Key, _ *int64) { k.Resource = strings.Repeat("x", 256) }, []string{"resource too_long"}},
		"255 bytes in 85 characters":     {func(_ *Writer, k *Key, _ *int64) { k.Resource = strings.Repeat("€", 85) }, nil},
		"258 bytes in 86 characters":     {func(_ *Writer, k *Key, _ *int64) { k.Resource = strings.Repeat("€", 86) }, []string{"resource too_long"}},
		"a resource with a NUL":          {func(_ *Writer, k *Key, _ *int64) { k.Resource = "a\x00b" }, []string{"resource control_character"}},
		"a resource with a line break":   {func(_ *Writer, k *Key, _ *int64) { k.Resource = "a\nb" }, []string{"resource control_character"}},
		"a resource with DEL":            {func(_ *Writer, k *Key, _ *int64) { k.Resource = "a\x7f" }, []string{"resource control_character"}},
		"a resource with NEL":            {func(_ *Writer, k *Key, _ *int64) { k.Resource = "a\u0085" }, []string{"resource control_character"}},
		"a resource that is not UTF-8":   {func(_ *Writer, k *Key, _ *int64) { k.Resource = "a\xff" }, []string{"resource invalid_utf8"}},
		"a resource with blanks":         {func(_ *Writer, k *Key, _ *int64) { k.Resource = "rack A 12/é" }, nil},
		"a part of 1":                    {func(_ *Writer, k *Key, _ *int64) { k.Part = "-" }, nil},
		"a part of 64":                   {func(_ *Writer, k *Key, _ *int64) { k.Part = strings.Repeat("aZ09_-xx", 8) }, nil},
		"a part of 65":                   {func(_ *Writer, k *Key, _ *int64) { k.Part = strings.Repeat("a", 65) }, []string{"part malformed"}},
		"a part with a point":            {func(_ *Writer, k *Key, _ *int64) { k.Part = "u1.5" }, []string{"part malformed"}},
		"a part with a letter of others": {func(_ *Writer, k *Key, _ *int64) { k.Part = "ü" }, []string{"part malformed"}},
		"a part with a NUL":              {func(_ *Writer, k *Key, _ *int64) { k.Part = "\x00" }, []string{"part malformed"}},
		"0 seconds":                      {func(_ *Writer, _ *Key, s *int64) { *s = 0 }, []string{"seconds out_of_range"}},
		"seconds below 0":                {func(_ *Writer, _ *Key, s *int64) { *s = -1 }, []string{"seconds out_of_range"}},
		"1 second":                       {func(_ *Writer, _ *Key, s *int64) { *s = 1 }, nil},
		"a day":                          {func(_ *Writer, _ *Key, s *int64) { *s = 86400 }, nil},
		"more than a day":                {func(_ *Writer, _ *Key, s *int64) { *s = 86401 }, []string{"seconds out_of_range"}},
		"seconds without end":            {func(_ *Writer, _ *Key, s *int64) { *s = 1<<63 - 1 }, []string{"seconds out_of_range"}},
		"nobody":                         {func(w *Writer, _ *Key, _ *int64) { w.Holder.ID = "" }, []string{"holder required"}},
		"a holder of 256 bytes":          {func(w *Writer, _ *Key, _ *int64) { w.Holder.ID = strings.Repeat("x", 256) }, []string{"holder too_long"}},
		"a name of 201 characters":       {func(w *Writer, _ *Key, _ *int64) { w.Holder.Name = strings.Repeat("é", 201) }, []string{"name too_long"}},
		"a name of 200 characters":       {func(w *Writer, _ *Key, _ *int64) { w.Holder.Name = strings.Repeat("é", 200) }, nil},
		"a name that forges a line":      {func(w *Writer, _ *Key, _ *int64) { w.Holder.Name = "a\u2028b" }, []string{"name control_character"}},
		"everything at once": {
			func(w *Writer, k *Key, s *int64) { *k, *s, w.Holder.ID = Key{"", "."}, 0, "" },
			[]string{"resource required", "part malformed", "holder required", "seconds out_of_range"},
		},
	}
	for name, tt := range tests {
		w, key, seconds := ok()
		tt.change(&w, &key, &seconds)
		var got []string
		if err := checkClaim(w, key, seconds); err != nil {
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, name)
			for _, f := range invalid.Fields {
				got = append(got, f.Field+" "+f.Code)
			}
		}
		require.Equal(t, tt.want, got, name)
	}
}

// Equal identifiers are one writer, whatever the names; identifiers are compared byte for byte.
//
// Requirements: E06. Cases: LE-08.
func TestHolderIsItsIdentifier(t *testing.T) {
	t.Parallel()
	require.True(t, Holder{"anna", "Anna"}.Is(Holder{"anna", "Anna, other tab"}))
	require.False(t, Holder{"Host-A", "A"}.Is(Holder{"host-a", "A"}))
}

// A lease counts before its end and no longer at it; times are whole seconds in UTC.
//
// Requirements: E18, E31.
func TestEdgeOfALease(t *testing.T) {
	t.Parallel()
	l := Lease{ExpiresAt: noon}
	for name, tt := range map[string]struct {
		at     time.Time
		active bool
		left   int64
	}{
		"a minute before":      {noon.Add(-time.Minute), true, 60},
		"a little more":        {noon.Add(-60*time.Second - 400*time.Millisecond), true, 60},
		"a little less":        {noon.Add(-60*time.Second + 400*time.Millisecond), true, 60},
		"the last half second": {noon.Add(-400 * time.Millisecond), true, 1},
		"a nanosecond before":  {noon.Add(-1), true, 1},
		"at its end":           {noon, false, 0},
		"a nanosecond after":   {noon.Add(1), false, 0},
		"by a clock elsewhere": {noon.Add(-time.Second).In(time.FixedZone("", 7200)), true, 1},
	} {
		require.Equal(t, tt.active, l.ActiveAt(tt.at), name)
		require.Equal(t, tt.left, l.SecondsLeftAt(tt.at), name)
	}
	for _, off := range []time.Duration{0, 1, 499 * time.Millisecond, 501 * time.Millisecond, 999 * time.Millisecond} {
		end := until(noon.Add(off).In(time.FixedZone("", 7200)), 60)
		require.Equal(t, time.UTC, end.Location())
		require.Zero(t, end.Nanosecond())
		require.LessOrEqual(t, end.Sub(noon.Add(off)).Abs()-time.Minute, 500*time.Millisecond)
		require.GreaterOrEqual(t, end.Sub(noon.Add(off)), 59500*time.Millisecond)
	}
}

// held is somebody's lease that ends so many seconds after noon.
func held(holder, resource, part string, seconds int) Lease {
	return Lease{Key: Key{resource, part}, Holder: Holder{ID: holder}, ExpiresAt: noon.Add(time.Duration(seconds) * time.Second)}
}

// Who may write what under which leases.
//
// Requirements: E05, E06, E14, E20.
func TestCover(t *testing.T) {
	t.Parallel()
	server, rack := Key{"server:1", "drives"}, Key{"rack:A12", "u17"}
	tests := map[string]struct {
		leases []Lease
		blocks []Block
		want   error // nil: covered
	}{
		"by the whole record":                      {[]Lease{held("anna", "server:1", "", 1)}, []Block{{server, rack}}, nil},
		"by that part of the record":               {[]Lease{held("anna", "server:1", "drives", 1)}, []Block{{server, rack}}, nil},
		"not by another part":                      {[]Lease{held("anna", "server:1", "price", 1)}, []Block{{server, rack}}, ErrLost},
		"by the rack":                              {[]Lease{held("anna", "rack:A12", "", 1)}, []Block{{server, rack}}, nil},
		"by the place in the rack":                 {[]Lease{held("anna", "rack:A12", "u17", 1)}, []Block{{server, rack}}, nil},
		"not by another place":                     {[]Lease{held("anna", "rack:A12", "u18", 1)}, []Block{{server, rack}}, ErrLost},
		"not when it has run out":                  {[]Lease{held("anna", "server:1", "", 0)}, []Block{{server, rack}}, ErrLost},
		"not without any":                          {nil, []Block{{server, rack}}, ErrLost},
		"not by somebody else's":                   {[]Lease{held("bob", "server:1", "", 1)}, []Block{{server, rack}}, ErrHeld},
		"not while somebody else has its rack":     {[]Lease{held("bob", "rack:A12", "", 1)}, []Block{{server, rack}}, ErrHeld},
		"somebody else's that has run out is none": {[]Lease{held("bob", "server:1", "", 0)}, []Block{{server, rack}}, ErrLost},
		"one's own record in somebody's rack":      {[]Lease{held("anna", "server:1", "", 1), held("bob", "rack:A12", "", 1)}, []Block{{server, rack}}, nil},
		"every block needs one": {
			[]Lease{held("anna", "server:1", "drives", 1), held("bob", "server:1", "price", 9)},
			[]Block{{server, rack}, {Key{"server:1", "price"}}},
			ErrHeld,
		},
		"each block by its own": {
			[]Lease{held("anna", "server:1", "drives", 1), held("anna", "server:1", "price", 9)},
			[]Block{{server, rack}, {Key{"server:1", "price"}}},
			nil,
		},
		"nothing to write": {nil, nil, nil},
	}
	for name, tt := range tests {
		err := Cover(Standing{Now: noon, Leases: tt.leases}, Holder{ID: "anna", Name: "any"}, tt.blocks)
		require.ErrorIs(t, err, tt.want, name)
		if tt.want == nil {
			require.NoError(t, err, name)
		}
	}
	var inTheWay *HeldError
	require.ErrorAs(t, Cover(Standing{Now: noon, Leases: []Lease{held("bob", "rack:A12", "", 7)}}, Holder{ID: "anna"}, []Block{{server, rack}}), &inTheWay)
	require.Equal(t, int64(7), inTheWay.Lease.SecondsLeftAt(inTheWay.Now))
}
