package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The JSON form of a plan: values are written as in the configuration file, so that what the agent's API returns can be
// read without this package. Reading it gives the same plan.

// MarshalText writes the id as "switch/name"; a switch's name contains no slash.
func (id PortID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (id *PortID) UnmarshalText(b []byte) error {
	sw, name, ok := strings.Cut(string(b), "/")
	if !ok || sw == "" || name == "" {
		return fmt.Errorf("%q is not a port of a switch, such as lab/vm1/eth0", b)
	}
	*id = PortID{sw, name}
	return nil
}

// valueJSON is the form of a Value; a duration is written as text.
type valueJSON[T any] struct {
	Value T     `json:"value"`
	From  Level `json:"from"`
}

// MarshalJSON writes {"value": …, "from": …}, durations as "10m".
func (v Value[T]) MarshalJSON() ([]byte, error) {
	if d, ok := any(v.V).(time.Duration); ok {
		return json.Marshal(valueJSON[string]{duration(d), v.From})
	}
	return json.Marshal(valueJSON[T]{v.V, v.From})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (v *Value[T]) UnmarshalJSON(b []byte) error {
	if d, ok := any(&v.V).(*time.Duration); ok {
		var j valueJSON[string]
		err := json.Unmarshal(b, &j)
		if err != nil {
			return err
		}
		v.From = j.From
		*d, err = time.ParseDuration(j.Value)
		return err
	}
	var j valueJSON[T]
	err := json.Unmarshal(b, &j)
	v.V, v.From = j.Value, j.From
	return err
}

// vlanJSON is the form of a VLAN policy: mode says which of the other fields are set.
type vlanJSON struct {
	Mode   string   `json:"mode"`
	Access uint16   `json:"access,omitempty"`
	Trunk  *VLANSet `json:"trunk,omitempty"`
	Outer  string   `json:"outer,omitempty"`
}

// MarshalJSON writes {"mode": "none"}, {"mode": "access", "access": 100} or {"mode": "trunk", "trunk": […], "outer":
// "802.1q"}.
func (w VLAN) MarshalJSON() ([]byte, error) {
	j := vlanJSON{Mode: w.Mode.String()}
	switch w.Mode {
	case VLANAccess:
		j.Access = w.ID
	case VLANTrunk:
		j.Trunk, j.Outer = &w.Set, w.outer()
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (w *VLAN) UnmarshalJSON(b []byte) error {
	var j vlanJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*w = VLAN{Mode: VLANUnknown}
	switch {
	case j.Mode == VLANTrunk.String() && j.Trunk != nil:
		*w = VLAN{Mode: VLANTrunk, Set: *j.Trunk, AD: j.Outer == outerAD}
	case j.Mode == VLANAccess.String():
		*w = VLAN{Mode: VLANAccess, ID: j.Access}
	case j.Mode == VLANNone.String():
		*w = VLAN{Mode: VLANNone}
	}
	return nil
}

// The tag protocols of a trunk, as the configuration file names them.
const (
	outerQ  = "802.1q"
	outerAD = "802.1ad"
)

func (w VLAN) outer() string {
	if w.AD {
		return outerAD
	}
	return outerQ
}

// VLANRange is VLANs from First to Last; 0 stands for untagged frames.
type VLANRange struct {
	First uint16 `json:"first"`
	Last  uint16 `json:"last"`
}

// Ranges returns the VLANs of the set, in order.
func (s *VLANSet) Ranges() []VLANRange {
	out := []VLANRange{}
	for v := uint16(0); v < 4095; v++ {
		switch n := len(out); {
		case !s.Has(v):
		case n > 0 && out[n-1].Last+1 == v:
			out[n-1].Last = v
		default:
			out = append(out, VLANRange{v, v})
		}
	}
	return out
}

// MarshalJSON writes the set as ranges: [{"first": 0, "last": 0}, {"first": 10, "last": 20}].
func (s VLANSet) MarshalJSON() ([]byte, error) { return json.Marshal(s.Ranges()) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (s *VLANSet) UnmarshalJSON(b []byte) error {
	var list []VLANRange
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*s = VLANSet{}
	for _, r := range list {
		if r.First > r.Last || r.Last > 4094 {
			return fmt.Errorf("there is no range of VLANs %d-%d", r.First, r.Last)
		}
		s.AddRange(r.First, r.Last)
	}
	return nil
}

// String is unknown, yes or no.
func (a Asks) String() string {
	switch a {
	case AsksYes:
		return "yes"
	case AsksNo:
		return "no"
	}
	return "unknown"
}

// MarshalText writes unknown, yes or no.
func (a Asks) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (a *Asks) UnmarshalText(b []byte) error {
	for _, known := range []Asks{AsksUnknown, AsksYes, AsksNo} {
		if known.String() == string(b) {
			*a = known
			return nil
		}
	}
	return fmt.Errorf("%q is none of unknown, yes, no", b)
}
