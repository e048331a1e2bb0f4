//go:build gates

package concurrency_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"allocator/inventory"
)

// tell completes the records of a made-up history of one server: each call takes from its At until two later, unless it
// says otherwise, and a hold lives for ten.
func tell(records ...record) []record {
	for i := range records {
		r := &records[i]
		r.Server = "srv"
		if r.Called == 0 {
			r.Called = r.At
		}
		if r.Answer == unknownAnswer {
			r.Returned = math.MaxInt64
		}
		if r.Returned == 0 {
			r.Returned = r.Called + 2
		}
		if r.Op == opReserve && r.Reservation != "" {
			r.Until = r.At + 10
		}
	}
	return records
}

// historyEnv names a file with a history, as a failure prints it.
const historyEnv = "CONCURRENCY_HISTORY"

// A history that was found wrong can be held against the model again, for as long as it takes to understand it.
func TestSavedHistory(t *testing.T) {
	t.Parallel()
	name := os.Getenv(historyEnv)
	if name == "" {
		t.Skip("no history is given in " + historyEnv)
	}
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	of := map[inventory.ServerID][]record{}
	var all []record
	for line := range strings.Lines(string(text)) {
		var r record
		require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(line)), &r), line)
		all = append(all, r)
		of[r.Server] = append(of[r.Server], r)
	}
	delete(of, "") // refusals by the whole inventory
	for server, records := range of {
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(serverModel.ToModel(), operations(records), patience), server)
	}
	require.Empty(t, dishonest(slices.Collect(maps.Keys(of)), all))
}

// The model lets every good history pass and none of the bad ones, each of which is what a known fault would have told.
//
// Requirements: R01, R51, R61. Faults: F-R4, F-R8, F-R15.
func TestHistoryModel(t *testing.T) {
	t.Parallel()
	sold := func(more ...record) []record {
		return tell(append([]record{
			{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			{Op: opConvert, Answer: "ok", Reservation: "A", Binding: "b", At: 105},
		}, more...)...)
	}
	tests := map[string]struct {
		history []record
		good    bool
	}{
		"held, refused to another, converted, refused again": {sold(
			record{Op: opReserve, Answer: "no_capacity", At: 102},
			record{Op: opReserve, Answer: "no_capacity", At: 120},
		), true},
		"held, expired, held by another": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opReserve, Answer: "reserved", Reservation: "B", At: 110},
			record{Op: opConvert, Answer: "expired", Reservation: "A", At: 112},
		), true},
		"renewed, and so not expired": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opRead, Answer: "held", Reservation: "A", At: 109},
		), true},
		"taken over, and the old token refused": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opTakeOver, Answer: "ok", Reservation: "A", At: 103},
			record{Op: opCancel, Answer: "not holder", Reservation: "A", Generation: 1, At: 106},
		), true},
		"sold, ended, cleaned, held": {sold(
			record{Op: opEnd, Answer: "ok", Binding: "b", At: 110},
			record{Op: opState, Answer: "ok", State: inventory.StateReady, At: 113},
			record{Op: opReserve, Answer: "reserved", Reservation: "B", At: 120},
		), true},
		"a lost answer that happened": {tell(
			record{Op: opReserve, Answer: unknownAnswer, Reservation: "A", At: 100},
			record{Op: opReserve, Answer: "no_capacity", At: 104},
		), true},
		"a lost answer that did not": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opCancel, Answer: unknownAnswer, Reservation: "A", At: 103},
			record{Op: opConvert, Answer: "ok", Reservation: "A", Binding: "b", At: 106},
		), true},
		"held twice": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opReserve, Answer: "reserved", Reservation: "B", At: 105},
		), false},
		"sold, and held by another": {sold(
			record{Op: opReserve, Answer: "reserved", Reservation: "B", At: 120},
		), false},
		"converted late": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opConvert, Answer: "ok", Reservation: "A", Binding: "b", At: 110},
		), false},
		"renewed late": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opRenew, Answer: "ok", Reservation: "A", Until: 111 + historyHold.Microseconds(), At: 111},
		), false},
		"expired, and converted all the same": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opRenew, Answer: "expired", Reservation: "A", At: 108, Returned: 111},
			record{Op: opConvert, Answer: "ok", Reservation: "A", Binding: "b", At: 109, Called: 112},
		), false},
		"renewed, and expired before the new deadline": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opRenew, Answer: "ok", Reservation: "A", Until: 105 + historyHold.Microseconds(), At: 105},
			record{Op: opConvert, Answer: "expired", Reservation: "A", At: 115},
		), false},
		"refused although free": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opReserve, Answer: "no_capacity", At: 110},
		), false},
		"in use although free": {tell(
			record{Op: opState, Answer: "in use", State: inventory.StateMaintenance, At: 100},
		), false},
		"taken over, and converted by the old token": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opTakeOver, Answer: "ok", Reservation: "A", At: 103},
			record{Op: opConvert, Answer: "ok", Reservation: "A", Binding: "b", Generation: 1, At: 106},
		), false},
		"held while in maintenance": {tell(
			record{Op: opState, Answer: "ok", State: inventory.StateMaintenance, At: 100},
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 105},
		), false},
		"acknowledged, and not there in the end": {tell(
			record{Op: opReserve, Answer: "reserved", Reservation: "A", At: 100},
			record{Op: opInspect, State: inventory.StateReady, At: 105},
		), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := porcupine.CheckOperationsTimeout(serverModel.ToModel(), operations(tt.history), patience)
			require.NotEqual(t, porcupine.Unknown, result)
			require.Equal(t, tt.good, result == porcupine.Ok)
		})
	}
}

// A refusal by the whole inventory is judged by what was surely so during its call, and not by what may have been.
//
// Requirements: R35, R36.
func TestDishonestRefusalsAreSeen(t *testing.T) {
	t.Parallel()
	refusal := func(answer string, called, returned int64) record {
		return record{Op: opReserve, Answer: answer, Called: called, Returned: returned}
	}
	held := func(from int64, answer string) []record {
		r := tell(record{Op: opReserve, Answer: answer, Reservation: "A", At: from})
		return r
	}
	cancelled := tell(record{Op: opCancel, Answer: "cancelled", Reservation: "A", At: 104})
	converted := tell(record{Op: opConvert, Answer: "ok", Reservation: "A", Binding: "b", At: 104})
	ended := tell(record{Op: opEnd, Answer: "ok", Binding: "b", At: 120})
	cleaned := tell(record{Op: opState, Answer: "ok", State: inventory.StateReady, At: 130})
	with := func(parts ...[]record) (all []record) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	tests := map[string]struct {
		history []record
		refusal record
		honest  bool
	}{
		"nothing, while nobody had it":                 {nil, refusal("no_capacity", 90, 95), false},
		"nothing, while it was held":                   {held(100, "reserved"), refusal("no_capacity", 103, 106), true},
		"nothing, when it was freed in between":        {with(held(100, "reserved"), cancelled), refusal("no_capacity", 103, 120), true},
		"nothing, after it was freed":                  {with(held(100, "reserved"), cancelled), refusal("no_capacity", 107, 120), false},
		"nothing, after the hold expired":              {held(100, "reserved"), refusal("no_capacity", 111, 120), false},
		"nothing, when a lost answer may have held it": {held(100, unknownAnswer), refusal("no_capacity", 103, 106), true},
		"nothing, while it was sold":                   {with(held(100, "reserved"), converted), refusal("no_capacity", 115, 118), true},
		"nothing, while it was cleaned":                {with(held(100, "reserved"), converted, ended), refusal("no_capacity", 125, 128), true},
		"nothing, after it was ready again":            {with(held(100, "reserved"), converted, ended, cleaned), refusal("no_capacity", 133, 135), false},
		"taken, while it was sold":                     {with(held(100, "reserved"), converted), refusal("servers_taken", 115, 118), false},
		"taken, while it was held":                     {held(100, "reserved"), refusal("servers_taken", 103, 106), false},
		"taken, when it was being held":                {held(100, "reserved"), refusal("servers_taken", 99, 106), true},
		"taken, when its hold expired in between":      {held(100, "reserved"), refusal("servers_taken", 106, 112), true},
		"taken, while it was cleaned":                  {with(held(100, "reserved"), converted, ended), refusal("servers_taken", 125, 128), false},
		"taken, when a lost answer may have let it go": {with(held(100, "reserved"), tell(record{Op: opCancel, Answer: unknownAnswer, Reservation: "A", At: 104})), refusal("servers_taken", 106, 107), true},
		"taken, while nobody had it: it may be locked": {nil, refusal("servers_taken", 90, 95), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := dishonest([]inventory.ServerID{"srv"}, append(tt.history, tt.refusal))
			require.Equal(t, tt.honest, len(found) == 0, "%v", found)
		})
	}
}
