package spec

// Config is one host's configuration file: its switches and the ports declared on them.
type Config struct {
	// Host are settings of the host as a whole.
	Host HostSettings `yaml:"host,omitempty" json:"host,omitzero"`
	// Switches are the host's switches, at least one.
	Switches []Switch `yaml:"switches" json:"switches"`
	// Ports are the ports declared in the file; ports connected at run time are stored separately, and the file
	// never removes them.
	Ports []Port `yaml:"ports,omitempty" json:"ports,omitzero"`

	src *source // the positions of values in the file; nil for a Config made in memory
}

// HostSettings are settings of the host as a whole.
type HostSettings struct {
	// MACTable is how many learned MACs the ports of all switches may have together: 4096–4194304, default 131072.
	// Each takes some 120 bytes of kernel memory. The table gets its size when the agent starts.
	MACTable int `yaml:"macTable,omitempty" json:"macTable,omitzero"`
}

// Kind says like which of vSphere's two switches a Switch behaves.
type Kind string

// The kinds of switch.
const (
	// Standard is a per-host switch that only knows the MACs of its own ports (a VSS): no MAC learning.
	Standard Kind = "standard"
	// Distributed is one definition for many hosts (a VDS), with MAC learning.
	Distributed Kind = "distributed"
)

// Switch is one virtual switch.
type Switch struct {
	// Name is the switch's name on its host.
	Name string `yaml:"name" json:"name"`
	// Kind is standard or distributed (default).
	Kind Kind `yaml:"kind,omitempty" json:"kind,omitzero"`
	// MTU is the largest layer-3 size the switch carries, in bytes: 1280–9000, default 1500.
	MTU int `yaml:"mtu,omitempty" json:"mtu,omitzero"`
	// Uplinks lead to the physical network; a switch without any is fine.
	Uplinks []Uplink `yaml:"uplinks,omitempty" json:"uplinks,omitzero"`
	// LAGs bundle uplinks by LACP; teaming lists use a LAG like an uplink. Needs a distributed switch.
	LAGs []LAG `yaml:"lags,omitempty" json:"lags,omitzero"`
	// UpDelay is how long an uplink whose link came back must stay up before it is used again, a duration of
	// 0s–30m; default 100ms.
	UpDelay string `yaml:"upDelay,omitempty" json:"upDelay,omitzero"`
	// Discovery is what the switch announces to its neighbours on the uplinks and receives from them.
	Discovery Discovery `yaml:"discovery,omitempty" json:"discovery,omitzero"`
	// HealthCheck has the host send probes to other hosts by the switch's uplinks, which find VLANs and an MTU that the
	// physical network lacks, and ports that it bundles wrongly.
	HealthCheck bool `yaml:"healthCheck,omitempty" json:"healthCheck,omitzero"`
	// Checks belong to the switch, so that they move with the port from host to host.
	Checks Checks `yaml:"checks,omitempty" json:"checks,omitzero"`
	// IPFIX says how the switch's flows are timed, stored and exported.
	IPFIX IPFIX `yaml:"ipfix,omitempty" json:"ipfix,omitzero"`
	// Tunnel carries the switch's overlay segments to other hosts; port groups with overlay need it.
	Tunnel *Tunnel `yaml:"tunnel,omitempty" json:"tunnel,omitzero"`
	// Defaults are the policies every port group inherits.
	Defaults Policy `yaml:"defaults,omitempty" json:"defaults,omitzero"`
	// PortGroups are the switch's port groups; every port belongs to one.
	PortGroups []PortGroup `yaml:"portGroups,omitempty" json:"portGroups,omitzero"`
}

// Checks are the loop and reflection guards of a switch; each is on unless the file says false (section 15, C12).
type Checks struct {
	// ReversePath refuses broadcast and multicast from an uplink that is not the receiver's own, and reflections of
	// this host's own broadcast and multicast (S38, S91).
	ReversePath *bool `yaml:"reversePath,omitempty" json:"reversePath,omitzero"`
	// ReversePathPromiscuous does the same for copies of unicast frames: flooded and promiscuous ones (S39, S40, S91).
	ReversePathPromiscuous *bool `yaml:"reversePathPromiscuous,omitempty" json:"reversePathPromiscuous,omitzero"`
	// BlockGuestBPDU drops spanning-tree frames that guests send (S36).
	BlockGuestBPDU *bool `yaml:"blockGuestBPDU,omitempty" json:"blockGuestBPDU,omitzero"`
}

// LACPMode says which side speaks first.
type LACPMode string

// The LACP modes.
const (
	LACPActive  LACPMode = "active"
	LACPPassive LACPMode = "passive" // answers, but does not begin (S53)
)

// LACPTimeout is how often the peer should send LACPDUs, and how long a silent peer counts as present.
type LACPTimeout string

// The LACP timeouts (IEEE 802.1AX).
const (
	LACPFast LACPTimeout = "fast" // every second, 3 s
	LACPSlow LACPTimeout = "slow" // every 30 s, 90 s
)

// LAGHash names the fields of a frame that choose the member of a LAG.
type LAGHash string

// The hash sets of a LAG; each takes source and destination.
const (
	HashMAC        LAGHash = "mac"
	HashIP         LAGHash = "ip"
	HashIPVLAN     LAGHash = "ip-vlan"
	HashIPPort     LAGHash = "ip-port"
	HashIPPortVLAN LAGHash = "ip-port-vlan"
)

// LAGFallback is what a LAG does while its peer speaks no LACP.
type LAGFallback string

// The fallbacks of a LAG.
const (
	FallbackSingle LAGFallback = "single" // one member carries everything, as a plain uplink would
	FallbackNone   LAGFallback = "none"   // no member is used
)

// LAG is a link aggregation group of the switch's uplinks, negotiated by LACP (S52, S53).
type LAG struct {
	// Name is the LAG's name; it shares one namespace with the switch's uplinks.
	Name string `yaml:"name" json:"name"`
	// Uplinks names the members, at least one and at most 32, in order. A member is in one LAG and in no teaming list.
	Uplinks []string `yaml:"uplinks" json:"uplinks"`
	// Mode is active (default) or passive.
	Mode LACPMode `yaml:"mode,omitempty" json:"mode,omitzero"`
	// Timeout is slow (default) or fast.
	Timeout LACPTimeout `yaml:"timeout,omitempty" json:"timeout,omitzero"`
	// Hash is mac, ip, ip-vlan, ip-port or ip-port-vlan (default).
	Hash LAGHash `yaml:"hash,omitempty" json:"hash,omitzero"`
	// Fallback is single (default) or none.
	Fallback LAGFallback `yaml:"fallback,omitempty" json:"fallback,omitzero"`
}

// LLDPMode is what a switch does with LLDP on its uplinks.
type LLDPMode string

// The LLDP modes.
const (
	LLDPNone      LLDPMode = "none"
	LLDPListen    LLDPMode = "listen"
	LLDPAdvertise LLDPMode = "advertise"
	LLDPBoth      LLDPMode = "both"
)

// Discovery is link discovery on the uplinks.
type Discovery struct {
	// LLDP is listen (default), none, advertise or both.
	LLDP LLDPMode `yaml:"lldp,omitempty" json:"lldp,omitzero"`
}

// Uplink is a host-independent uplink name bound to a device of this host.
type Uplink struct {
	// Name is the uplink's name, the same on every host; teaming lists use it.
	Name string `yaml:"name" json:"name"`
	// Device is the host's device, which serves nothing else. If it is missing, the uplink waits for it.
	Device string `yaml:"device,omitempty" json:"device,omitzero"`
	// VLANs are the ids the uplink carries, in both directions: "10" or "10-20", 0 = untagged. Default "0-4094".
	VLANs []string `yaml:"vlans,omitempty" json:"vlans,omitzero"`
	// Blocked stops every frame of the switch on this uplink (S41), but not the host's own frames on the device.
	Blocked bool `yaml:"blocked,omitempty" json:"blocked,omitzero"`
	// Drained takes the uplink out of every team, for its maintenance: ports use others, and what still arrives on it
	// is accepted.
	Drained bool `yaml:"drained,omitempty" json:"drained,omitzero"`
	// Monitoring is what is metered of the uplink's traffic. An uplink inherits nothing: the switch's defaults are for
	// ports.
	Monitoring Monitoring `yaml:"monitoring,omitempty" json:"monitoring,omitzero"`
}

// PortGroup is a named policy template; ports belong to one.
type PortGroup struct {
	// Name is the port group's name on its switch.
	Name string `yaml:"name" json:"name"`
	// Overlay puts the ports into an overlay segment: their frames leave by the switch's tunnel instead of an uplink,
	// and teaming does not apply. vlan then is about VLANs inside that segment.
	Overlay *Overlay `yaml:"overlay,omitempty" json:"overlay,omitzero"`
	Policy  `yaml:",inline"`
	// Overrides says which policies a single port may set for itself (S9).
	Overrides Overrides `yaml:"overrides,omitempty" json:"overrides,omitzero"`
	// Binding says whose the group's ports are: ephemeral (default), static or elastic. It counts on a host that
	// controllers hand the port group to.
	Binding Binding `yaml:"binding,omitempty" json:"binding,omitzero"`
	// Ports is how many static ports the group has; only in a definition.
	Ports PortCount `yaml:"ports,omitempty" json:"ports,omitzero"`
	// Labels are those that a host must have to serve the port group; none: every host. Only in a definition.
	Labels map[string]string `yaml:"labels,omitempty" json:"labels,omitzero"`
}

// Overrides are the per-port override permissions of a port group.
type Overrides struct {
	// Blocked lets a port be blocked or unblocked by itself; default true.
	Blocked *bool `yaml:"blocked,omitempty" json:"blocked,omitzero"`
	// VLAN lets a port set its own VLAN; default false.
	VLAN bool `yaml:"vlan,omitempty" json:"vlan,omitzero"`
	// Security lets a port set its own security policy; default false.
	Security bool `yaml:"security,omitempty" json:"security,omitzero"`
	// Teaming lets a port set its own teaming; default false.
	Teaming bool `yaml:"teaming,omitempty" json:"teaming,omitzero"`
	// Monitoring lets a port set its own monitoring; default false.
	Monitoring bool `yaml:"monitoring,omitempty" json:"monitoring,omitzero"`
	// StormControl lets a port set its own storm control; default false.
	StormControl bool `yaml:"stormControl,omitempty" json:"stormControl,omitzero"`
	// ResetAtDisconnect drops what the port has set for itself when its owner disconnects (S10); default true.
	ResetAtDisconnect *bool `yaml:"resetAtDisconnect,omitempty" json:"resetAtDisconnect,omitzero"`
}

// Policy is what a level of the inheritance can set. A field that is left out is inherited (D3).
type Policy struct {
	// VLAN says which frames the port accepts and how they are tagged; by default none: untagged frames only.
	VLAN *VLAN `yaml:"vlan,omitempty" json:"vlan,omitzero"`
	// Security says which addresses the owner may use and what it may see.
	Security Security `yaml:"security,omitempty" json:"security,omitzero"`
	// Teaming says which uplink carries the port's frames.
	Teaming Teaming `yaml:"teaming,omitempty" json:"teaming,omitzero"`
	// Blocked lets no frame in or out (S41); default false.
	Blocked *bool `yaml:"blocked,omitempty" json:"blocked,omitzero"`
	// Monitoring is what is metered of the port's traffic.
	Monitoring Monitoring `yaml:"monitoring,omitempty" json:"monitoring,omitzero"`
	// StormControl limits the frames with many receivers that the port sends; there is no limit by default.
	StormControl StormControl `yaml:"stormControl,omitempty" json:"stormControl,omitzero"`
}

// StormControl is the storm control policy: how many frames with more than one receiver the port's owner may send per
// second (D27). Frames above the rate are dropped. A field that is left out is inherited; 0 means no limit.
type StormControl struct {
	// Broadcast is a rate in frames per second: 0–1000000, default 0.
	Broadcast *int `yaml:"broadcast,omitempty" json:"broadcast,omitzero"`
	// Multicast is the rate of multicast frames, which include IPv6 neighbour discovery: 0–1000000, default 0.
	Multicast *int `yaml:"multicast,omitempty" json:"multicast,omitzero"`
	// UnknownUnicast is the rate of unicast frames to destinations that no port is known to have: 0–1000000,
	// default 0.
	UnknownUnicast *int `yaml:"unknownUnicast,omitempty" json:"unknownUnicast,omitzero"`
	// Burst is how many frames may come at once, as the time in which the rate allows that many: a duration of
	// 10ms–2s such as "1s" (default). At least one frame may come.
	Burst string `yaml:"burst,omitempty" json:"burst,omitzero"`
}

// Monitoring is the monitoring policy; a field that is left out is inherited.
type Monitoring struct {
	// IPFIX meters the flows of the port's traffic; default false.
	IPFIX *bool `yaml:"ipfix,omitempty" json:"ipfix,omitzero"`
	// Observe is ingress, egress or both (default).
	Observe Observe `yaml:"observe,omitempty" json:"observe,omitzero"`
}

// VLAN is the VLAN policy; exactly one of none, access and trunk must be given. It is inherited as a whole.
type VLAN struct {
	// None adds and removes no tag: the untagged segment (EST).
	None bool `yaml:"none,omitempty" json:"none,omitzero"`
	// Access puts the port into one VLAN, 1–4094 (VST).
	Access int `yaml:"access,omitempty" json:"access,omitzero"`
	// Trunk passes the listed VLANs with their tags: ids and ranges 0–4094, 0 = untagged (VGT).
	Trunk []string `yaml:"trunk,omitempty" json:"trunk,omitzero"`
	// Outer is the tag protocol of a trunk: "802.1q" (default) or "802.1ad" for QinQ. The two are separate segments.
	Outer string `yaml:"outer,omitempty" json:"outer,omitzero"`
}

// Answer is a security policy's verdict.
type Answer string

// The two answers.
const (
	Accept Answer = "accept"
	Reject Answer = "reject"
)

// Security is the security policy; a field that is left out is inherited.
type Security struct {
	// Promiscuous says whether the owner may ask for frames that are for others (S5–S7); default reject.
	Promiscuous Answer `yaml:"promiscuous,omitempty" json:"promiscuous,omitzero"`
	// MACChanges says whether the owner's adapter may use another MAC than the port's initial one (S3, S4); default
	// reject.
	MACChanges Answer `yaml:"macChanges,omitempty" json:"macChanges,omitzero"`
	// ForgedTransmits says whether frames with another source than the effective MAC may enter (S1, S2); default
	// reject.
	ForgedTransmits Answer `yaml:"forgedTransmits,omitempty" json:"forgedTransmits,omitzero"`
	// LoopDetection blocks the port for a while if frames circulate through its owner (S110); default true.
	LoopDetection *bool `yaml:"loopDetection,omitempty" json:"loopDetection,omitzero"`
	// GuestLinkControl are the link control protocols that the owner may send, as network appliances or guests of a
	// lab do: lacp, lldp, eapol, ptp, cdp, bpdu; default none of them (S97). bpdu is the exception to
	// checks.blockGuestBPDU.
	GuestLinkControl *[]string `yaml:"guestLinkControl,omitempty" json:"guestLinkControl,omitzero"`
	// AddressGuard restricts the owner to its own IP addresses, in IP, ARP and neighbour discovery (S86, S108).
	AddressGuard AddressGuard `yaml:"addressGuard,omitempty" json:"addressGuard,omitzero"`
	// DHCPServer says whether the owner may answer DHCP and DHCPv6 (S87); default accept.
	DHCPServer Answer `yaml:"dhcpServer,omitempty" json:"dhcpServer,omitzero"`
	// RouterAdvertisements says whether the owner may announce itself as an IPv6 router; default accept.
	RouterAdvertisements Answer `yaml:"routerAdvertisements,omitempty" json:"routerAdvertisements,omitzero"`
	// MACLearning learns the addresses behind the port; needs a distributed switch.
	MACLearning MACLearning `yaml:"macLearning,omitempty" json:"macLearning,omitzero"`
}

// AddressGuard says which IP addresses a port's owner may use.
type AddressGuard struct {
	// Enabled drops what the owner sends from addresses that are not listed at its port; default false.
	Enabled *bool `yaml:"enabled,omitempty" json:"enabled,omitzero"`
	// Addresses are the owner's: at most 64 addresses and prefixes, such as "192.0.2.10" and "2001:db8:1::/64". They
	// are listed at the port alone, and an address may be listed at several ports. A host port's own addresses need
	// not be listed.
	Addresses *[]string `yaml:"addresses,omitempty" json:"addresses,omitzero" level:"port"`
}

// The protocols of GuestLinkControl.
const (
	PassLACP  = "lacp"
	PassLLDP  = "lldp"
	PassEAPOL = "eapol"
	PassPTP   = "ptp"
	PassCDP   = "cdp" // and everything else to its address: VTP, DTP, PAgP, UDLD
	PassBPDU  = "bpdu"
)

// LinkControls are all protocols of GuestLinkControl, in the order in which they are shown.
func LinkControls() []string {
	return []string{PassLACP, PassLLDP, PassEAPOL, PassPTP, PassCDP, PassBPDU}
}

// LimitPolicy says what happens to a frame from a new source when the learning limit is reached.
type LimitPolicy string

// The limit policies.
const (
	LimitDrop  LimitPolicy = "drop"  // S15
	LimitAllow LimitPolicy = "allow" // S16
)

// MACLearning is the learning policy; a field that is left out is inherited.
type MACLearning struct {
	// Enabled switches learning on (S12); default false.
	Enabled *bool `yaml:"enabled,omitempty" json:"enabled,omitzero"`
	// Limit is the largest number of MACs learned on the port: 0–4096, default 4096.
	Limit *int `yaml:"limit,omitempty" json:"limit,omitzero"`
	// LimitPolicy is drop (default) or allow.
	LimitPolicy LimitPolicy `yaml:"limitPolicy,omitempty" json:"limitPolicy,omitzero"`
	// Ageing is how long a silent MAC is remembered, a duration of 1s–24h such as "10m" (default).
	Ageing string `yaml:"ageing,omitempty" json:"ageing,omitzero"`
	// UnicastFlooding says whether the port receives frames for unknown unicast destinations; default true.
	UnicastFlooding *bool `yaml:"unicastFlooding,omitempty" json:"unicastFlooding,omitzero"`
}

// TeamingPolicy is how a port's frames choose their uplink.
type TeamingPolicy string

// The teaming policies.
const (
	OriginatingPort TeamingPolicy = "originating-port"
	SourceMAC       TeamingPolicy = "source-mac"
	IPHash          TeamingPolicy = "ip-hash"
	ExplicitOrder   TeamingPolicy = "explicit"
	LoadBased       TeamingPolicy = "load-based" // S47, S48; needs a distributed switch
)

// FailureDetection is how a dead uplink is detected.
type FailureDetection string

// The methods of failure detection.
const (
	DetectLink   FailureDetection = "link"   // the link's state
	DetectBeacon FailureDetection = "beacon" // also beacon probing (S51)
)

// Teaming is the teaming policy; a field that is left out is inherited. An explicit empty list means "none"; an uplink
// in neither list is unused.
type Teaming struct {
	// Policy is originating-port (default), source-mac, ip-hash, explicit or load-based (D10, S43, S46–S48). A
	// LAG's own hash has priority over it.
	Policy TeamingPolicy `yaml:"policy,omitempty" json:"policy,omitzero"`
	// Active names the uplinks in use, in order, or one LAG alone. By default it is every uplink of the switch that
	// is neither standby nor a LAG's member or, if there is none, the switch's only LAG.
	Active *[]string `yaml:"active,omitempty" json:"active,omitzero"`
	// Standby names the uplinks used when no active one is usable (S45); default none. Not with ip-hash.
	Standby *[]string `yaml:"standby,omitempty" json:"standby,omitzero"`
	// Failback makes traffic return to an uplink that works again (S43, S44); default true.
	Failback *bool `yaml:"failback,omitempty" json:"failback,omitzero"`
	// NotifySwitches announces a port's MAC on its new uplink by RARP (S49); default true.
	NotifySwitches *bool `yaml:"notifySwitches,omitempty" json:"notifySwitches,omitzero"`
	// FailureDetection is link (default) or beacon. Not beacon with ip-hash.
	FailureDetection FailureDetection `yaml:"failureDetection,omitempty" json:"failureDetection,omitzero"`
}

// Role is what is on the other side of a port.
type Role string

// The roles of a port.
const (
	// VNIC is a virtual machine's or container's adapter: a veth or tap device.
	VNIC Role = "vnic"
	// Host is a host interface (the vmk role): Heddle makes the device pair itself.
	Host Role = "host"
)

// Monitor names a QEMU monitor that speaks QMP and serves no other client, and the adapter behind the port.
type Monitor struct {
	// Socket is the absolute path of the monitor's unix socket.
	Socket string `yaml:"socket" json:"socket"`
	// NIC is the adapter's id in QEMU (-device …,id=NIC); it may be left out when the guest has one adapter.
	NIC string `yaml:"nic,omitempty" json:"nic,omitzero"`
}

// Port is the attachment of one device to a port group.
type Port struct {
	// Name is the port's name, which no other port of the host has.
	Name string `yaml:"name" json:"name"`
	// Switch names the switch the port belongs to.
	Switch string `yaml:"switch" json:"switch"`
	// PortGroup names the port group of that switch the port belongs to.
	PortGroup string `yaml:"portGroup" json:"portGroup"`
	// Role is vnic (default) or host.
	Role Role `yaml:"role,omitempty" json:"role,omitzero"`
	// Device is the host's end: a veth or tap for a vnic; without one the port stays down. For a host port it is the
	// name the host's interface gets, default the port's name.
	Device string `yaml:"device,omitempty" json:"device,omitzero"`
	// MAC is the port's initial MAC. Default for a vnic: the MAC of the veth's other end, if that can be seen.
	// Default for a host port: derived from the port's name.
	MAC string `yaml:"mac,omitempty" json:"mac,omitzero"`
	// Owner names the guest that a vnic belongs to: ports of one owner may use each other's MACs if their policies
	// accept that (S111). Default: the port's name up to its last slash, vm1 of vm1/eth0; a port whose name has no
	// slash has no owner.
	Owner string `yaml:"owner,omitempty" json:"owner,omitzero"`
	// Domain is the UUID of the libvirt domain that a vnic belongs to: libvirt then reports where its guest runs,
	// unless a monitor does (S99).
	Domain string `yaml:"domain,omitempty" json:"domain,omitzero"`
	// Addresses are given to a host port's interface, such as "192.0.2.1/24".
	Addresses []string `yaml:"addresses,omitempty" json:"addresses,omitzero"`
	// MTU is given to a host port's interface, in bytes: 1280 up to the switch's MTU, which is the default.
	MTU int `yaml:"mtu,omitempty" json:"mtu,omitzero"`
	// Gateway is the router of a default route that a host port's interface gets, such as "192.0.2.1"; Metric and
	// Table are the route's: 0 is the kernel's usual metric, and the main table.
	Gateway string `yaml:"gateway,omitempty" json:"gateway,omitzero"`
	Metric  int    `yaml:"metric,omitempty" json:"metric,omitzero"`
	Table   int    `yaml:"table,omitempty" json:"table,omitzero"`
	// TxUplink sends a copy of everything the port sends to its uplink too (S35).
	TxUplink bool `yaml:"txUplink,omitempty" json:"txUplink,omitzero"`
	// Monitor lets Heddle see how a QEMU guest configured its adapter, which its tap does not show (D1, D2).
	Monitor Monitor `yaml:"monitor,omitempty" json:"monitor,omitzero"`
	// Policy is what the port sets for itself, if the port group's overrides allow it (S9).
	Policy `yaml:",inline" wire:"policy"`
}
