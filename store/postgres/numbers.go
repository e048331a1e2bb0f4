package postgres

import (
	"encoding/binary"
	"errors"
	"math"
)

// packNumbers writes small numbers in a byte or two each, where an array of the database takes eight. No numbers are NULL.
func packNumbers(numbers []int) []byte {
	if numbers == nil {
		return nil
	}
	packed := make([]byte, 0, 2*len(numbers))
	for _, n := range numbers {
		packed = binary.AppendUvarint(packed, uint64(n)) //nolint:gosec // places, symbols and lengths are not negative
	}
	return packed
}

var errUnreadableNumbers = errors.New("the statuses that a decision froze cannot be read: they were cut off or changed")

// unpackNumbers reads what packNumbers wrote.
func unpackNumbers(packed []byte) ([]int, error) {
	var numbers []int
	for len(packed) > 0 {
		n, length := binary.Uvarint(packed)
		if length <= 0 || n > math.MaxInt32 {
			return nil, errUnreadableNumbers
		}
		numbers, packed = append(numbers, int(n)), packed[length:]
	}
	return numbers, nil
}
