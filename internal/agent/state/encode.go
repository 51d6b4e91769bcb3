package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"heddle/internal/host/ownfile"
	"heddle/internal/spec"
	"heddle/internal/uplinks/teaming/failover"
)

// The lists of a state are as long as the host's list of ports, and mostly unchanged since they were last written. The
// text of an unchanged list is reused: encoding a thousand devices takes longer than everything else that a change
// needs.

// list is one of those lists as it was last written.
type list[T any] struct {
	of       []T
	from, to int // byte offsets of its text in the state's
}

// written is the text of a state, with the positions of its lists.
type written struct {
	text    []byte
	ports   list[spec.Port]
	numbers list[Number]
	uses    list[failover.PortUse]
	held    list[Held]
}

// head is a state without its long lists: its fields hide those of the same names.
type head struct {
	*State
	Ports   struct{} `json:"ports,omitzero"`
	Numbers struct{} `json:"numbers,omitzero"`
	Uses    struct{} `json:"uses,omitzero"`
	Held    struct{} `json:"held,omitzero"`
}

// encode encodes a state; was is the one written before.
func encode(was *written, st *State) (*written, error) {
	b, err := json.Marshal(head{State: st})
	if err != nil {
		return nil, fmt.Errorf("write the agent's state: %w", err)
	}
	w := &written{text: make([]byte, 0, max(len(was.text), len(b))+1<<10)}
	w.text = append(w.text, b[:len(b)-1]...) // without the closing bracket
	// Ports, numbers and uses are replaced and never changed in place; held devices are changed in place.
	ports, numbers := spec.SamePorts(was.ports.of, st.Ports), slices.Equal(was.numbers.of, st.Numbers)
	uses, held := slices.EqualFunc(was.uses.of, st.Uses, sameUse), slices.EqualFunc(was.held.of, st.Held, sameHeld)
	err = errors.Join(
		add(w, "ports", &w.ports, st.Ports, was, &was.ports, ports),
		add(w, "numbers", &w.numbers, st.Numbers, was, &was.numbers, numbers),
		add(w, "uses", &w.uses, st.Uses, was, &was.uses, uses),
		add(w, "held", &w.held, st.Held, was, &was.held, held),
	)
	if err != nil {
		return nil, fmt.Errorf("write the agent's state: %w", err)
	}
	if held {
		w.held.of = was.held.of
	} else {
		w.held.of = slices.Clone(st.Held)
	}
	w.text = ownfile.Seal(w.text)
	return w, nil
}

// add appends a list, reusing the earlier text if the list is the same. An empty list is encoded anew.
func add[T any](w *written, name string, l *list[T], of []T, was *written, before *list[T], same bool) error {
	w.text = append(append(append(w.text, `,"`...), name...), `":`...)
	l.of, l.from = of, len(w.text)
	if same && len(of) > 0 {
		w.text = append(w.text, was.text[before.from:before.to]...)
	} else {
		b, err := json.Marshal(of)
		if err != nil {
			return err
		}
		w.text = append(w.text, b...)
	}
	l.to = len(w.text)
	return nil
}

func sameUse(a, b failover.PortUse) bool {
	return a.ID == b.ID && slices.Equal(a.Using, b.Using) && slices.Equal(a.Resting, b.Resting)
}

func sameHeld(a, b Held) bool {
	return a.ID == b.ID && a.Device == b.Device && a.Index == b.Index && a.MAC == b.MAC && a.Own == b.Own &&
		a.Permanent == b.Permanent && a.Made == b.Made && a.Uplink == b.Uplink &&
		a.WasUp == b.WasUp && a.WasPromiscuous == b.WasPromiscuous && a.WasIPv6 == b.WasIPv6 &&
		a.WasARPIgnore == b.WasARPIgnore &&
		slices.Equal(a.Offloads, b.Offloads) && a.Tuned == b.Tuned && a.Prepared == b.Prepared
}
