package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"heddle/internal/spec"
)

// The JSON form of a plan: values as a person writes them in the configuration file, so that what the agent's API
// returns can be read without this package. It reads back to the same plan.

// MarshalText writes the id as "switch/name"; a switch's name holds no slash.
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

// vlanJSON is the form of a VLAN policy, that of the configuration file with the trunk's ranges joined.
type vlanJSON struct {
	None   bool     `json:"none,omitempty"`
	Access uint16   `json:"access,omitempty"`
	Trunk  *VLANSet `json:"trunk,omitempty"`
	Outer  string   `json:"outer,omitempty"`
}

// MarshalJSON writes {"none": true}, {"access": 100} or {"trunk": "0,10-20", "outer": "802.1q"}.
func (w VLAN) MarshalJSON() ([]byte, error) {
	switch w.Mode {
	case VLANAccess:
		return json.Marshal(vlanJSON{Access: w.ID})
	case VLANTrunk:
		return json.Marshal(vlanJSON{Trunk: &w.Set, Outer: w.outer()})
	}
	return json.Marshal(vlanJSON{None: true})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (w *VLAN) UnmarshalJSON(b []byte) error {
	var j vlanJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	switch {
	case j.Trunk != nil:
		*w = VLAN{Mode: VLANTrunk, Set: *j.Trunk, AD: j.Outer == outerAD}
	case j.Access != 0:
		*w = VLAN{Mode: VLANAccess, ID: j.Access}
	default:
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

// MarshalText writes the set as ranges: "0,10-20".
func (s VLANSet) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (s *VLANSet) UnmarshalText(b []byte) error {
	*s = VLANSet{}
	if len(b) == 0 {
		return nil
	}
	for part := range strings.SplitSeq(string(b), ",") {
		r, err := spec.ParseVLANRange(part)
		if err != nil {
			return fmt.Errorf("%q: %w", part, err)
		}
		s.AddRange(r.Lo, r.Hi)
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
