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
	// Switch is the one that the object belongs to; "" of a switch itself and of the host.
	Switch string `json:"switch,omitempty"`
	// Name is the object's; the host has none.
	Name string `json:"name,omitempty"`
}

// String names the object to people: "switch lab", "port group lab/web", "port vm1/eth0".
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
	// Field is the field's path inside the object; "" when the whole object comes or goes.
	Field string `json:"field,omitempty"`
	// Old and New are the field's values in its own type; none where the field comes or goes.
	Old plan.FieldValue `json:"old,omitzero"`
	New plan.FieldValue `json:"new,omitzero"`
	// Unit is what a number counts: "seconds", "MACs".
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

// Values returns the values of the field that comes, goes or is another: "100 → 200".
func (c Change) Values() string {
	switch c.Kind {
	case Added:
		return c.New.Flow()
	case Removed:
		return c.Old.Flow()
	}
	return c.Old.Flow() + " → " + c.New.Flow()
}

// UnmarshalJSON is the inverse of what is written: the unit tells a duration from a number.
func (c *Change) UnmarshalJSON(b []byte) error {
	type plain Change
	if err := json.Unmarshal(b, (*plain)(c)); err != nil {
		return fmt.Errorf("a change: %w", err)
	}
	c.Old, c.New = c.Old.In(c.Unit), c.New.In(c.Unit)
	return nil
}

// EffectKind is what changes mean for ports.
type EffectKind string

// The kinds of effects.
const (
	EffectConnected    EffectKind = "connected"
	EffectDisconnected EffectKind = "disconnected"
	EffectChanged      EffectKind = "changed" // a value of theirs is another
)

// Effect is what changes mean for the ports of a port group that they mean the same for.
type Effect struct {
	Kind   EffectKind `json:"kind"`
	Switch string     `json:"switch"`
	// PortGroup is the one that the ports are in afterwards; of ports that go, before.
	PortGroup string `json:"portGroup"`
	// Ports is how many they are; Port names the one of one.
	Ports int    `json:"ports"`
	Port  string `json:"port,omitempty"`
	// Of EffectChanged: Field is the policy field, "device" or "portGroup"; Old and New are its effective values.
	Field string          `json:"field,omitempty"`
	Old   plan.FieldValue `json:"old,omitzero"`
	New   plan.FieldValue `json:"new,omitzero"`
	// Unit is what a number counts: "seconds", "MACs".
	Unit string `json:"unit,omitempty"`
	// Text says it to people: "12 ports of port group lab/web change vlan access 100 → access 200".
	Text string `json:"text"`
}

// UnmarshalJSON is the inverse of what is written.
func (e *Effect) UnmarshalJSON(b []byte) error {
	type plain Effect
	if err := json.Unmarshal(b, (*plain)(e)); err != nil {
		return fmt.Errorf("an effect: %w", err)
	}
	e.Old, e.New = e.Old.In(e.Unit), e.New.In(e.Unit)
	return nil
}
