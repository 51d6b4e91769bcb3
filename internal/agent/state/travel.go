package state

import (
	"encoding/json"
	"slices"

	"heddle/internal/agent/moves"
	"heddle/internal/plan"
)

// Travel is what the host remembers of the moves of one adapter of a VM, also after its port is gone: the adapter may
// come back, with a generation above all earlier ones.
type Travel struct {
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	// Port is the adapter's port on this host, present or last.
	Port plan.PortID `json:"port"`
	moves.Place
	// Here is the last move to this host, Away the last one from it; nil for none.
	Here *moves.Here `json:"here,omitzero"`
	Away *moves.Away `json:"away,omitzero"`
	// Past are earlier moves, the oldest first.
	Past []moves.Track `json:"past,omitzero"`
}

// maxPast bounds how many earlier moves are remembered of an adapter.
const maxPast = 8

// Shelve adds a move to the earlier ones.
func (t *Travel) Shelve(m moves.Track) {
	t.Past = append(t.Past, m)
	t.Past = t.Past[max(0, len(t.Past)-maxPast):]
}

// Ended reports whether a move of which this host was the source is an earlier one that is over: what is still said of
// it is late.
func (t *Travel) Ended(move string) bool {
	return slices.ContainsFunc(t.Past, func(m moves.Track) bool {
		return m.Move == move && m.Side == moves.Source && (m.Phase == moves.Cancelled || m.Phase == moves.Released)
	})
}

// Open reports whether a move is under way.
func (t *Travel) Open() bool {
	return t.Here != nil && !t.Here.Over() || t.Away != nil && !t.Away.Over()
}

// Travels are those of all adapters, the oldest first.
type Travels []*Travel

// UnmarshalJSON reads each record by itself: one that another version wrote in a form that this one can't read is left
// out, and the host goes on without it.
func (ts *Travels) UnmarshalJSON(text []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	*ts = nil
	for _, one := range all {
		t := &Travel{}
		if json.Unmarshal(one, t) == nil && t.VM != "" && t.Adapter != "" {
			*ts = append(*ts, t)
		}
	}
	return nil
}

// Of returns the record of an adapter, nil for none.
func (ts Travels) Of(vm, adapter string) *Travel {
	for _, t := range ts {
		if t.VM == vm && t.Adapter == adapter {
			return t
		}
	}
	return nil
}

// Add makes a record. Of those that are of no port any more, the oldest goes when there are more than most.
func (ts *Travels) Add(vm, adapter string, most int) *Travel {
	t := &Travel{VM: vm, Adapter: adapter}
	for i, old := range *ts {
		if len(*ts) >= most && !old.Serves && !old.Open() {
			*ts = append((*ts)[:i:i], (*ts)[i+1:]...)
			break
		}
	}
	*ts = append(*ts, t)
	return t
}
