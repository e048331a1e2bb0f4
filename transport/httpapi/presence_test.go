package httpapi

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/lease"
	"allocator/transport/httpapi/wire"
)

// Written by hand or by way of the wire's types: it is the same JSON, with every field, whatever the texts are.
//
// Requirements: E31.
func TestPresenceIsWrittenAsTheWireSays(t *testing.T) {
	t.Parallel()
	times := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(0, 253402300799_999999).Draw(t, "µs")).In(time.FixedZone("", rapid.IntRange(-50000, 50000).Draw(t, "zone")))
	})
	leases := rapid.Custom(func(t *rapid.T) lease.Lease {
		return lease.Lease{
			Key:        lease.Key{Resource: rapid.String().Draw(t, "resource"), Part: rapid.String().Draw(t, "part")},
			Holder:     lease.Holder{ID: rapid.String().Draw(t, "id"), Name: rapid.OneOf(rapid.String(), rapid.Just("\"<&>\\\u2028\x00\n\xff")).Draw(t, "name")},
			AcquiredAt: times.Draw(t, "acquired"), ExpiresAt: times.Draw(t, "expires"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := lease.Presence{Resource: rapid.String().Draw(t, "resource"), Now: times.Draw(t, "now"), Leases: rapid.SliceOf(leases).Draw(t, "leases")}
		var written wire.Presence
		strict := json.NewDecoder(bytes.NewReader(writePresence(p)))
		strict.DisallowUnknownFields()
		require.NoError(t, strict.Decode(&written))
		var asWire wire.Presence
		text, err := json.Marshal(wire.Presence{Resource: p.Resource, At: p.Now.UTC(), Leases: viewLeases(p.Leases, p.Now)})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &asWire))
		require.Equal(t, asWire, written)
		require.NotContains(t, string(writePresence(p)), "\n")
	})
}
