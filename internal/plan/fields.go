package plan

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/spec"
)

// policyFields is the table of policy fields. Inheritance, display, comparison, command line flags, remedies and
// documentation all use it. What a field needs in addition to its record here is in docs/explanation/add-a-feature.md.
var policyFields = []Field{
	{Path: "blocked",
		Meaning: "No frame enters or leaves by the port.",
		VSphere: "Block all ports", Flag: "blocked", Usage: "connect it blocked", Values: "true, false",
		Default: "false",
		Reasons: []abi.Reason{abi.ReasonPortBlocked, abi.ReasonReceiverBlocked},
		access: truth(false, func(e *Effective) *Value[bool] { return &e.Blocked }, func(p *spec.Policy) **bool {
			return &p.Blocked
		})},
	{Path: "vlan",
		Meaning: "Which frames the port takes, and how they are tagged: an access port is in one VLAN and sees " +
			"no tags, a trunk passes the listed VLANs with their tags, none is for untagged frames. It is " +
			"inherited as a whole.",
		VSphere: "VLAN type: none, VLAN, VLAN trunking",
		Values: "one of `{none: true}`, `{access: 1–4094}`, `{trunk: [0, 10, \"20-30\"]}`; a trunk may have `outer: " +
			"802.1q` or `802.1ad`",
		Default: "`{none: true}`; outer 802.1q", Reasons: []abi.Reason{abi.ReasonGuestTagged, abi.ReasonVLANNotAllowed},
		access: vlanPolicy(func(e *Effective) *Value[VLAN] { return &e.VLAN }, func(p *spec.Policy) **spec.VLAN {
			return &p.VLAN
		})},

	{Path: "security.promiscuous",
		Meaning: "Whether the guest gets frames that are for others, when its adapter asks for them. For " +
			"guests that run guests, MAC learning does the same at a fraction of the cost.",
		VSphere: "Promiscuous mode", Flag: "promiscuous",
		Usage: "accept or reject: may the owner ask for frames that " +
			"are for others",
		Values: "`accept`, `reject`", Default: "`reject`, on both kinds of switch",
		access: verdict(spec.Reject, func(e *Effective) *Value[bool] { return &e.Promiscuous },
			func(p *spec.Policy) *spec.Answer { return &p.Security.Promiscuous })},
	{Path: "security.macChanges",
		Meaning: "Whether the guest may use another MAC for its adapter than the port's, and still get frames.",
		VSphere: "MAC address changes", Flag: "mac-changes",
		Usage:  "accept or reject: may the owner's adapter change its MAC",
		Values: "`accept`, `reject`", Default: "`reject`, on both kinds of switch",
		Reasons: []abi.Reason{abi.ReasonMACChange},
		access: verdict(spec.Reject, func(e *Effective) *Value[bool] { return &e.MACChanges },
			func(p *spec.Policy) *spec.Answer { return &p.Security.MACChanges })},
	{Path: "security.forgedTransmits",
		Meaning: "Whether the guest may send from other MACs than its adapter's, as hypervisors, bridges and " +
			"virtual routers do.",
		VSphere: "Forged transmits", Flag: "forged-transmits",
		Usage:  "accept or reject: may frames with another source MAC enter",
		Values: "`accept`, `reject`", Default: "`reject`, on both kinds of switch",
		Reasons: []abi.Reason{abi.ReasonForgedTransmit},
		access: verdict(spec.Reject, func(e *Effective) *Value[bool] { return &e.ForgedTransmits },
			func(p *spec.Policy) *spec.Answer { return &p.Security.ForgedTransmits })},
	{Path: "security.loopDetection",
		Meaning: "Whether the port is blocked for a while when frames go round by it.",
		Flag:    "loop-detection",
		Usage:   "block the port for a while when frames go round by it",
		Values: "true, false: whether the port is blocked for a while when frames go [round by " +
			"it](../how-to/one-host/loops.md)",
		Default: "true", Reasons: []abi.Reason{abi.ReasonLoopBlocked},
		access: truth(true, func(e *Effective) *Value[bool] { return &e.LoopDetection }, func(p *spec.Policy) **bool {
			return &p.Security.LoopDetection
		})},
	{Path: "security.guestLinkControl",
		Meaning: "Which link control protocols the guest may speak to the physical switch. All others are " +
			"dropped, since the physical switch would take them for the host's.",
		Flag:  "guest-link-control",
		Usage: "link control that the guest may send: lacp, lldp, eapol, ptp, cdp, bpdu; \"\" for none",
		Values: "list of `lacp`, `lldp`, `eapol`, `ptp`, `cdp`, `bpdu`: link control that the owner may send " +
			"([how-to](../how-to/attach/link-control.md))",
		Default: "`[]`: none passes", Reasons: []abi.Reason{abi.ReasonGuestLinkControl},
		access: wordsOf(spec.LinkControls(), list(none, func(e *Effective) *Value[[]string] {
			return &e.GuestLinkControl
		}, func(p *spec.Policy) **[]string { return &p.Security.GuestLinkControl }))},
	{Path: "security.addressGuard.enabled",
		Meaning: "Whether what the guest sends from IP addresses that are not its own is dropped, in IP, ARP " +
			"and neighbour discovery.",
		Flag:  "address-guard",
		Usage: "drop what the guest sends from other IP addresses than its own",
		Values: "true, false: whether the owner may use the addresses alone that are listed at its port " +
			"([how-to](../how-to/one-host/address-guard.md))",
		Default: "false", Reasons: []abi.Reason{abi.ReasonIPSourceNotAllowed, abi.ReasonARPSenderNotAllowed,
			abi.ReasonNDTargetNotAllowed},
		access: truth(false, func(e *Effective) *Value[bool] { return &e.AddressGuard.Enabled },
			func(p *spec.Policy) **bool { return &p.Security.AddressGuard.Enabled })},
	{Path: "security.addressGuard.addresses",
		Meaning: "The guest's own IP addresses and prefixes, which the address guard lets pass.",
		Flag:    "guard-addresses",
		Usage:   "the guest's own IP addresses and prefixes, for the address guard",
		Values: "list of at most 64 addresses and prefixes; at a port alone, whatever its port group lets it set; " +
			"the same at several ports, for VRRP",
		Default: "none; a host port's own `addresses` need not be listed",
		access: list(none, func(e *Effective) *Value[[]string] { return &e.AddressGuard.Addresses },
			func(p *spec.Policy) **[]string { return &p.Security.AddressGuard.Addresses })},
	{Path: "security.dhcpServer",
		Meaning: "Whether the guest may answer DHCP and DHCPv6 as a server does.",
		Flag:    "dhcp-server", Usage: "accept or reject: may the guest answer DHCP and DHCPv6",
		Values: "`accept`, `reject`: whether the owner may answer DHCP and DHCPv6", Default: "`accept`",
		Reasons: []abi.Reason{abi.ReasonGuestDHCPServer},
		access: verdict(spec.Accept, func(e *Effective) *Value[bool] { return &e.DHCPServer },
			func(p *spec.Policy) *spec.Answer { return &p.Security.DHCPServer })},
	{Path: "security.routerAdvertisements",
		Meaning: "Whether the guest may say that it is an IPv6 router.",
		Flag:    "router-advertisements",
		Usage:   "accept or reject: may the guest say that it is an IPv6 router",
		Values:  "`accept`, `reject`: whether the owner may send IPv6 router advertisements", Default: "`accept`",
		Reasons: []abi.Reason{abi.ReasonGuestRouterAdvertisement},
		access: verdict(spec.Accept, func(e *Effective) *Value[bool] { return &e.RouterAdvertisements },
			func(p *spec.Policy) *spec.Answer { return &p.Security.RouterAdvertisements })},
	{Path: "security.macLearning.enabled",
		Meaning: "Whether the switch remembers which MACs are behind the port, so that frames for guests of a " +
			"guest reach this port alone. Such a guest also needs forgedTransmits.",
		VSphere: "MAC learning", Flag: "mac-learning",
		Usage:  "learn the addresses behind the port",
		Values: "true (needs a distributed switch), false", Default: "false",
		Reasons: []abi.Reason{abi.ReasonUnknownUnicast},
		access: truth(false, func(e *Effective) *Value[bool] { return &e.Learning.Enabled },
			func(p *spec.Policy) **bool { return &p.Security.MACLearning.Enabled })},
	{Path: "security.macLearning.limit",
		Meaning: "How many MACs may be learned on the port.",
		VSphere: "MAC limit", Flag: "mac-limit",
		Usage:  "how many MACs are learned on the port: 0–4096",
		Values: "0–4096 MACs", Unit: "MACs", Default: "4096", Reasons: []abi.Reason{abi.ReasonMACLimit,
			abi.ReasonMACTableFull},
		access: number(spec.MaxMACs, func(e *Effective) *Value[int] { return &e.Learning.Limit },
			func(p *spec.Policy) **int { return &p.Security.MACLearning.Limit })},
	{Path: "security.macLearning.limitPolicy",
		Meaning: "What happens to frames from new MACs when the limit is reached.",
		VSphere: "MAC limit policy", Flag: "mac-limit-policy",
		Usage:  "drop or allow: frames from new sources when the limit is reached",
		Values: "`drop`, `allow`", Default: "`drop`",
		access: choice(spec.LimitDrop, func(e *Effective) *Value[spec.LimitPolicy] { return &e.Learning.LimitPolicy },
			func(p *spec.Policy) *spec.LimitPolicy { return &p.Security.MACLearning.LimitPolicy }, spec.LimitDrop,
			spec.LimitAllow)},
	{Path: "security.macLearning.ageing",
		Meaning: "How long a MAC that sends nothing stays learned.",
		Flag:    "mac-ageing",
		Usage:   "how long a silent learned MAC stays known, such as 10m",
		Values:  "a duration of 1s–24h", Default: "`10m`",
		access: period(spec.DefaultAgeing, func(s string) (time.Duration, bool) {
			return spec.MACLearning{Ageing: s}.AgeingTime()
		},
			func(e *Effective) *Value[time.Duration] { return &e.Learning.Ageing }, func(p *spec.Policy) *string {
				return &p.Security.MACLearning.Ageing
			})},
	{Path: "security.macLearning.unicastFlooding",
		Meaning: "Whether the port gets frames for MACs that nobody on the switch is known to have. Only ports " +
			"that learn do.",
		VSphere: "Allow unicast flooding", Flag: "unicast-flooding",
		Usage:  "deliver frames for unknown destinations to a learning port",
		Values: "true, false", Default: "true",
		access: truth(true, func(e *Effective) *Value[bool] { return &e.Learning.UnicastFlooding },
			func(p *spec.Policy) **bool { return &p.Security.MACLearning.UnicastFlooding })},

	{Path: "teaming.policy",
		Meaning: "How a port's frames choose among the active uplinks.",
		VSphere: "Load balancing", Flag: "teaming",
		Usage: "originating-port, source-mac, ip-hash, explicit or load-based",
		Values: "`originating-port`, `source-mac`, `ip-hash` (no standby uplinks), `explicit`, `load-based` (needs a " +
			"distributed switch)", Default: "`originating-port`",
		access: choice(spec.OriginatingPort, func(e *Effective) *Value[spec.TeamingPolicy] { return &e.Teaming.Policy },
			func(p *spec.Policy) *spec.TeamingPolicy { return &p.Teaming.Policy },
			spec.OriginatingPort, spec.SourceMAC, spec.IPHash, spec.ExplicitOrder, spec.LoadBased)},
	{Path: "teaming.active",
		Meaning: "The uplinks that are used, in order.",
		VSphere: "Failover order: active uplinks", Flag: "active",
		Usage:   "uplinks in use, in order",
		Values:  "list of the switch's uplinks, or one LAG alone; `[]` is none",
		Default: "every uplink that is neither standby nor in a LAG; without any, the only LAG",
		Reasons: []abi.Reason{abi.ReasonNoUplink},
		access: list((*spec.Switch).DefaultActive, func(e *Effective) *Value[[]string] { return &e.Teaming.Active },
			func(p *spec.Policy) **[]string { return &p.Teaming.Active })},
	{Path: "teaming.standby",
		Meaning: "The uplinks that are used when no active one works.",
		VSphere: "Failover order: standby uplinks", Flag: "standby",
		Usage:  "uplinks used when no active one works",
		Values: "list of uplinks and LAGs, none of them active", Default: "none",
		Reasons: []abi.Reason{abi.ReasonNoUplink},
		access: list(none, func(e *Effective) *Value[[]string] { return &e.Teaming.Standby },
			func(p *spec.Policy) **[]string { return &p.Teaming.Standby })},
	{Path: "teaming.failback",
		Meaning: "Whether traffic returns to an uplink that works again.",
		VSphere: "Failback", Flag: "failback", Usage: "return to an uplink that works again",
		Values: "true, false: traffic returns to an uplink that works again", Default: "true",
		access: truth(true, func(e *Effective) *Value[bool] { return &e.Teaming.Failback },
			func(p *spec.Policy) **bool { return &p.Teaming.Failback })},
	{Path: "teaming.notifySwitches",
		Meaning: "Whether a port's MAC is announced on its new uplink after a failover, so that physical " +
			"switches send there at once.",
		VSphere: "Notify switches", Flag: "notify-switches",
		Usage:  "announce the port on its new uplink after a failover",
		Values: "true, false: a port's MAC is announced by RARP on its new uplink", Default: "true",
		access: truth(true, func(e *Effective) *Value[bool] { return &e.Teaming.NotifySwitches },
			func(p *spec.Policy) **bool { return &p.Teaming.NotifySwitches })},
	{Path: "teaming.failureDetection",
		Meaning: "How it is found out that an uplink does not work: by its link alone, or also by beacons that " +
			"the uplinks send to each other.",
		VSphere: "Network failure detection", Flag: "failure-detection",
		Usage:  "link or beacon",
		Values: "`link`, `beacon` (link state and beacon probing; not with `ip-hash`)", Default: "`link`",
		access: choice(spec.DetectLink, func(e *Effective) *Value[spec.FailureDetection] {
			return &e.Teaming.FailureDetection
		},
			func(p *spec.Policy) *spec.FailureDetection { return &p.Teaming.FailureDetection }, spec.DetectLink,
			spec.DetectBeacon)},

	{Path: "monitoring.ipfix",
		Meaning: "Whether the flows of the port's traffic are metered.",
		VSphere: "NetFlow", Flag: "ipfix", Usage: "meter the flows of the port's traffic",
		OfUplinks: true,
		Values:    "true, false: the flows of the port's traffic are metered ([flows](#flows))", Default: "false",
		access: truth(false, func(e *Effective) *Value[bool] { return &e.Monitoring.IPFIX },
			func(p *spec.Policy) **bool { return &p.Monitoring.IPFIX })},
	{Path: "monitoring.observe",
		Meaning: "Which direction is metered, seen from the switch.",
		Flag:    "ipfix-observe", Usage: "ingress, egress or both: which flows are metered, " +
			"seen from the switch", OfUplinks: true,
		Values: "`ingress` (what the port's owner sent and the switch delivered), `egress` (what was handed to the " +
			"owner), `both` (D6)", Default: "`both`",
		access: choice(spec.ObserveBoth, func(e *Effective) *Value[spec.Observe] { return &e.Monitoring.Observe },
			func(p *spec.Policy) *spec.Observe { return &p.Monitoring.Observe },
			spec.ObserveIngress, spec.ObserveEgress, spec.ObserveBoth)},

	{Path: "stormControl.broadcast",
		Meaning: "How many broadcast frames a second the guest may send; those above are dropped.",
		Flag:    "storm-broadcast", Usage: stormUsage("broadcast frames"),
		Values: stormValues("broadcast"), Unit: "frames/s", Default: "0", Reasons: []abi.Reason{abi.ReasonStormControl},
		access: number(0, func(e *Effective) *Value[int] { return &e.StormControl.Broadcast },
			func(p *spec.Policy) **int { return &p.StormControl.Broadcast })},
	{Path: "stormControl.multicast",
		Meaning: "How many multicast frames a second the guest may send; those above are dropped.",
		Flag:    "storm-multicast", Usage: stormUsage("multicast frames"),
		Values: stormValues("multicast"), Unit: "frames/s", Default: "0", Reasons: []abi.Reason{abi.ReasonStormControl},
		access: number(0, func(e *Effective) *Value[int] { return &e.StormControl.Multicast },
			func(p *spec.Policy) **int { return &p.StormControl.Multicast })},
	{Path: "stormControl.unknownUnicast",
		Meaning: "How many frames a second for unknown MACs the guest may send; those above are dropped.",
		Flag:    "storm-unknown-unicast",
		Usage:   stormUsage("frames for unknown destinations"),
		Values:  stormValues("unknown unicast"), Unit: "frames/s", Default: "0",
		Reasons: []abi.Reason{abi.ReasonStormControl},
		access: number(0, func(e *Effective) *Value[int] { return &e.StormControl.UnknownUnicast },
			func(p *spec.Policy) **int { return &p.StormControl.UnknownUnicast })},
	{Path: "stormControl.burst",
		Meaning: "How much of a storm control rate may come at once.",
		Flag:    "storm-burst", Usage: "how much of a storm control rate may come at once, as " +
			"a time such as 500ms: 10ms–2s",
		Values:  "a duration of 10ms–2s: as many frames as a rate gives in that time, at least one, may come at once",
		Default: "`1s`",
		access: period(spec.DefaultStormBurst, func(s string) (time.Duration, bool) {
			return spec.StormControl{Burst: s}.BurstTime()
		},
			func(e *Effective) *Value[time.Duration] { return &e.StormControl.Burst }, func(p *spec.Policy) *string {
				return &p.StormControl.Burst
			})},
}

// none returns the default of a list that is empty.
func none(*spec.Switch) []string { return []string{} }

func stormUsage(what string) string {
	return "storm control: how many " + what + " the port may send in a second, 0 = any number"
}

func stormValues(what string) string {
	return "1–1000000 " + what +
		" frames per second that the port's owner may send; 0 = no limit (D27, [storms](../how-to/one-host/storms.md))"
}
