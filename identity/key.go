package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"regexp"
	"time"
)

// KeyID identifies an API key: "key_" and the 32 hexadecimal digits of a UUIDv7.
type KeyID string

// Key is an API key as it may be shown. Its secret is not in it: nobody can read a secret again.
type Key struct {
	ID           KeyID
	Organization OrganizationID
	Name         string
	Scopes       ScopeSet
	CreatedAt    time.Time
	CreatedBy    Actor
	ExpiresAt    *time.Time // refused from this instant on; nil: never
	LastUsedAt   *time.Time // to about a minute
	RevokedAt    *time.Time
	RevokedBy    *Actor
}

// SecretHash is what is kept of a secret: its SHA-256. A slow password hash would defend guessable secrets against
// somebody who tries candidates; these are 256 random bits, of which nobody can try a noticeable part, while a slow
// hash would cost every request its milliseconds and hand a weapon to whoever sends wrong keys.
type SecretHash [sha256.Size]byte

// secretBytes gives a secret 256 random bits.
const secretBytes = 32

// newSecret draws a secret.
func newSecret() string {
	var b [secretBytes]byte
	rand.Read(b[:]) // never fails: the process ends if the system has no randomness
	return hex.EncodeToString(b[:])
}

func hashSecret(secret string) SecretHash { return sha256.Sum256([]byte(secret)) }

// matches compares in constant time, so that the time of an answer tells nothing of how much of a hash was right.
func (h SecretHash) matches(secret string) bool {
	other := hashSecret(secret)
	return subtle.ConstantTimeCompare(h[:], other[:]) == 1
}

const (
	keyIDPrefix  = "key_"
	bearerPrefix = "alk_"
)

var bearerPattern = regexp.MustCompile(`^` + bearerPrefix + `([0-9a-f]{32})_([0-9a-f]{64})$`)

// bearer is the text that is shown once, when the key is made: alk_<key id>_<secret>.
func bearer(id KeyID, secret string) string {
	return bearerPrefix + string(id[len(keyIDPrefix):]) + "_" + secret
}

// parseBearer takes the text apart; ok is false if it is none of ours.
func parseBearer(text string) (id KeyID, secret string, ok bool) {
	m := bearerPattern.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return KeyID(keyIDPrefix + m[1]), m[2], true
}
