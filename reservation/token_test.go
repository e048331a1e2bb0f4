package reservation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"allocator/identity"
	"allocator/reservation"
)

const (
	oldSecret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	newSecret = "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
)

func keys(t require.TestingT, text string) reservation.TokenKeys {
	k, err := reservation.ParseTokenKeys(text)
	require.NoError(t, err)
	return k
}

// After a rotation the old key still verifies and a replay still returns the same text; when the old key is dropped,
// its tokens are dead and the current key signs.
func TestTokensSurviveRotation(t *testing.T) {
	t.Parallel()
	before := keys(t, "k1:"+oldSecret)
	token := before.Token("k1", "acme", "res_1", 1)
	rotated := keys(t, "k2:"+newSecret+",k1:"+oldSecret)
	require.Equal(t, "k2", rotated.Current())
	require.True(t, rotated.Verify(token, "acme", "res_1", 1))
	require.Equal(t, token, rotated.Token("k1", "acme", "res_1", 1))

	dropped := keys(t, "k2:"+newSecret)
	require.False(t, dropped.Verify(token, "acme", "res_1", 1))
	again := dropped.Token("k1", "acme", "res_1", 1)
	require.NotEqual(t, token, again)
	require.True(t, dropped.Verify(again, "acme", "res_1", 1))
}

// A token is good for one organization, one reservation and one generation, and for nothing that looks like it.
func TestTokenIsBoundToItsHold(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1:"+oldSecret+",k2:"+newSecret)
	token := k.Token("k1", "acme", "res_1", 1)
	require.True(t, k.Verify(token, "acme", "res_1", 1))
	for name, wrong := range map[string]bool{
		"other organization":  k.Verify(token, "rival", "res_1", 1),
		"other reservation":   k.Verify(token, "acme", "res_2", 1),
		"other generation":    k.Verify(token, "acme", "res_1", 2),
		"other key's name":    k.Verify(strings.Replace(token, "k1", "k2", 1), "acme", "res_1", 1),
		"unknown key":         k.Verify(strings.Replace(token, "k1", "k9", 1), "acme", "res_1", 1),
		"trailing byte":       k.Verify(token+"A", "acme", "res_1", 1),
		"padding":             k.Verify(token+"=", "acme", "res_1", 1),
		"shortened":           k.Verify(token[:len(token)-1], "acme", "res_1", 1),
		"without its prefix":  k.Verify(strings.TrimPrefix(token, "hold_"), "acme", "res_1", 1),
		"empty":               k.Verify("", "acme", "res_1", 1),
		"parts moved between": k.Verify(k.Token("k1", "acme\x00res_1", "", 1), "acme", "res_1", 1),
	} {
		require.False(t, wrong, name)
	}
}

// No text that was not made for a hold verifies for it.
// Faults: F-A5.
func TestNoOtherTextVerifies(t *testing.T) {
	t.Parallel()
	k := keys(t, "k1:"+oldSecret)
	token := k.Token("k1", "acme", "res_1", 1)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`hold_k1_[A-Za-z0-9_-]{40,46}`),
			rapid.Custom(func(t *rapid.T) string {
				b := []byte(token)
				b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
				return string(b)
			}),
		).Draw(t, "text")
		require.Equal(t, text == token, k.Verify(text, identity.OrganizationID("acme"), "res_1", 1), "%q", text)
	})
}

// A list of keys that cannot be right is refused in a sentence, and the sentence shows no secret.
func TestTokenKeysRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":            "",
		"no name":          ":" + oldSecret,
		"no secret":        "k1",
		"secret too short": "k1:" + oldSecret[:62],
		"no hexadecimal":   "k1:" + strings.Repeat("z", 64),
		"bad name":         "K_1:" + oldSecret,
		"twice":            "k1:" + oldSecret + ",k1:" + newSecret,
		"trailing comma":   "k1:" + oldSecret + ",",
	} {
		_, err := reservation.ParseTokenKeys(text)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), oldSecret[:16], name)
		require.NotContains(t, err.Error(), newSecret[:16], name)
	}
}

// Only a held reservation keeps its server, and there are exactly four states.
//
// Requirements: R08, R11, R12
func TestStates(t *testing.T) {
	t.Parallel()
	holding := map[reservation.State]bool{}
	for _, s := range reservation.States() {
		require.True(t, s.Valid())
		holding[s] = s.Holds()
	}
	require.Equal(t, map[reservation.State]bool{"held": true, "converted": false, "expired": false, "cancelled": false}, holding)
	require.False(t, reservation.State("released").Valid())
}
