package postgres

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNumbersComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(0, 1<<31-1), 1, 50).Draw(rt, "numbers")
		back, err := unpackNumbers(packNumbers(numbers))
		require.NoError(rt, err)
		require.Equal(rt, numbers, back)
	})
	require.Nil(t, packNumbers(nil), "NULL")
	require.Len(t, packNumbers([]int{1999, 20}), 3)
}

func TestNumbersThatWereChangedAreNoNumbers(t *testing.T) {
	t.Parallel()
	for what, packed := range map[string][]byte{
		"cut off":    {0xff},
		"too large":  {0xff, 0xff, 0xff, 0xff, 0x7f},
		"never ends": bytes.Repeat([]byte{0xff}, 20),
	} {
		_, err := unpackNumbers(packed)
		require.ErrorIs(t, err, errUnreadableNumbers, what)
	}
}
