// Package plan resolves a configuration into what a host shall do: for every port its effective policy, field by field
// with the level it came from, in the user's words. A Plan is a pure value. Package model interprets it; package dataplane
// compiles it into kernel tables; neither sees the other's form of it.
package plan

import (
	"time"

	"heddle/internal/spec"
)

// PortID names a port or an uplink of a host. Ports and uplinks of a switch share one namespace.
type PortID struct{ Switch, Name string }

func (id PortID) String() string { return id.Switch + "/" + id.Name }

// Level is where an effective value came from.
type Level string

// The levels of inheritance, lowest priority first.
const (
	FromBuiltIn   Level = "built-in default"
	FromSwitch    Level = "switch"
	FromPortGroup Level = "port group"
	FromPort      Level = "port"
)

// Value is an effective value and the level that set it.
type Value[T any] struct {
	V    T
	From Level
}

// Plan is one host's resolved desired state. The order of its lists is the order of the file.
type Plan struct {
	Switches []*Switch
}

// Switch is one switch with its uplinks and ports.
type Switch struct {
	Name                   string
	Kind                   spec.Kind
	MTU                    int // bytes, layer 3
	ReversePath            bool
	ReversePathPromiscuous bool
	BlockGuestBPDU         bool
	Uplinks                []*Uplink
	Ports                  []*Port
}

// Uplink is a named uplink and the device it is bound to on this host.
type Uplink struct {
	ID      PortID
	Device  string // "" when this host binds none
	VLANs   VLANSet
	Blocked bool
}

// Port is a port with its effective policy.
type Port struct {
	ID        PortID
	PortGroup string
	Role      spec.Role
	// Number is the port's id on its host, as a VDS shows it: given once, kept for the port's life, never 0. The
	// originating-port policy hashes it (D10).
	Number uint32
	Device string
	// InitialMAC is the configured MAC; zero when neither the file nor the device tells one.
	InitialMAC MAC
	TxUplink   bool
	Policy     Effective
	// Addresses, MTU: for a host port's interface.
	Addresses []string
	MTU       int
}

// Effective is a port's effective policy.
type Effective struct {
	Blocked         Value[bool]
	VLAN            Value[VLAN]
	Promiscuous     Value[bool] // true = accept
	MACChanges      Value[bool]
	ForgedTransmits Value[bool]
	Learning        Learning
	Teaming         Teaming
	Monitoring      Monitoring
}

// Monitoring is the effective monitoring policy.
type Monitoring struct {
	IPFIX Value[bool]
}

// Learning is the effective MAC learning policy.
type Learning struct {
	Enabled         Value[bool]
	Limit           Value[int]
	LimitPolicy     Value[spec.LimitPolicy]
	Ageing          Value[time.Duration]
	UnicastFlooding Value[bool]
}

// Teaming is the effective teaming policy. Active and Standby name uplinks of the switch; when no level sets Active,
// every uplink of the switch that is not standby is active, in the order of the file.
type Teaming struct {
	Policy  Value[spec.TeamingPolicy]
	Active  Value[[]string]
	Standby Value[[]string]
}

// VLANMode is how a port treats tags (semantics §3.1).
type VLANMode uint8

// The VLAN modes.
const (
	VLANNone   VLANMode = iota // EST: untagged segment
	VLANAccess                 // VST: one VLAN
	VLANTrunk                  // VGT: listed VLANs with their tags
)

// VLAN is an effective VLAN policy.
type VLAN struct {
	Mode VLANMode
	ID   uint16  // 1–4094 for VLANAccess
	Set  VLANSet // for VLANTrunk
	AD   bool    // trunk whose outer tags are 802.1ad
}

// Facts are what the host shows of the devices behind ports. They change without the plan changing; the model and the
// dataplane both take them beside it. A port or uplink without an entry has no device.
type Facts map[PortID]Fact

// Fact is the state of one port's or uplink's device.
type Fact struct {
	// Up: the device and, where it can be seen, its owner's end are up and have carrier.
	Up bool
	// MTU is the smaller of the device's and its owner's end's, bytes of layer 3.
	MTU int
	// DeviceMAC is an uplink device's own MAC: frames to it are the host's (S96).
	DeviceMAC MAC
	// SeenMAC is the MAC the owner's adapter is seen to use (D2); zero when it can't be seen.
	SeenMAC MAC
	// Promiscuous says whether the owner's adapter asks for promiscuous mode (D1).
	Promiscuous Asks
}

// Asks is what can be seen of a request.
type Asks uint8

// What can be seen of a request.
const (
	AsksUnknown Asks = iota
	AsksYes
	AsksNo
)
