package reservation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"allocator/identity"
)

// minTokenSecret is the shortest secret, in bytes, that a hold token key may have.
const minTokenSecret = 32

var tokenKeyName = regexp.MustCompile(`^[a-z0-9]{1,32}$`)

// TokenKeys make and check hold tokens. The first key signs; every key verifies, so that keys can be rotated by
// putting a new one in front and dropping an old one a day later, the longest life of a reservation. Safe for
// concurrent use.
type TokenKeys struct {
	order  []string
	secret map[string][]byte
}

// ParseTokenKeys reads "name:hex,name:hex", the form of ALLOCATOR_HOLD_TOKEN_KEYS. Errors never show a secret.
func ParseTokenKeys(text string) (TokenKeys, error) {
	keys := TokenKeys{secret: map[string][]byte{}}
	for i, entry := range strings.Split(text, ",") {
		name, secretHex, found := strings.Cut(strings.TrimSpace(entry), ":")
		secret, err := hex.DecodeString(secretHex)
		switch {
		case !found || !tokenKeyName.MatchString(name):
			return TokenKeys{}, fmt.Errorf("hold token key %d: write name:secret with a name of 1 to 32 lower-case letters and digits", i+1)
		case err != nil || len(secret) < minTokenSecret:
			return TokenKeys{}, fmt.Errorf("hold token key %q: the secret must be at least %d bytes in hexadecimal (try: openssl rand -hex 32)", name, minTokenSecret)
		case keys.secret[name] != nil:
			return TokenKeys{}, fmt.Errorf("hold token key %q stands in the list twice", name)
		}
		keys.order = append(keys.order, name)
		keys.secret[name] = secret
	}
	return keys, nil
}

// Current names the key that signs new tokens.
func (k TokenKeys) Current() string { return k.order[0] }

// Token returns the hold token of one generation of a reservation, signed with the named key so that a replay of the
// creating request returns the same text after a rotation. A key that is gone is replaced by the current one.
func (k TokenKeys) Token(keyName string, org identity.OrganizationID, id ID, generation int64) string {
	if k.secret[keyName] == nil {
		keyName = k.Current()
	}
	return "hold_" + keyName + "_" + base64.RawURLEncoding.EncodeToString(k.mac(keyName, org, id, generation))
}

// Verify tells whether token is the hold token of this generation of the reservation, under any known key. The
// comparison takes the same time whatever the token is.
func (k TokenKeys) Verify(token string, org identity.OrganizationID, id ID, generation int64) bool {
	rest, found := strings.CutPrefix(token, "hold_")
	name, encoded, cut := strings.Cut(rest, "_")
	if !found || !cut || k.secret[name] == nil {
		return false
	}
	// Texts are compared, since a decoder passes over line breaks: a token has one spelling.
	return hmac.Equal([]byte(encoded), []byte(base64.RawURLEncoding.EncodeToString(k.mac(name, org, id, generation))))
}

// guessedGenerations is how many generations Generation tries: a hold is taken over once, if ever.
const guessedGenerations = 3

// Generation returns which of the first few generations of the reservation the token is for, or 0.
func (k TokenKeys) Generation(token string, org identity.OrganizationID, id ID) int64 {
	for g := int64(1); g <= guessedGenerations; g++ {
		if k.Verify(token, org, id, g) {
			return g
		}
	}
	return 0
}

// mac binds the token to everything that tells one hold from another; the separator cannot occur in any part.
func (k TokenKeys) mac(name string, org identity.OrganizationID, id ID, generation int64) []byte {
	h := hmac.New(sha256.New, k.secret[name])
	h.Write([]byte("hold-token\x00" + string(org) + "\x00" + string(id) + "\x00" + strconv.FormatInt(generation, 10)))
	return h.Sum(nil)
}
