package featureflags

import (
	"crypto/sha256"
	"encoding/binary"
)

// inPercentage tells whether the organization is among the given share of all. It depends on the names alone, so every
// replica and every release gives the same answer, and an organization that is in stays in while the share grows. Each
// switch has a half of its own, or the same organizations would try every novelty. A caller without an organization is
// in only when everybody is.
func inPercentage(key, organizationID string, percent int) bool {
	if organizationID == "" {
		return percent >= 100
	}
	return bucket(key, organizationID) < percent
}

// bucket spreads organizations evenly over 0 to 99.
func bucket(key, organizationID string) int {
	sum := sha256.Sum256([]byte(key + "\x00" + organizationID))
	return int(binary.BigEndian.Uint64(sum[:8]) % 100)
}
