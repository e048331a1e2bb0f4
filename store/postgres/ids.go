package postgres

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// newID returns a fresh UUIDv7, so that ids sort by the time of their creation.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// formatID writes an id as callers see it: the prefix with its underscore, and 32 hexadecimal digits.
func formatID(prefix string, id [16]byte) string {
	var text [64]byte
	n := copy(text[:32], prefix)
	return string(text[:n+hex.Encode(text[n:], id[:])])
}

// parseID reads what formatID wrote and nothing else: an id in another spelling would be a second name of the same row.
func parseID(prefix, text string) (uuid.UUID, bool) {
	digits, ok := strings.CutPrefix(text, prefix)
	if !ok || len(digits) != 32 || strings.ToLower(digits) != digits {
		return uuid.Nil, false
	}
	var id uuid.UUID
	_, err := hex.Decode(id[:], []byte(digits))
	return id, err == nil
}
