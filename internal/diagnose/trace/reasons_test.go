package trace

import (
	"heddle/internal/diagnose"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// fault is one reason, provoked by a frame, with the expected content of a trace.
type fault struct {
	reason  string
	name    string // what is special about it
	config  string
	change  func(*Host)
	from    string // default vm1
	frame   *diagnose.Fields
	bytes   []byte
	port    string // who is refused; "" = the frame
	policy  string
	setBy   string
	edit    string // object: set; "" = none
	command string
}

const apply = "heddle apply -f lab.yaml"

// frameOf returns a frame of vm1.
func frameOf(dst, rest string) []byte {
	src := mac(1)
	return []byte(dst + string(src[:]) + rest)
}

func ip6(s string) string { return string(netip.MustParseAddr(s).AsSlice()) }

func addresses(src, dst string) *diagnose.Addresses {
	return &diagnose.Addresses{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(dst)}
}

func faults() []fault {
	const guarded = "{name: web, security: {addressGuard: {enabled: true}}}"
	web := "{name: web}"
	one := config("", web, "vm1 web")
	two := config("", web, "vm1 web", "vm2 web")
	wire := func(sw string) string {
		return config(sw, web, "vm1 web", "vm2 web")
	}
	dual := wire("uplinks: [{name: u1, device: p1}, {name: u2, device: p2}]\ndefaults: {teaming: {policy: explicit, " +
		"active: [u1, u2]}}")
	single := wire("uplinks: [{name: u1, device: p1}]")
	learns := "{name: web, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1}}}"
	down := func(name string) func(*Host) {
		return func(h *Host) { h.Facts[id(name)] = plan.Fact{MTU: 1500, DeviceMAC: h.Facts[id(name)].DeviceMAC} }
	}
	spent := func(class int, frames int64) func(*Host) {
		return func(h *Host) {
			h.Spent = []model.Spent{{Port: id("vm1"), Class: class, Billionths: frames * 1e9, At: h.Now}}
		}
	}
	mtu := func(name string, mtu int) func(*Host) {
		return func(h *Host) { f := h.Facts[id(name)]; f.MTU = mtu; h.Facts[id(name)] = f }
	}
	return []fault{
		{reason: "malformed", config: two,
			bytes:  []byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x81\x00\x00\x0a"),
			policy: "IEEE 802.3, 802.1Q", setBy: "always", command: "heddle port show vm1"},
		{reason: "port-blocked", config: config("", "{name: web, blocked: true}", "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{}),
			policy: "blocked", setBy: "port group web", edit: "port vm1: blocked: false", command: apply},
		{reason: "port-blocked", name: "by command", config: config("", web, "vm1 web blocked: true", "vm2 web"),
			change: func(h *Host) { h.ByCommand["vm1"] = ByCommand{Blocked: true} },
			frame:  to(mac(2), diagnose.Fields{}),
			policy: "blocked", setBy: "port vm1", command: "heddle port unblock vm1"},
		{reason: "port-blocked", name: "a port connected by command",
			config: config("", web, "vm1 web blocked: true", "vm2 web"),
			change: func(h *Host) { h.RunTime["vm1"] = spec.Port{Name: "vm1", PortGroup: "web"} },
			frame:  to(mac(2), diagnose.Fields{}),
			policy: "blocked", setBy: "port vm1", command: "heddle port unblock vm1"},
		{reason: "port-blocked", name: "the port group keeps it",
			config: config("", "{name: web, blocked: true, overrides: {blocked: false}}", "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{}),
			policy: "blocked", setBy: "port group web", edit: "port group web of switch lab: blocked: false",
			command: apply},
		{reason: "port-blocked", name: "an uplink", config: wire("uplinks: [{name: u1, device: p1, blocked: true}]"),
			from: "u1", frame: to(mac(2), diagnose.Fields{}),
			policy: "uplinks[].blocked", setBy: "uplink u1", edit: "uplink u1 of switch lab: blocked: false",
			command: apply},
		{reason: "source-group", config: two, frame: to(mac(2), diagnose.Fields{SrcMAC: &plan.MAC{3, 0, 0, 0, 0, 1}}),
			policy: "always on", setBy: "always", command: "heddle port show vm1"},
		{reason: "source-zero", config: two, frame: to(mac(2), diagnose.Fields{SrcMAC: &plan.MAC{}}),
			policy: "always on", setBy: "always", command: "heddle port show vm1"},
		{reason: "guest-bpdu", config: two, frame: to(plan.MAC{1, 0x80, 0xc2}, diagnose.Fields{}),
			policy: "checks.blockGuestBPDU", setBy: "switch lab", edit: "switch lab: checks: {blockGuestBPDU: false}",
			command: apply},
		{reason: "guest-health-probe", config: config("healthCheck: true", web, "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{EtherType: ptr(uint16(0x8922))}),
			policy: "healthCheck", setBy: "switch lab", edit: "switch lab: healthCheck: false", command: apply},
		{reason: "guest-link-control", config: two, frame: to(plan.MAC{1, 0x80, 0xc2, 0, 0, 0x0e},
			diagnose.Fields{EtherType: ptr(uint16(0x88cc))}),
			policy: "security.guestLinkControl", setBy: "built-in default",
			edit: "port group web of switch lab: security: {guestLinkControl: [lldp]}", command: apply},
		{reason: "guest-link-control", name: "one protocol passes already",
			config: config("", "{name: web, security: {guestLinkControl: [lldp]}}", "vm1 web", "vm2 web"),
			frame:  to(plan.MAC{1, 0x80, 0xc2, 0, 0, 2}, diagnose.Fields{EtherType: ptr(uint16(0x8809))}),
			policy: "security.guestLinkControl", setBy: "port group web",
			edit: "port group web of switch lab: security: {guestLinkControl: [lldp, lacp]}", command: apply},
		{reason: "guest-link-control", name: "PAUSE never passes", config: two,
			frame:  to(plan.MAC{1, 0x80, 0xc2, 0, 0, 1}, diagnose.Fields{EtherType: ptr(uint16(0x8808))}),
			policy: "security.guestLinkControl", setBy: "built-in default", command: "heddle port show vm1"},
		{reason: "forged-transmit", config: two, frame: to(mac(2), diagnose.Fields{SrcMAC: ptr(mac(9))}),
			policy: "security.forgedTransmits", setBy: "built-in default",
			edit: "port group web of switch lab: security: {forgedTransmits: accept}", command: apply},
		{reason: "forged-transmit", name: "set at the switch",
			config: config("defaults: {security: {forgedTransmits: reject}}", web, "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{SrcMAC: ptr(mac(9))}),
			policy: "security.forgedTransmits", setBy: "switch lab",
			edit: "port group web of switch lab: security: {forgedTransmits: accept}", command: apply},
		{reason: "forged-transmit", name: "set at the port",
			config: config("", "{name: web, overrides: {security: true}}",
				"vm1 web security: {forgedTransmits: reject}", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{SrcMAC: ptr(mac(9))}),
			policy: "security.forgedTransmits", setBy: "port vm1",
			edit: "port vm1: security: {forgedTransmits: accept}", command: apply},
		{reason: "forged-transmit", name: "set at a port connected by command",
			config: config("", "{name: web, overrides: {security: true}}",
				"vm1 web security: {forgedTransmits: reject, promiscuous: accept}", "vm2 web"),
			change: func(h *Host) {
				h.RunTime["vm1"] = spec.Port{Name: "vm1", PortGroup: "web", Device: "dev-vm1",
					Policy: spec.Policy{Security: spec.Security{ForgedTransmits: spec.Reject,
						Promiscuous: spec.Accept}}}
			},
			frame: to(mac(2), diagnose.Fields{SrcMAC: ptr(mac(9))}), policy: "security.forgedTransmits",
			setBy: "port vm1",
			command: "heddle port connect vm1 --replace --switch lab --port-group web --device dev-vm1 " +
				"--promiscuous=accept --forged-transmits accept"},
		{reason: "guest-tagged", config: config("", "{name: web, vlan: {access: 10}}", "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{VLAN: ptr(uint16(10))}),
			policy: "vlan", setBy: "port group web", edit: `port group web of switch lab: vlan: {trunk: ["10"]}`,
			command: apply},
		{reason: "vlan-not-allowed", config: config("", `{name: web, vlan: {trunk: ["10-12"]}}`, "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{VLAN: ptr(uint16(30))}),
			policy: "vlan", setBy: "port group web",
			edit: `port group web of switch lab: vlan: {trunk: ["10-12", "30"]}`, command: apply},
		{reason: "vlan-not-allowed", name: "the other tag protocol",
			config: config("", `{name: web, vlan: {trunk: ["10"]}}`, "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{Outer: ptr(uint16(10)), VLAN: ptr(uint16(5))}),
			policy: "vlan", setBy: "port group web",
			edit: `port group web of switch lab: vlan: {trunk: ["10"], outer: 802.1ad}`, command: apply},
		{reason: "mac-limit", config: config("", learns, "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{SrcMAC: ptr(mac(9))}),
			change: func(h *Host) { h.Learned = []model.MAC{{Port: id("vm1"), MAC: mac(8), Seen: h.Now}} },
			policy: "security.macLearning.limit", setBy: "port group web",
			edit: "port group web of switch lab: security: {macLearning: {limit: 16}}", command: apply},
		{reason: "mac-table-full", config: config("", learns, "vm1 web", "vm2 web"),
			frame: to(mac(2), diagnose.Fields{SrcMAC: ptr(mac(9))}),
			change: func(h *Host) {
				h.Plan.SetMACTable(1)
				h.Learned = []model.MAC{{Port: id("vm1"), MAC: mac(8), Seen: h.Now}}
			},
			policy: "security.macLearning.limitPolicy", setBy: "built-in default",
			edit: "port group web of switch lab: security: {macLearning: {limitPolicy: allow}}", command: apply},
		{reason: "ip-source-not-allowed", config: config("", guarded, "vm1 web", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{IP: addresses("192.0.2.11", "192.0.2.1")}),
			policy: "security.addressGuard.enabled", setBy: "port group web",
			edit: "port vm1: security: {addressGuard: {addresses: [192.0.2.11]}}", command: apply},
		{reason: "ip-source-not-allowed", name: "a port with addresses",
			config: config("", guarded, "vm1 web security: {addressGuard: {addresses: [192.0.2.10]}}", "vm2 web"),
			frame:  to(mac(2), diagnose.Fields{IP: addresses("2001:db8::11", "2001:db8::1")}),
			policy: "security.addressGuard.enabled", setBy: "port group web",
			edit: "port vm1: security: {addressGuard: {addresses: [192.0.2.10, 2001:db8::11]}}", command: apply},
		{reason: "ip-source-not-allowed", name: "its address is hidden", config: config("", guarded, "vm1 web",
			"vm2 web"),
			bytes:  frameOf("\xff\xff\xff\xff\xff\xff", "\x00 \xaa\xaa\x03\x00\x00\x00\x08\x00"),
			policy: "security.addressGuard.enabled", setBy: "port group web",
			command: "heddle capture vm1 --stage drop --reason ip-source-not-allowed --count 10"},
		{reason: "arp-sender-not-allowed", config: config("", guarded, "vm1 web", "vm2 web"),
			frame:  to(broadcast, diagnose.Fields{ARP: addresses("192.0.2.11", "192.0.2.1")}),
			policy: "security.addressGuard.enabled", setBy: "port group web",
			edit: "port vm1: security: {addressGuard: {addresses: [192.0.2.11]}}", command: apply},
		{reason: "nd-target-not-allowed", config: config("", guarded, "vm1 web security: {addressGuard: {addresses: "+
			"['2001:db8::1']}}", "vm2 web"),
			bytes: frameOf("33\x00\x00\x00\x01", "\x86\xdd`\x00\x00\x00\x00\x18:\xff"+ip6("2001:db8::1")+
				ip6("ff02::1")+"\x88\x00\x00\x00 \x00\x00\x00"+ip6("2001:db8::2")),
			policy: "security.addressGuard.enabled", setBy: "port group web",
			edit: "port vm1: security: {addressGuard: {addresses: [2001:db8::1, 2001:db8::2]}}", command: apply},
		{reason: "guest-dhcp-server", config: config("", "{name: web, security: {dhcpServer: reject}}", "vm1 web",
			"vm2 web"),
			frame: to(broadcast, diagnose.Fields{IP: addresses("192.0.2.1", "255.255.255.255"),
				UDP: &diagnose.Ports{Src: 67, Dst: 68}}), policy: "security.dhcpServer", setBy: "port group web",
			edit: "port group web of switch lab: security: {dhcpServer: accept}", command: apply},
		{reason: "guest-router-advertisement", config: config("defaults: {security: {routerAdvertisements: reject}}",
			web, "vm1 web", "vm2 web"),
			bytes: frameOf("33\x00\x00\x00\x01", "\x86\xdd`\x00\x00\x00\x00\x10:\xff"+ip6("fe80::1")+ip6("ff02::1")+
				"\x86\x00"+strings.Repeat("\x00", 14)),
			policy: "security.routerAdvertisements", setBy: "switch lab",
			edit: "port group web of switch lab: security: {routerAdvertisements: accept}", command: apply},
		{reason: "own-destination", config: two, frame: to(mac(1), diagnose.Fields{}), policy: "security.macLearning",
			setBy: "always", command: "heddle mac show 02:00:00:00:00:01"},
		{reason: "unknown-unicast", config: two, frame: to(mac(9), diagnose.Fields{}), policy: "vlan",
			setBy: "built-in default", command: "heddle port list --switch lab"},
		{reason: "no-receiver", config: one, frame: to(broadcast, diagnose.Fields{}), policy: "vlan",
			setBy: "built-in default", command: "heddle port list --switch lab"},
		{reason: "mtu-exceeded", name: "the switch's", config: two, frame: to(mac(2), diagnose.Fields{Length: 1515}),
			policy: "mtu", setBy: "switch lab", edit: "switch lab: mtu: 1501", command: apply},
		{reason: "mtu-exceeded", name: "the receiver's", config: two, change: mtu("vm2", 1400),
			frame: to(mac(2), diagnose.Fields{Length: 1514}), port: "vm2",
			policy: "the device's MTU", setBy: "device dev-vm2", command: "ip link set dev dev-vm2 mtu 1500"},
		{reason: "mtu-exceeded", name: "a host port's", config: config("", web, "vm1 web", "vmk2 web role: host, "+
			"mtu: 1400"), change: mtu("vmk2", 1400), frame: to(mac(2), diagnose.Fields{Length: 1514}), port: "vmk2",
			policy: "ports[].mtu", setBy: "port vmk2", edit: "port vmk2: mtu: 1500", command: apply},
		{reason: "mtu-exceeded", name: "the uplink's", config: single, change: mtu("u1", 1400),
			frame: to(mac(9), diagnose.Fields{Length: 1514}), port: "u1",
			policy: "the device's MTU", setBy: "device p1", command: "ip link set dev p1 mtu 1500"},
		{reason: "uplink-vlan", name: "on the way out",
			config: config(`uplinks: [{name: u1, device: p1, vlans: ["0-19", "30"]}]`,
				"{name: web, vlan: {access: 20}}", "vm1 web"), frame: to(broadcast, diagnose.Fields{}), port: "u1",
			policy: "uplinks[].vlans", setBy: "uplink u1", edit: `uplink u1 of switch lab: vlans: ["0-20", "30"]`,
			command: apply},
		{reason: "uplink-vlan", name: "on the way in", config: wire(`uplinks: [{name: u1, device: p1, vlans: ["10"]}]`),
			from: "u1", frame: to(mac(2), diagnose.Fields{}),
			policy: "uplinks[].vlans", setBy: "uplink u1", edit: `uplink u1 of switch lab: vlans: ["0", "10"]`,
			command: apply},
		{reason: "no-uplink", config: single, change: down("u1"), frame: to(mac(9), diagnose.Fields{}),
			policy: "teaming.active", setBy: "built-in default", command: "heddle uplink list"},
		{reason: "no-uplink", name: "the teaming names none",
			config: wire("uplinks: [{name: u1, device: p1}]\ndefaults: {teaming: {active: []}}"),
			frame:  to(mac(9), diagnose.Fields{}),
			policy: "teaming.active", setBy: "switch lab",
			edit: "port group web of switch lab: teaming: {active: [u1]}", command: apply},
		{reason: "receiver-blocked", config: config("", web, "vm1 web", "vm2 web blocked: true"),
			frame: to(mac(2), diagnose.Fields{}), port: "vm2",
			policy: "blocked", setBy: "port vm2", edit: "port vm2: blocked: false", command: apply},
		{reason: "receiver-blocked", name: "an uplink",
			config: wire("uplinks: [{name: u1, device: p1, blocked: true}]"), frame: to(mac(9), diagnose.Fields{}),
			port:   "u1",
			policy: "uplinks[].blocked", setBy: "uplink u1", edit: "uplink u1 of switch lab: blocked: false",
			command: apply},
		{reason: "receiver-down", config: two, change: down("vm2"), frame: to(mac(2), diagnose.Fields{}), port: "vm2",
			policy: "none: the device's state", setBy: "the device's state", command: "ip link set dev dev-vm2 up"},
		{reason: "receiver-waiting", config: two, frame: to(broadcast, diagnose.Fields{}), port: "vm2",
			policy: "none: the guest's migration", setBy: "the guest's migration",
			change: silenced(false, "its guest is to arrive by a migration"), command: "heddle port activate vm2"},
		{reason: "receiver-waiting", name: "unicast", config: two, frame: to(mac(2), diagnose.Fields{}), port: "vm2",
			policy: "none: the guest's migration", setBy: "the guest's migration",
			change: silenced(false, "its guest is to arrive by a migration"), command: "heddle port activate vm2"},
		{reason: "guest-elsewhere", config: two, frame: to(broadcast, diagnose.Fields{}), port: "vm2",
			policy: "none: the guest's migration", setBy: "the guest's migration",
			change: silenced(true, "its QEMU has stopped it"), command: "heddle port activate vm2"},
		{reason: "guest-elsewhere", name: "unicast from outside", config: wire("uplinks: [{name: u1, device: p1}]"),
			from: "u1", frame: to(mac(2), diagnose.Fields{}), port: "vm2",
			policy: "none: the guest's migration", setBy: "the guest's migration",
			change: silenced(true, "its QEMU has stopped it"), command: "heddle port activate vm2"},
		{reason: "mac-change", config: two, frame: to(mac(2), diagnose.Fields{}), port: "vm2",
			change: func(h *Host) { h.Facts[id("vm2")] = plan.Fact{Up: true, MTU: 1500, SeenMAC: mac(7)} },
			policy: "security.macChanges", setBy: "built-in default",
			edit: "port group web of switch lab: security: {macChanges: accept}", command: apply},
		{reason: "storm-control", config: config("", "{name: web, stormControl: {broadcast: 500}}", "vm1 web",
			"vm2 web"), frame: to(broadcast, diagnose.Fields{}),
			change: spent(abi.ClassBroadcast, 500),
			policy: "stormControl.broadcast", setBy: "port group web",
			edit: "port group web of switch lab: stormControl: {broadcast: 1000}", command: apply},
		{reason: "storm-control", name: "multicast", config: config("", "{name: web, overrides: {stormControl: true}}",
			"vm1 web stormControl: {multicast: 10}", "vm2 web"), frame: to(plan.MAC{0x33, 0x33, 0, 0, 0, 1},
			diagnose.Fields{}),
			change: spent(abi.ClassMulticast, 10),
			policy: "stormControl.multicast", setBy: "port vm1", edit: "port vm1: stormControl: {multicast: 20}",
			command: apply},
		{reason: "storm-control", name: "the way out stays open",
			config: config("uplinks: [{name: u1, device: p1}]\ndefaults: {stormControl: {unknownUnicast: 1}}", learns,
				"vm1 web", "vm2 web"), frame: to(mac(9), diagnose.Fields{}),
			change: spent(abi.ClassUnicast, 1),
			policy: "stormControl.unknownUnicast", setBy: "switch lab",
			edit: "port group web of switch lab: stormControl: {unknownUnicast: 2}", command: apply},
		{reason: "loop-blocked", config: two, frame: to(broadcast, diagnose.Fields{}),
			change: func(h *Host) {
				h.Facts[id("vm1")] = plan.Fact{Up: true, MTU: 1500,
					LoopBlocked: &problem.Problem{Code: problem.LoopProbed}}
			},
			policy: "security.loopDetection", setBy: "built-in default", command: "heddle port unblock vm1"},
		{reason: "loop-blocked", name: "a receiver", config: two, frame: to(broadcast, diagnose.Fields{}), port: "vm2",
			change: func(h *Host) {
				h.Facts[id("vm2")] = plan.Fact{Up: true, MTU: 1500,
					LoopBlocked: &problem.Problem{Code: problem.LoopProbed}}
			},
			policy: "security.loopDetection", setBy: "built-in default", command: "heddle port unblock vm2"},
		{reason: "reverse-path", config: dual, from: "u2", frame: to(broadcast, diagnose.Fields{}), port: "vm1",
			policy: "checks.reversePath", setBy: "switch lab", edit: "switch lab: checks: {reversePath: false}",
			command: apply},
		{reason: "reflected", config: single, from: "u1", frame: to(broadcast, diagnose.Fields{SrcMAC: ptr(mac(2))}),
			port:   "vm1",
			change: func(h *Host) { h.Sent = []model.Sent{{Switch: "lab", MAC: mac(2), At: h.Now - time.Second/2}} },
			policy: "checks.reversePath", setBy: "switch lab", edit: "switch lab: checks: {reversePath: false}",
			command: apply},
	}
}

// Every existing reason, provoked by a frame, names its policy, the level that set it, and a command; the proposed
// change of the file makes the reason go away.
func TestEveryReasonHasItsCauseAndRemedy(t *testing.T) {
	seen := map[string]bool{
		// no frame provokes it here, because a dry run has no full queue; see below
		"device-refused": true,
		// a tunnel's programs refuse these before and after the switch's
		"tunnel-unknown-endpoint": true, "tunnel-unknown-vni": true, "tunnel-mtu": true, "tunnel-no-endpoint": true,
		"neighbour-answered": true, "neighbour-here": true, "neighbour-limit": true,
	}
	for _, f := range faults() {
		seen[f.reason] = true
		t.Run(strings.TrimSpace(f.reason+" "+f.name), f.test)
	}
	for r := range abi.Reasons() {
		if !seen[r.String()] {
			t.Errorf("no frame provokes %s", r)
		}
	}
}

func (f fault) test(t *testing.T) {
	h := host(t, f.config)
	if f.change != nil {
		f.change(h)
	}
	q := diagnose.Request{From: f.from, Frame: f.frame}
	if q.From == "" {
		q.From = "vm1"
	}
	if f.bytes != nil {
		q.Frames = [][]byte{f.bytes}
	}
	c := f.find(run(t, h, q))
	if c == nil {
		t.Fatalf("no such cause in %+v", run(t, h, q).Frames[0])
	}
	edit := ""
	if c.Edit != nil {
		edit = c.Edit.Object() + ": " + c.Edit.Set
	}
	for _, x := range []struct{ what, got, want string }{{"policy", c.Policy, f.policy}, {"set by", c.From, f.setBy},
		{"edit", edit, f.edit}, {"command", c.Command, f.command}} {
		if x.got != x.want {
			t.Errorf("%s: %q, want %q", x.what, x.got, x.want)
		}
	}
	if c.Why == "" || c.Change == "" {
		t.Errorf("nothing is said: %+v", c)
	}
	settingIsTyped(t, c)
	if c.Edit == nil {
		return
	}
	next := host(t, edited(t, f.config, c.Edit))
	next.Learned, next.Sent = h.Learned, h.Sent
	if f.change != nil && f.reason != "mtu-exceeded" {
		f.change(next)
	}
	if still := f.find(run(t, next, q)); still != nil {
		t.Errorf("after %q it is still so: %+v", edit, still)
	}
}

// settingIsTyped checks that the setting that causes it agrees with the words that describe it.
func settingIsTyped(t *testing.T, c *diagnose.Cause) {
	t.Helper()
	objects := []string{"switch ", "port group ", "port ", "uplink ", string(plan.FromBuiltIn)}
	set := slices.ContainsFunc(objects, func(o string) bool { return strings.HasPrefix(c.From, o) }) &&
		c.Reason != "other-switch" && c.Value != ""
	if set != (c.Setting != nil) {
		t.Errorf("%s is set by the configuration: %v; setting %+v", c.Policy, set, c.Setting)
	}
	if c.Setting == nil {
		return
	}
	values := []string{c.Setting.Value.String(), strings.ReplaceAll(c.Setting.Value.String(), ", ", ",")}
	if !strings.HasSuffix(c.Policy, c.Setting.Policy) || !slices.Contains(values, c.Value) ||
		c.Setting.From.String() != c.From {
		t.Errorf("%s = %s by %s, and setting %+v", c.Policy, c.Value, c.From, c.Setting)
	}
	if f, policy := plan.FieldOf(c.Setting.Policy); policy && c.Setting.Unit != f.Counts() {
		t.Errorf("%s counts %q", c.Policy, c.Setting.Unit)
	}
}

// find returns the cause of that reason.
func (f fault) find(r *diagnose.Report) *diagnose.Cause {
	list := r.Frames[0].Causes
	i := slices.IndexFunc(list, func(c diagnose.Cause) bool { return c.Reason == f.reason && c.Port == f.port })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// The drop of a full queue is explained although no dry run meets it.
func TestARefusalByADeviceIsExplained(t *testing.T) {
	tr := newTracer(host(t, config("", "{name: web}", "vm1 web", "vm2 web")))
	s := tr.subject(tr.places[id("vm1")], nil, make([]byte, 60), &model.Result{})
	if c := s.explain(tr.places[id("vm2")], abi.ReasonDeviceRefused); c.Command != "heddle stats vm2" ||
		c.From != "the device's queue" {
		t.Errorf("%+v", c)
	}
}
