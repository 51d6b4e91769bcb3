package plan

import (
	"net/netip"
	"time"

	"heddle/internal/plan/problem"
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
	FromUplink    Level = "uplink" // for the settings of an uplink, which inherits nothing
)

// Value is an effective value and the level that set it.
type Value[T any] struct {
	V    T     `json:"value"`
	From Level `json:"from"`
}

// Plan is one host's resolved desired state. The order of its lists is the order of the file.
type Plan struct {
	Switches []*Switch `json:"switches"`
	// MACTable is how many learned MACs the host's table can hold: see SetMACTable.
	MACTable int `json:"macTable"`
}

// Switch is one switch with its uplinks and ports.
type Switch struct {
	Name                   string    `json:"name"`
	Kind                   spec.Kind `json:"kind"`
	MTU                    int       `json:"mtu"` // bytes, layer 3
	ReversePath            bool      `json:"reversePath"`
	ReversePathPromiscuous bool      `json:"reversePathPromiscuous"`
	BlockGuestBPDU         bool      `json:"blockGuestBPDU"`
	// UpDelay is how long an uplink's link must stay up before the uplink is used again.
	UpDelay time.Duration `json:"upDelay"`
	LLDP    spec.LLDPMode `json:"lldp"`
	// HealthCheck: hosts probe the physical network.
	HealthCheck bool      `json:"healthCheck,omitzero"`
	IPFIX       IPFIX     `json:"ipfix"`
	LAGs        []*LAG    `json:"lags,omitzero"`
	Uplinks     []*Uplink `json:"uplinks"`
	// Tunnel carries the overlay segments; nil for a switch without.
	Tunnel *Tunnel `json:"tunnel,omitzero"`
	Ports  []*Port `json:"ports"`
}

// LAG is a link aggregation group: one entry of a team, whose frames are spread over its usable members.
type LAG struct {
	Name     string           `json:"name"`
	Uplinks  []string         `json:"uplinks"` // members, in order
	Mode     spec.LACPMode    `json:"mode"`
	Timeout  spec.LACPTimeout `json:"timeout"`
	Hash     spec.LAGHash     `json:"hash"`
	Fallback spec.LAGFallback `json:"fallback"`
}

// Uplink is a named uplink and the device it is bound to on this host.
type Uplink struct {
	ID PortID `json:"id"`
	// Number is the uplink's id on its host. Ports and uplinks share the numbers.
	Number     uint32     `json:"number"`
	Device     string     `json:"device,omitzero"` // "" when this host binds none
	VLANs      VLANSet    `json:"vlans"`
	Blocked    bool       `json:"blocked"`
	Drained    bool       `json:"drained,omitzero"` // no team uses it; frames that arrive on it are accepted
	Monitoring Monitoring `json:"monitoring"`
}

// Usable reports whether frames of ports may leave by the uplink, given the state f of its device.
func (u *Uplink) Usable(f Fact) bool { return f.Usable() && !u.Drained }

// Port is a port with its effective policy.
type Port struct {
	ID        PortID `json:"id"`
	PortGroup string `json:"portGroup"`
	// VNI is the overlay segment of the port group, 0 for none: frames leave by the switch's tunnel instead of an
	// uplink, and the VLAN policy is about VLANs inside the segment.
	VNI  uint32    `json:"vni,omitzero"`
	Role spec.Role `json:"role"`
	// Owner is the guest that the port belongs to; "" if it is not known.
	Owner string `json:"owner,omitzero"`
	// Domain is the UUID, in lower case, of the libvirt domain that the port belongs to; "" for none.
	Domain string `json:"domain,omitzero"`
	// Number is the port's id on its host, which corresponds to a VDS port id: assigned once, kept for the port's
	// life, never 0. The originating-port policy hashes it (D10).
	Number uint32 `json:"number"`
	Device string `json:"device,omitzero"`
	// InitialMAC is the configured MAC; zero if neither the file nor the device gives one.
	InitialMAC MAC  `json:"initialMAC,omitzero"`
	TxUplink   bool `json:"txUplink,omitzero"`
	// Policy is shared by the ports with the same policy: do not change it, replace it as a whole.
	Policy *Effective `json:"policy"`
	// Addresses and MTU (in bytes) are for a host port's interface.
	Addresses []string `json:"addresses,omitzero"`
	MTU       int      `json:"mtu,omitzero"`
	// Gateway, Metric and Table are the default route of that interface; "" for none. A table of 0 is the main one.
	Gateway string `json:"gateway,omitzero"`
	Metric  int    `json:"metric,omitzero"`
	Table   int    `json:"table,omitzero"`
	// Monitor is the QEMU monitor that shows the adapter of a guest.
	Monitor spec.Monitor `json:"monitor,omitzero"`
	// MACShare is the port's quota of learned MACs in the host's table, 0 = as many as its limit: see
	// Plan.SetMACTable.
	MACShare int `json:"macShare,omitzero"`
}

// Effective is a port's effective policy.
type Effective struct {
	Blocked         Value[bool] `json:"blocked"`
	VLAN            Value[VLAN] `json:"vlan"`
	Promiscuous     Value[bool] `json:"promiscuous"` // true = accept
	MACChanges      Value[bool] `json:"macChanges"`
	ForgedTransmits Value[bool] `json:"forgedTransmits"`
	LoopDetection   Value[bool] `json:"loopDetection"`
	// GuestLinkControl are the link control protocols that the owner may send.
	GuestLinkControl     Value[[]string] `json:"guestLinkControl"`
	AddressGuard         AddressGuard    `json:"addressGuard"`
	DHCPServer           Value[bool]     `json:"dhcpServer"`
	RouterAdvertisements Value[bool]     `json:"routerAdvertisements"`
	Learning             Learning        `json:"learning"`
	Teaming              Teaming         `json:"teaming"`
	Monitoring           Monitoring      `json:"monitoring"`
	// StormControl limits the frames of the port's owner to more than one receiver.
	StormControl StormControl `json:"stormControl"`
}

// AddressGuard is the effective policy about the IP addresses that the owner uses.
type AddressGuard struct {
	Enabled Value[bool] `json:"enabled"`
	// Addresses are addresses and prefixes.
	Addresses Value[[]string] `json:"addresses"`
}

// StormControl is the effective storm control policy: rates in frames per second, 0 = no limit, and a burst: how many
// frames may come at once, given as the time in which the rate allows that many.
type StormControl struct {
	Broadcast      Value[int]           `json:"broadcast"`
	Multicast      Value[int]           `json:"multicast"`
	UnknownUnicast Value[int]           `json:"unknownUnicast"`
	Burst          Value[time.Duration] `json:"burst"`
}

// Monitoring is the effective monitoring policy.
type Monitoring struct {
	IPFIX   Value[bool]         `json:"ipfix"`
	Observe Value[spec.Observe] `json:"observe"`
}

// Ingress reports whether flows into the switch are metered.
func (m Monitoring) Ingress() bool { return m.IPFIX.V && m.Observe.V != spec.ObserveEgress }

// Egress reports whether flows out of the switch are metered.
func (m Monitoring) Egress() bool { return m.IPFIX.V && m.Observe.V != spec.ObserveIngress }

// Learning is the effective MAC learning policy.
type Learning struct {
	Enabled         Value[bool]             `json:"enabled"`
	Limit           Value[int]              `json:"limit"`
	LimitPolicy     Value[spec.LimitPolicy] `json:"limitPolicy"`
	Ageing          Value[time.Duration]    `json:"ageing"`
	UnicastFlooding Value[bool]             `json:"unicastFlooding"`
}

// Teaming is the effective teaming policy. Active and Standby name uplinks of the switch; if no level sets Active,
// every uplink of the switch that is neither standby nor a LAG's member is active, in the order of the file. Both lists
// may name a LAG.
type Teaming struct {
	Policy           Value[spec.TeamingPolicy]    `json:"policy"`
	Active           Value[[]string]              `json:"active"`
	Standby          Value[[]string]              `json:"standby"`
	Failback         Value[bool]                  `json:"failback"`
	NotifySwitches   Value[bool]                  `json:"notifySwitches"`
	FailureDetection Value[spec.FailureDetection] `json:"failureDetection"`
}

// VLANMode says how a port handles tags.
type VLANMode uint8

// The VLAN modes.
const (
	VLANNone   VLANMode = iota // EST: untagged segment
	VLANAccess                 // VST: one VLAN
	VLANTrunk                  // VGT: listed VLANs with their tags
	// VLANUnknown is a mode that a newer agent may send; no plan has it.
	VLANUnknown
)

// VLAN is an effective VLAN policy.
type VLAN struct {
	Mode VLANMode
	ID   uint16  // 1–4094 for VLANAccess
	Set  VLANSet // for VLANTrunk
	AD   bool    // trunk whose outer tags are 802.1ad
}

// Facts are the states of the devices behind ports. They change independently of the plan; the model and the dataplane
// both take them in addition to it. A port or uplink without an entry has no device.
type Facts map[PortID]Fact

// Fact is the state of one port's or uplink's device.
type Fact struct {
	// Up: the device and, where it can be seen, its owner's end are up and have carrier.
	Up bool `json:"up"`
	// MTU is the smaller one of the device and its owner's end, in bytes of layer 3.
	MTU int `json:"mtu"`
	// DeviceMAC is an uplink device's own MAC: frames to it are the host's (S96).
	DeviceMAC MAC `json:"deviceMAC,omitzero"`
	// HostTraffic: the host itself has addresses on the uplink's device, or on a device stacked on it (S96).
	HostTraffic bool `json:"hostTraffic,omitzero"`
	// SeenMAC is the MAC that the owner's adapter is seen to use (D2); zero if it can't be seen.
	SeenMAC MAC `json:"seenMAC,omitzero"`
	// Promiscuous says whether the owner's adapter asks for promiscuous mode (D1).
	Promiscuous Asks `json:"promiscuous,omitzero"`
	// Wait is the number of the port's last wait for a guest that runs elsewhere: a migration is about to bring it,
	// or has just taken it away (S99). Every wait of a host has a higher number than those before; 0 = none. The
	// port's first frame ends the wait.
	Wait uint32 `json:"wait,omitzero"`
	// Left: that wait is for a guest that was here and has left. Otherwise one is to arrive.
	Left bool `json:"left,omitzero"`
	// Endpoints are the outer addresses of a tunnel that can be used now, in the order of its endpoints: each is an
	// address that this host has, on a device that is up. MTU then is that of the underlay, the smallest of theirs.
	Endpoints []netip.Addr `json:"endpoints,omitzero"`
	// Awake: that wait is known to have ended.
	Awake bool `json:"awake,omitzero"`
	// Out says why an uplink is not used although it is up: it must stay up for a while first, its beacons get
	// lost, or LACP has not bundled it. nil = it is used. Frames that arrive on it count all the same.
	Out *problem.Problem `json:"out,omitzero"`
	// Resting names uplinks and LAGs that came back but that this port does not use while another is usable
	// (failback off, S44).
	Resting []string `json:"resting,omitzero"`
	// LoopBlocked says why Heddle has blocked the port for now: a loop goes through it. nil = it has not.
	LoopBlocked *problem.Problem `json:"loopBlocked,omitzero"`
	// Assigned is the uplink to which load-based teaming has moved this port (S47); "" = the one that its number
	// selects.
	Assigned string `json:"assigned,omitzero"`
}

// Waits reports whether the port waits for its guest, as far as is known here.
func (f Fact) Waits() bool { return f.Wait != 0 && !f.Awake }

// Usable reports whether frames may leave by the device of that fact, where its uplink is not drained.
func (f Fact) Usable() bool { return f.Up && f.Out == nil }

// Asks says whether something is requested, as far as that can be seen.
type Asks uint8

// The values of Asks.
const (
	AsksUnknown Asks = iota
	AsksYes
	AsksNo
)
