package reservation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"allocator/identity"
)

// FuzzHoldToken holds that no text but the one that was made for a hold opens it, whatever it is, and that a token
// survives everything that is put before and behind its keys.
//
// Faults: F-A5.
func FuzzHoldToken(f *testing.F) {
	keys, err := ParseTokenKeys("a:" + strings.Repeat("00", 32) + ",b:" + strings.Repeat("11", 32))
	require.NoError(f, err)
	genuine := keys.Token("a", "acme", "res_1", 1)
	for _, seed := range []string{genuine, genuine + "=", genuine + "\n", strings.ToUpper(genuine), genuine[:len(genuine)-1], strings.Replace(genuine, "hold_a_", "hold_b_", 1), "hold_a_", "hold__", "", "hold_a_\x00", genuine + genuine} {
		f.Add(seed, "acme", "res_1", int64(1))
	}
	f.Add(genuine, "acme", "res_2", int64(1))
	f.Add(genuine, "acm", "eres_1", int64(1))
	f.Add(genuine, "acme", "res_1", int64(-1))
	f.Fuzz(func(t *testing.T, text, org, id string, generation int64) {
		if strings.Contains(org+id, "\x00") {
			return // the separator is in no id
		}
		mine := text == keys.Token("a", identity.OrganizationID(org), ID(id), generation) || text == keys.Token("b", identity.OrganizationID(org), ID(id), generation)
		require.Equal(t, mine, keys.Verify(text, identity.OrganizationID(org), ID(id), generation))
		made := keys.Token("b", identity.OrganizationID(org), ID(id), generation)
		require.True(t, keys.Verify(made, identity.OrganizationID(org), ID(id), generation))
		require.False(t, keys.Verify(made, identity.OrganizationID(org), ID(id), generation+1))
	})
}

// FuzzTokenKeys holds that a list of keys is read or refused, that no refusal shows a secret, and that what is read has
// names that are apart and secrets that are long enough.
func FuzzTokenKeys(f *testing.F) {
	for _, seed := range []string{
		"", "a:", "a:00", "A:" + strings.Repeat("00", 32), "a:" + strings.Repeat("zz", 32), "a:" + strings.Repeat("0f", 32) + ",", ":,:",
		"a:" + strings.Repeat("00", 32) + ", a:" + strings.Repeat("11", 32), "a:" + strings.Repeat("00", 31), "a:" + strings.Repeat("00", 32) + ",b:" + strings.Repeat("11", 31),
		"a:" + strings.Repeat("00", 32) + ",b:" + strings.Repeat("11", 32) + ",a:" + strings.Repeat("22", 32),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ParseTokenKeys(text)
		names := map[string]bool{}
		for entry := range strings.SplitSeq(text, ",") {
			name, secret, found := strings.Cut(strings.TrimSpace(entry), ":")
			if err != nil {
				if found && len(secret) >= 16 {
					require.NotContains(t, err.Error(), secret)
				}
				continue
			}
			require.False(t, names[name], "%q stands there twice", name)
			names[name] = true
			require.GreaterOrEqual(t, len(secret), 64, "32 bytes in hexadecimal")
			require.True(t, keys.Verify(keys.Token(name, "acme", "res_1", 1), "acme", "res_1", 1))
		}
		if err == nil {
			require.True(t, names[keys.Current()])
		}
	})
}
