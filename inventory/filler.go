package inventory

import (
	"regexp"
	"slices"
	"strings"
)

// fillers are texts that vendors leave where a serial number belongs, in lower case. They were seen in real
// inventories; to take one for a serial would make one machine of many.
var fillers = []string{
	"to be filled by o.e.m.", "to be filled by oem", "not specified", "not applicable", "not available", "not present",
	"default string", "system serial number", "chassis serial number", "base board serial number", "unknown", "none",
	"null", "n/a", "na", "oem", "empty", "invalid", "serial", "123456789", "1234567890", "0123456789", "9876543210",
}

// fillerPattern is one character again and again: "0", "0000000000", "xxxxxxxx", "--------".
var fillerPattern = regexp.MustCompile(`^(0+|x+|f+|-+|\.+|\*+|\?+|_+)$`)

// IsFiller tells whether a text in the place of a serial number says nothing. Case and outer blanks do not matter.
func IsFiller(serial string) bool {
	serial = strings.ToLower(strings.TrimSpace(serial))
	return serial == "" || slices.Contains(fillers, serial) || fillerPattern.MatchString(serial)
}
