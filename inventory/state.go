package inventory

import "slices"

// State is where a server stands in its life. Held and bound are not among them: they are derived.
type State string

// The states of a server. Only StateReady can be reserved.
const (
	StatePlanned     State = "planned"
	StateStaged      State = "staged"
	StateReady       State = "ready"
	StateCleaning    State = "cleaning"
	StateMaintenance State = "maintenance"
	StateFailed      State = "failed"
	StateRetired     State = "retired"
)

// States lists every state, in the order of a server's life.
func States() []State {
	return []State{StatePlanned, StateStaged, StateReady, StateCleaning, StateMaintenance, StateFailed, StateRetired}
}

// Valid tells whether s is one of the seven states.
func (s State) Valid() bool { return slices.Contains(States(), s) }

// Sellable tells whether a server in this state can be reserved.
func (s State) Sellable() bool { return s == StateReady }
