package state

import (
	"encoding/json"
	"slices"
	"time"

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
	// Aside are moves from it in whose place another one was ordered while they were under way, the newest last: one of
	// them goes on where that one ends without the guest.
	Aside []*moves.Away `json:"aside,omitzero"`
	// Past are earlier moves, the oldest first.
	Past []moves.Track `json:"past,omitzero"`
}

// maxPast bounds how many earlier moves are remembered of an adapter, maxAside how many are set aside.
const (
	maxPast  = 8
	maxAside = 4
)

// Shelve adds a move to the earlier ones.
func (t *Travel) Shelve(m moves.Track) {
	t.Past = append(t.Past, m)
	t.Past = t.Past[max(0, len(t.Past)-maxPast):]
}

// Ordered puts an ordered move in the place of the last one from this host. A controller that has not heard that a move
// was cancelled orders it late, perhaps of a source that has never heard of it at all: so the one that is under way is
// set aside, and goes on where the target of the other one turns out to have no such move, or does not answer.
func (t *Travel) Ordered(next *moves.Away) {
	was := t.Away
	if t.Away = next; was == nil || was == next {
		return
	}
	t.Aside = slices.DeleteFunc(slices.Clone(t.Aside), func(a *moves.Away) bool { return a == next })
	if was.Over() || next.Left { // what the port had goes to the new target
		for _, a := range append(slices.Clip(t.Aside), was) {
			t.Shelve(a.Track)
		}
		t.Aside = nil
		return
	}
	t.Aside = append(t.Aside, was)
	for len(t.Aside) > maxAside {
		t.Shelve(t.Aside[0].Track)
		t.Aside = t.Aside[1:]
	}
}

// SetAside is a move that was set aside; nil for none.
func (t *Travel) SetAside(move string) *moves.Away {
	for _, a := range t.Aside {
		if a.Move == move {
			return a
		}
	}
	return nil
}

// Returns has the newest move that was set aside go on, after what is known of the guest by the one in its place, which
// has been cancelled, or whose target does not answer: that one is tried again in its turn. Once the guest has gone by
// a move, those that were set aside are over.
func (t *Travel) Returns(was moves.Away, at time.Time) bool {
	if len(t.Aside) == 0 {
		return false
	}
	if t.Away.Phase == moves.Released {
		for _, a := range t.Aside {
			t.Shelve(a.Track)
		}
		t.Aside = nil
		return false
	}
	last := len(t.Aside) - 1
	back, now := t.Aside[last], t.Away
	t.Aside = slices.Clone(t.Aside[:last])
	if back.TakesOver(was, at); now.Over() {
		t.Shelve(now.Track)
	} else {
		t.Aside = append([]*moves.Away{now}, t.Aside...)
	}
	t.Away = back
	return true
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
