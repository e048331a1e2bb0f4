package identity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzBearer holds that a text is a key in one spelling alone, and that taking it apart and putting it together gives
// the same text.
//
// Faults: F-A5, F-H3.
func FuzzBearer(f *testing.F) {
	made := bearer("key_0123456789abcdef0123456789abcdef", newSecret())
	for _, seed := range []string{made, made + "\n", " " + made, made[:len(made)-1], "alk_", "alk_" + made, "ALK_" + made[4:], "", "\x00", made + "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, secret, ok := parseBearer(text)
		if !ok {
			require.Empty(t, string(id)+secret)
			return
		}
		require.Equal(t, text, bearer(id, secret))
		require.True(t, hashSecret(secret).matches(secret))
		require.False(t, hashSecret(secret).matches(secret+"0"))
	})
}
