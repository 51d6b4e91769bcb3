package api

import (
	"encoding/json"
	"fmt"

	"heddle/internal/plan"
)

// ObjectKind is the kind of an object of the configuration.
type ObjectKind string

// The kinds of objects.
const (
	HostObject      ObjectKind = "host" // the settings of the whole host
	SwitchObject    ObjectKind = "switch"
	PortGroupObject ObjectKind = "port group"
	UplinkObject    ObjectKind = "uplink"
	PortObject      ObjectKind = "port"
)

// ObjectRef names an object of the configuration.
type ObjectRef struct {
	Kind ObjectKind `json:"kind"`
	// Switch is the switch of the object; "" for a switch itself and for the host.
	Switch string `json:"switch,omitempty"`
	// Name is the name of the object; the host has none.
	Name string `json:"name,omitempty"`
}

// String names the object for people: "switch lab", "port group lab/web", "port vm1/eth0".
func (o ObjectRef) String() string {
	switch o.Kind {
	case HostObject:
		return string(o.Kind)
	case PortGroupObject, UplinkObject:
		return string(o.Kind) + " " + o.Switch + "/" + o.Name
	}
	return string(o.Kind) + " " + o.Name
}

// ChangeKind is what happens to an object or a field.
type ChangeKind string

// The kinds of change; their values are the marks of a diff.
const (
	Added   ChangeKind = "+"
	Removed ChangeKind = "-"
	Changed ChangeKind = "~"
)

// Change is one difference between two configurations.
type Change struct {
	Kind ChangeKind `json:"kind"`
	// Object is what changes.
	Object ObjectRef `json:"object"`
	// Field is the field's path inside the object; "" if the whole object is added or removed.
	Field string `json:"field,omitempty"`
	// Old and New are the field's values in its own type; none if the field is added or removed.
	Old plan.FieldValue `json:"old,omitzero"`
	New plan.FieldValue `json:"new,omitzero"`
	// Unit is the unit of a number: "seconds", "MACs".
	Unit string `json:"unit,omitempty"`
}

// String returns the change on one line: "~ port group lab/web vlan.access: 100 → 200".
func (c Change) String() string {
	what := string(c.Kind) + " " + c.Object.String()
	if c.Field == "" {
		return what
	}
	return what + " " + c.Field + ": " + c.Values()
}

// Values returns the values of the field that is added, removed or changed: "100 → 200".
func (c Change) Values() string {
	switch c.Kind {
	case Added:
		return c.New.Flow()
	case Removed:
		return c.Old.Flow()
	}
	return c.Old.Flow() + " → " + c.New.Flow()
}

// UnmarshalJSON reads what MarshalJSON writes: the unit distinguishes a duration from a number.
func (c *Change) UnmarshalJSON(b []byte) error {
	type plain Change
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return fmt.Errorf("a change: %w", err)
	}
	c.Old, c.New = c.Old.In(c.Unit), c.New.In(c.Unit)
	return nil
}

// EffectKind is the kind of a change's effect on ports.
type EffectKind string

// The kinds of effects.
const (
	EffectConnected    EffectKind = "connected"
	EffectDisconnected EffectKind = "disconnected"
	EffectChanged      EffectKind = "changed" // an effective value changes
	// EffectRestored: somebody else had taken away what the configuration gives a port, and it is there again.
	EffectRestored EffectKind = "restored"
)

// Effect is the effect of changes on those ports of a port group for which it is the same.
type Effect struct {
	Kind   EffectKind `json:"kind"`
	Switch string     `json:"switch"`
	// PortGroup is the port group of the ports afterwards; for removed ports, before.
	PortGroup string `json:"portGroup"`
	// Ports is the number of ports; Port is the name if it is only one.
	Ports int    `json:"ports"`
	Port  string `json:"port,omitempty"`
	// For EffectChanged: Field is the policy field, "device" or "portGroup"; Old and New are its effective values.
	Field string          `json:"field,omitempty"`
	Old   plan.FieldValue `json:"old,omitzero"`
	New   plan.FieldValue `json:"new,omitzero"`
	// Unit is the unit of a number: "seconds", "MACs".
	Unit string `json:"unit,omitempty"`
	// Text describes it for people: "12 ports of port group lab/web change vlan access 100 → access 200".
	Text string `json:"text"`
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Effect) UnmarshalJSON(b []byte) error {
	type plain Effect
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return fmt.Errorf("an effect: %w", err)
	}
	e.Old, e.New = e.Old.In(e.Unit), e.New.In(e.Unit)
	return nil
}
