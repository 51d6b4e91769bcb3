package api

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Counters are counters in the order in which they are shown. In JSON they are an object: {"packetsInUnicast": 12, …}.
type Counters []Counter

// Counter is one counter; it has VMware's name if VMware has the same counter.
type Counter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// ReasonCounts count frames or copies by reason, in the order of the reasons. In JSON they are an object:
// {"forged-transmit": 7}.
type ReasonCounts []ReasonNo

// ReasonNo counts frames dropped, or copies refused, for one reason.
type ReasonNo struct {
	Reason string `json:"reason"`
	Value  uint64 `json:"value"`
}

// MarshalJSON writes an object.
func (c Counters) MarshalJSON() ([]byte, error) {
	return writeCounts(len(c), func(i int) (string, uint64) { return c[i].Name, c[i].Value })
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Counters) UnmarshalJSON(b []byte) error {
	*c = Counters{}
	return readCounts(b, func(name string, n uint64) { *c = append(*c, Counter{name, n}) })
}

// MarshalJSON writes an object.
func (c ReasonCounts) MarshalJSON() ([]byte, error) {
	return writeCounts(len(c), func(i int) (string, uint64) { return c[i].Reason, c[i].Value })
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *ReasonCounts) UnmarshalJSON(b []byte) error {
	*c = ReasonCounts{}
	return readCounts(b, func(name string, n uint64) { *c = append(*c, ReasonNo{name, n}) })
}

func writeCounts(n int, at func(int) (string, uint64)) ([]byte, error) {
	b := []byte{'{'}
	for i := range n {
		name, value := at(i)
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(append(b, key...), ":%d", value)
	}
	return append(b, '}'), nil
}

func readCounts(b []byte, add func(string, uint64)) error {
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("counters are an object of names and numbers: %w", err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var n uint64
		if err := d.Decode(&n); err != nil {
			return fmt.Errorf("counter %v: %w", key, err)
		}
		add(fmt.Sprint(key), n)
	}
	return nil
}

// Value returns the counter of that name, 0 if there is none.
func (c Counters) Value(name string) uint64 {
	for _, n := range c {
		if n.Name == name {
			return n.Value
		}
	}
	return 0
}

// Value returns the count of a reason.
func (c ReasonCounts) Value(reason string) uint64 {
	for _, r := range c {
		if r.Reason == reason {
			return r.Value
		}
	}
	return 0
}
