package advise

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/observe/sightings"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// ruleCase provokes one rule and then fixes it.
type ruleCase struct {
	rule string
	// old and new change the sound configuration, for both provoke and near.
	old, new string
	// provoke makes the fault that the rule looks for; near makes the same host sound in that respect, and changes
	// nothing else.
	provoke, near func(*rig)
	// object, sign and fix are parts of the finding: fix is in the edit or in the command.
	object, sign, fix string
	level             api.FindingLevel
}

func none(*rig) {}

func securityCases() []ruleCase {
	wrong, note := api.FindingWrong, api.FindingNote
	promiscuousGuest := func(r *rig) { r.count("s", "packetsInUnicast", 100); r.count("s", "packetsOutUnicast", 2000) }
	return []ruleCase{
		{rule: "promiscuous", provoke: promiscuousGuest, near: func(r *rig) {
			promiscuousGuest(r)
			r.fact("s", func(f *plan.Fact) { f.Promiscuous = plan.AsksNo })
		},
			object: "port s", sign: "2,000 unicast frames and sent 100 frames; about 95%",
			fix: "security: {promiscuous: reject, macLearning: {enabled: true}}", level: note},
		{rule: "forged-transmits", provoke: func(r *rig) { r.dropped("a", "forged-transmit", 3) }, near: func(r *rig) {
			r.refused("a", "forged-transmit", 3)
		},
			object: "port a", sign: "3 frames from addresses that are not the port's were dropped since it was " +
				"connected", fix: "security: {forgedTransmits: accept}", level: wrong},
		{rule: "guest-tags", provoke: func(r *rig) { r.dropped("a", "guest-tagged", 1) }, near: func(r *rig) {
			r.dropped("a", "unknown-unicast", 1)
		},
			object: "port a", sign: "1 frame with a tag that the port (access 10)",
			fix: "heddle capture a --stage drop --reason guest-tagged", level: wrong},
		{rule: "guest-tags", old: `["0-4094"]`, new: `["1-20"]`, provoke: func(r *rig) {
			r.dropped("s", "vlan-not-allowed", 1)
		}, near: none,
			object: "port s", sign: "1 frame of VLANs that the port (trunk 1-20) does not carry",
			fix: "--reason vlan-not-allowed", level: wrong},
		{rule: "guest-bpdu", provoke: func(r *rig) { r.dropped("b", "guest-bpdu", 2) }, near: none, object: "port b",
			sign: "2 frames of spanning tree",
			fix:  "checks: {blockGuestBPDU: false}", level: note},
		{rule: "guest-link-control", provoke: func(r *rig) { r.dropped("b", "guest-link-control", 3) }, near: none,
			object: "port b", sign: "3 frames of link control",
			fix: "security: {guestLinkControl: [lldp]}", level: note},
		{rule: "blocked-sender", old: `"02:00:00:00:00:0b"`, new: `"02:00:00:00:00:0b", blocked: true`,
			provoke: func(r *rig) { r.dropped("b", "port-blocked", 7) }, near: none,
			object: "port b", sign: "7 frames that the port sent", fix: "blocked: false", level: note},
		{rule: "loop", provoke: func(r *rig) {
			r.dropped("b", "loop-blocked", 5)
			r.fact("b", func(f *plan.Fact) {
				f.LoopBlocked = &problem.Problem{Code: problem.LoopProbed,
					Detail: "frames that leave by port a come in by port b"}
			})
		}, near: func(r *rig) { r.dropped("b", "loop-blocked", 5) }, object: "port b",
			sign: "Heddle kept back 5 frames that it sent and 0 frames for it", fix: "heddle port unblock b",
			level: wrong},
	}
}

func floodCases() []ruleCase {
	sends := func(kind string, n uint64, drops ...api.ReasonNo) func(*rig) {
		return func(r *rig) { r.lately("a", map[string]uint64{kind: n}, drops...) }
	}
	drops := func(reason string, n uint64) api.ReasonNo { return api.ReasonNo{Reason: reason, Value: n} }
	const broadcast, multicast, notFlooded = "packetsInBroadcast", "packetsInMulticast", "unknownNotFlooded"
	const unknown = "unknownFlooded"
	const web = "{name: web, vlan: {access: 10}"
	return []ruleCase{
		{rule: "flood", provoke: sends(broadcast, 600), near: sends(broadcast, 249), object: "port a",
			level: api.FindingWrong, fix: "stormControl: {broadcast: 500}",
			sign: "it sends 1,200 broadcast frames a second (measured for 500ms); each can reach 3 other ports and " +
				"the physical network"},
		{rule: "flood", provoke: sends(broadcast, 600, drops("guest-tagged", 300)),
			near: sends(broadcast, 600, drops("forged-transmit", 400)), object: "port a",
			level: api.FindingWrong, fix: "stormControl: {broadcast: 500}",
			sign: "it sends 600 broadcast frames a second"},
		{rule: "flood", provoke: sends(multicast, 500), near: sends(multicast, 499), object: "port a",
			level: api.FindingNote, fix: "stormControl: {multicast: 1000}",
			sign: "it sends 1,000 multicast frames a second"},
		{rule: "flood", old: web, new: web + ", stormControl: {broadcast: 200, unknownUnicast: 50}",
			provoke: sends(broadcast, 600, drops("storm-control", 500)),
			near:    sends(broadcast, 600, drops("storm-control", 4)), object: "port a", level: api.FindingNote,
			fix: "heddle capture a --count 20",
			sign: "it sends 1,200 broadcast frames and 0 multicast frames a second (measured for 500ms); storm " +
				"control (broadcast 200/s, unknown unicast 50/s) " +
				"holds it: it keeps 1,000 frames a second from the others"},
		{rule: "flood", provoke: sends(unknown, 250, drops("forged-transmit", 400)), near: sends(unknown, 249),
			object: "port a", level: api.FindingNote, fix: "stormControl: {unknownUnicast: 500}",
			sign: "it sends 500 unknown-unicast frames a second (measured for 500ms), of which the ports that take " +
				"unknown unicast get copies"},
		{rule: "flood", old: web, new: web + ", stormControl: {unknownUnicast: 50}", provoke: sends(notFlooded, 5),
			near: sends(notFlooded, 4), object: "port a",
			level: api.FindingNote, fix: "heddle capture a", sign: "it keeps 10 frames a second from the others"},
	}
}

// However many frames a port has sent since it was connected: only a present flood is reported.
func TestAFloodIsOneOfNow(t *testing.T) {
	r := newRig(t, sound)
	r.count("a", "packetsInBroadcast", 1_000_000)
	r.dropped("a", "storm-control", 1_000_000)
	if found := r.found("flood"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	r.lately("u1", map[string]uint64{"packetsInBroadcast": 1_000_000})
	if found := r.found("flood"); len(found) > 0 {
		t.Errorf("of an uplink: %+v", found)
	}
}

func guardCases() []ruleCase {
	old, _, _ := strings.Cut(sound, "- {name: n,") // up to the ports a and b
	with := func(group, a, b string) string {
		text := strings.Replace(old, "{name: web, vlan: {access: 10}}", "{name: web, vlan: {access: 10}, security: {"+
			group+"}}", 1)
		text = strings.Replace(text, `"02:00:00:00:00:0a"`,
			`"02:00:00:00:00:0a", security: {addressGuard: {addresses: [`+a+`]}}`, 1)
		return strings.Replace(text, `"02:00:00:00:00:0b"`,
			`"02:00:00:00:00:0b", security: {addressGuard: {addresses: [`+b+`]}}`, 1)
	}
	const on, own = "addressGuard: {enabled: true}", `192.0.2.10, "2001:db8::10"`
	refuses := func(reason, address string) func(*rig) {
		return func(r *rig) {
			r.dropped("a", reason, 3)
			r.view("a").Refused = []api.Refusal{{Reason: "forged-transmit", MAC: "02:00:00:00:00:55", Time: r.Now},
				{Reason: reason, Address: address, Time: r.Now}}
		}
	}
	dropped := func(reason string) func(*rig) { return func(r *rig) { r.dropped("a", reason, 2) } }
	near := func(r *rig) { r.refused("a", "ip-source-not-allowed", 3); r.dropped("a", "unknown-unicast", 3) }
	wrong, note := api.FindingWrong, api.FindingNote
	return []ruleCase{
		{rule: "address-guard", old: old, new: with(on, own, "192.0.2.11"), provoke: refuses("ip-source-not-allowed",
			"192.0.2.99"), near: near, object: "port a",
			sign: "3 frames of IP from addresses that are not the port's were dropped since it was connected, the " +
				"latest: 192.0.2.99; " +
				"192.0.2.99 is not one of the port's addresses: 192.0.2.10, 2001:db8::10",
			fix: "addresses: [192.0.2.10, 2001:db8::10, 192.0.2.99]", level: wrong},
		{rule: "address-guard", old: old, new: with(on, own, "192.0.2.11, 192.0.2.99"),
			provoke: refuses("arp-sender-not-allowed", "192.0.2.99"), near: near, object: "port a",
			sign: "3 frames of ARP in the name of addresses that are not the port's were dropped since it was " +
				"connected, the latest: 192.0.2.99; " +
				"192.0.2.99 is not one of the port's addresses: 192.0.2.10, 2001:db8::10; it is listed at port b",
			fix: "addresses: [192.0.2.10, 2001:db8::10, 192.0.2.99]", level: wrong},
		{rule: "address-guard", old: old, new: with(on, own, "192.0.2.11"), provoke: refuses("arp-sender-not-allowed",
			"192.0.2.10"), near: near, object: "port a",
			sign: "192.0.2.10 is listed at the port, and the frame is none",
			fix:  "heddle capture a --stage drop --reason arp-sender-not-allowed", level: wrong},
		{rule: "address-guard", old: old, new: with(on, own, "192.0.2.11"), provoke: dropped("nd-target-not-allowed"),
			near: near, object: "port a",
			sign: "2 frames of neighbour discovery about addresses",
			fix:  "heddle capture a --stage drop --reason nd-target-not-allowed", level: wrong},
		{rule: "guest-dhcp-server", old: old, new: with("dhcpServer: reject", own, own),
			provoke: dropped("guest-dhcp-server"), near: near,
			object: "port a", sign: "2 frames of a DHCP server were dropped", fix: "security: {dhcpServer: accept}",
			level: note},
		{rule: "guest-router", old: old, new: with("routerAdvertisements: reject", own, own),
			provoke: dropped("guest-router-advertisement"),
			near:    near, object: "port a", sign: "2 frames of an IPv6 router were dropped",
			fix: "security: {routerAdvertisements: accept}", level: note},
	}
}

func guestCases() []ruleCase {
	waits := func(w api.Wait) func(*rig) {
		return func(r *rig) {
			w.Why, w.Since = "its QEMU waits for it", r.Now.Add(-10*time.Minute)
			r.view("b").State, r.view("b").Wait = api.Waiting, &w
		}
	}
	return []ruleCase{{rule: "guest-overdue", provoke: waits(api.Wait{Overdue: true}),
		near: waits(api.Wait{Left: true}), object: "port b",
		sign: "nothing has come from it for 10m0s; that it is to arrive is known because its QEMU waits for it",
		fix:  "heddle port activate b", level: api.FindingNote}}
}

func addressCases() []ruleCase {
	wrong, note := api.FindingWrong, api.FindingNote
	held := func(n uint64) func(*rig) { return func(r *rig) { r.count("n", macsLearned, n) } }
	moves := func(n int, ago time.Duration) func(*rig) {
		return func(r *rig) {
			ports := [2]string{"a", "n"}
			for i := range n {
				r.Events = append(r.Events, event.Event{Seq: uint64(i + 1), Time: r.Now.Add(-ago), Kind: event.Moved,
					Switch: "lab", Port: ports[i%2], MAC: "02:00:00:00:00:99", VLAN: plan.SegmentOf(10, false),
					From: ports[(i+1)%2], To: ports[i%2]})
			}
		}
	}
	changed := func(r *rig) {
		r.fact("a", func(f *plan.Fact) { f.SeenMAC = plan.MAC{2, 0, 0, 0, 0, 0x77} })
		r.view("a").Violation = "the adapter uses 02:00:00:00:00:77"
		r.refused("a", "mac-change", 4)
	}
	return []ruleCase{
		{rule: "mac-limit", provoke: func(r *rig) { held(20)(r); r.dropped("n", "mac-limit", 5) }, near: held(20),
			object: "port n",
			sign:   "20 learned MACs of 20, and 5 frames from others were dropped", fix: "limit: 40", level: wrong},
		{rule: "mac-limit", provoke: func(r *rig) { held(20)(r); r.count("n", "macNotLearnedAllowed", 1) },
			near: held(20), object: "port n", sign: "1 frame from others passed unlearned", fix: "limit: 40",
			level: note},
		{rule: "mac-table", provoke: held(18), near: held(17), object: "port n", sign: "it holds 18 learned MACs of 20",
			fix: "limit: 40", level: note},
		{rule: "mac-table", provoke: held(120_000), near: none, object: "switch lab",
			sign: "the host holds 120,000 learned MACs of 131072", fix: "heddle mac list", level: wrong},
		{rule: "mac-twice", provoke: func(r *rig) {
			r.fact("a", func(f *plan.Fact) { f.SeenMAC = plan.MAC{2, 0, 0, 0, 0, 0xb} })
		},
			near:   func(r *rig) { r.fact("a", func(f *plan.Fact) { f.SeenMAC = plan.MAC{2, 0, 0, 0, 0, 0xe} }) },
			object: "port a", sign: "ports a and b use one address, 02:00:00:00:00:0b",
			fix: "heddle mac show 02:00:00:00:00:0b", level: wrong},
		{rule: "mac-twice", provoke: moves(3, time.Second), near: moves(2, time.Second), object: "port a",
			sign: "moved 3 times in the last 1m0s, to and fro between ports n and a",
			fix:  "heddle mac show 02:00:00:00:00:99", level: wrong},
		{rule: "mac-twice", provoke: moves(5, time.Second), near: moves(5, 2*time.Minute), object: "port a",
			sign: "moved 5 times", fix: "heddle mac show", level: wrong},
		{rule: "mac-flaps", provoke: func(r *rig) {
			r.view("a").Flapping = []api.FlappingMAC{{MAC: "02:00:00:00:00:99", Segment: "10", Times: 3,
				Elsewhere: []api.FlappingElsewhere{{Host: "esx2", Port: "b", Times: 2}}}}
		}, near: func(r *rig) { r.view("a").Flapping = nil }, object: "port a",
			sign: "3 times learned here, 2 times on host esx2 (port b)", fix: "heddle mac show 02:00:00:00:00:99",
			level: wrong},
		{rule: "mac-change", old: "{access: 10}}\n  - {name: nested",
			new: "{access: 10}, security: {macChanges: reject}}\n  - {name: nested", provoke: changed,
			near: func(r *rig) { r.refused("a", "mac-change", 4) }, object: "port a",
			sign: "uses 02:00:00:00:00:77; 4 copies for it were refused", fix: "security: {macChanges: accept}",
			level: wrong},
	}
}

func uplinkCases() []ruleCase {
	wrong, note := api.FindingWrong, api.FindingNote
	quiet := func(r *rig) { r.count("u2", "packetsInBroadcast", 0); r.count("u2", "packetsInUnicast", 0) }
	down := func(names ...string) func(*rig) {
		return func(r *rig) {
			for _, n := range names {
				r.fact(n, func(f *plan.Fact) { f.Up = false })
			}
		}
	}
	chassis := func(first, second string) func(*rig) {
		return func(r *rig) {
			r.uplink(1).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{Chassis: first}}}
			r.uplink(2).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{Chassis: second}}}
		}
	}
	const web, team = "{name: web, vlan: {access: 10}", "{name: web, vlan: {access: 10}, teaming: "
	member := func(used bool) func(*rig) {
		return func(r *rig) {
			r.uplink(1).LAG = &api.LAGMember{Name: "lag1", Used: used, Reason: "no partner is heard", In: 0, Out: 9}
			r.uplink(2).LAG = &api.LAGMember{Name: "lag1", Used: true}
		}
	}
	return []ruleCase{
		{rule: "reflection-check", old: "kind: distributed", new: "kind: distributed\n  checks: {reversePath: false}",
			provoke: none, near: quiet, object: "switch lab",
			sign: "checks.reversePath is off, and broadcast and multicast frames came by u1 (1,000 frames) and by u2 " +
				"(1,000 frames)", fix: "checks: {reversePath: true}", level: wrong},
		{rule: "reflection-check", old: "kind: distributed",
			new: "kind: distributed\n  checks: {reversePathPromiscuous: false}", provoke: none, near: quiet,
			object: "switch lab",
			sign:   "checks.reversePathPromiscuous is off, and unicast frames",
			fix:    "checks: {reversePathPromiscuous: true}", level: wrong},
		{rule: "uplink-vlan", old: "device: eno1}, {name: u2, device: eno2}",
			new:     `device: eno1, vlans: ["0-9"]}, {name: u2, device: eno2, vlans: ["0-9"]}`,
			provoke: func(r *rig) { r.refused("u1", "uplink-vlan", 12) }, near: func(r *rig) {
				r.dropped("u1", "uplink-vlan", 12)
			}, object: "port group web", sign: "VLAN 10: none of its uplinks carries it; its ports sent 4,000 frames",
			fix: `vlans: ["0-10"]`, level: wrong},
		{rule: "uplink-vlan", old: "device: eno2}", new: `device: eno2, vlans: ["0-9"]}`, provoke: func(r *rig) {
			r.refused("u2", "uplink-vlan", 1)
		},
			near: func(r *rig) { delete(r.Host.Facts, id("u2")) }, object: "port group web",
			sign: "VLAN 10: others carry it, u2 carries 0-9; 1 frame was refused there", fix: `vlans: ["0-10"]`,
			level: wrong},
		{rule: "uplink-vlan", old: "device: eno2}", new: `device: eno2, vlans: ["0-9"]}`, provoke: none,
			near: func(r *rig) { delete(r.Host.Facts, id("u2")) }, object: "port group web",
			sign: "0 frames were refused", fix: `vlans: ["0-10"]`, level: note},
		{rule: "ip-hash", old: web, new: team + "{policy: ip-hash}", provoke: func(r *rig) {
			r.refused("a", "reflected", 6)
		}, near: func(r *rig) { r.refused("n", "reflected", 6) },
			object: "port group web", sign: "6 frames that its own ports had sent came back by another of u1, u2",
			fix: "teaming: {policy: originating-port}", level: wrong},
		{rule: "ip-hash", old: web, new: team + "{policy: ip-hash}", provoke: chassis("02:00:00:00:aa:01",
			"02:00:00:00:aa:02"), near: chassis("02:00:00:00:aa:01", "02:00:00:00:aa:01"),
			object: "port group web", sign: "u1 leads to chassis 02:00:00:00:aa:01, u2 to 02:00:00:00:aa:02",
			fix: "teaming: {policy: originating-port}", level: note},
		{rule: "stp", provoke: reasoned("stp: 5", problem.STPDiscards), near: func(*rig) {}, object: "uplink u1",
			sign: "stp: 5", fix: "heddle uplink show u1", level: wrong},
		{rule: "storm", provoke: reasoned("a storm: 5000", problem.StormOutside), near: func(*rig) {},
			object: "uplink u1", sign: "a storm: 5000", fix: "heddle uplink show u1", level: wrong},
		{rule: "lacp-without-lag", provoke: unbundled("lacp: 5", ""), near: unbundled("", ""),
			object: "uplink u1", sign: "lacp: 5", fix: "heddle uplink show u1", level: wrong},
		{rule: "lacp-without-lag", provoke: unbundled("lacp: 5", "lacp: 5"), near: unbundled("", ""),
			object: "switch lab", sign: "u1, u2: lacp: 5", fix: "heddle uplink show u1", level: wrong},
		{rule: "half-open", provoke: quiet, near: func(r *rig) { quiet(r); r.count("u2", "packetsInMulticast", 1) },
			object: "uplink u2", sign: "it sent 2,000 frames since it was connected and received none",
			fix: "heddle uplink show u2", level: wrong},
		{rule: "no-uplink", provoke: func(r *rig) { down("u1", "u2")(r); r.dropped("a", "no-uplink", 8) },
			near: down("u1"), object: "port group web", sign: "u1 (down), u2 (down); 8 frames found no uplink",
			fix: "heddle uplink list", level: wrong},
		{rule: "no-uplink", old: web, new: team + "{active: [u1], standby: []}", provoke: down("u1"), near: none,
			object: "port group web", sign: "u1 (down)", fix: "teaming: {active: [u2]}", level: wrong},
		{rule: "team-degraded", provoke: func(r *rig) {
			r.fact("u2", func(f *plan.Fact) { f.Out = &problem.Problem{Code: problem.BeaconsDeaf, Want: 3} })
		}, near: none, object: "port group web",
			sign: "1 of 2 can be used; not u2 (3 rounds of beacons lost: no beacon of another uplink arrives on it)",
			fix:  "heddle uplink list --switch lab", level: note},
		{rule: "team-degraded", old: web, new: team + "{active: [u1], standby: [u2]}", provoke: func(r *rig) {
			delete(r.Host.Facts, id("u2"))
		}, near: none, object: "port group web",
			sign: "not u2 (not connected)", fix: "heddle uplink list --switch lab", level: note},
		{rule: "uplink-drained", provoke: func(r *rig) {
			r.uplink(2).Maintenance = &api.UplinkMaintenance{Use: api.IsBlocked, ByCommand: true,
				Since: r.Now.Add(-time.Hour)}
		}, near: func(r *rig) { // as the file has it
			r.uplink(2).Maintenance = &api.UplinkMaintenance{Use: api.IsBlocked}
		}, object: "uplink u2", sign: "blocked by command for 1h0m0s", fix: "heddle uplink restore u2", level: note},
		{rule: "uplink-drained", old: "device: eno2}", new: "device: eno2, drained: true}", provoke: func(r *rig) {
			r.uplink(2).Maintenance = &api.UplinkMaintenance{Use: api.IsDrained}
		}, near: none, object: "uplink u2", sign: "drained by the configuration file", fix: "heddle uplink show u2",
			level: note},
		{rule: "single-uplink", old: web, new: team + "{active: [u1]}", provoke: none, near: down("u2"),
			object: "port group web", sign: "its teaming names u1 alone, and 2 can be used: u1, u2",
			fix: "teaming: {standby: [u2]}", level: note},
		{rule: "single-uplink", old: web, new: team + "{active: [u1]}", provoke: none, near: func(r *rig) {
			r.sw.Uplinks[1].VLANs = plan.VLANSet{1}
		}, object: "port group web",
			sign: "its teaming names u1 alone", fix: "teaming: {standby: [u2]}", level: note},
		{rule: "reflection-check", old: "kind: distributed", new: "kind: distributed\n  checks: {reversePath: false}",
			provoke: none, object: "switch lab",
			near: func(r *rig) { // the two are in different networks
				r.sw.Uplinks[0].VLANs, r.sw.Uplinks[1].VLANs = plan.VLANSet{1 << 10}, plan.VLANSet{1 << 11}
			}, sign: "reversePath is off", fix: "checks: {reversePath: true}", level: wrong},
		{rule: "single-uplink", old: web, new: team + "{policy: ip-hash, active: [u1]}", provoke: none,
			near: down("u2"), object: "port group web", sign: "its teaming names u1 alone",
			fix: "teaming: {active: [u1, u2]}", level: note},
		{rule: "half-open", provoke: func(r *rig) { quiet(r); r.Window = 5 * time.Second }, near: func(r *rig) {
			quiet(r)
			r.Window = 4 * time.Second
		}, object: "uplink u2",
			sign: "2,000 frames in the last 5s and received none", fix: "heddle uplink show u2", level: wrong},
		{rule: "lag-member", old: "  portGroups:", new: "  lags: [{name: lag1, uplinks: [u1, u2]}]\n  portGroups:",
			provoke: member(false), near: member(true), object: "uplink u1",
			sign: "LAG lag1: no partner is heard; 0 LACPDUs received, 9 LACPDUs sent", fix: "heddle uplink show u1",
			level: wrong},
		{rule: "lag-degraded", old: "  portGroups:", new: "  lags: [{name: lag1, uplinks: [u1, u2]}]\n  portGroups:",
			provoke: down("u2"), near: func(r *rig) { down("u1")(r); down("u2")(r) }, object: "switch lab",
			sign: "LAG lag1: 1 of 2 members carry traffic; not u2 (down)", fix: "heddle lag show lag1", level: note},
	}
}

func deviceCases() []ruleCase {
	wrong, note := api.FindingWrong, api.FindingNote
	longest := func(n uint16) func(*rig) {
		return func(r *rig) {
			r.uplink(1).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{Chassis: "c", SystemName: "tor1", Port: "eth7",
				MaxFrame: n}}}
		}
	}
	announces := func(vlans ...uint16) func(*rig) {
		return func(r *rig) {
			n := api.Neighbour{Chassis: "c", SystemName: "tor1", Port: "eth7"}
			for _, v := range vlans {
				n.VLANs = append(n.VLANs, api.NeighbourVLAN{ID: v, Name: "vm"})
			}
			r.uplink(1).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{Chassis: "silent"}, n}}
		}
	}
	losses := func(d api.DeviceLosses) func(*rig) { return func(r *rig) { r.stats("u1").Device = &d } }
	return []ruleCase{
		{rule: "mtu", provoke: func(r *rig) {
			r.fact("a", func(f *plan.Fact) { f.MTU = 9000 })
			r.dropped("a",
				"mtu-exceeded", 2)
		},
			near:   func(r *rig) { r.fact("a", func(f *plan.Fact) { f.MTU = 9000 }) },
			object: "port a", sign: "2 frames longer than the switch's MTU of 1500 were dropped since it was " +
				"connected; its own MTU is 9000", fix: "mtu: 9000", level: wrong},
		{rule: "mtu", provoke: func(r *rig) {
			r.fact("b", func(f *plan.Fact) { f.MTU = 1400 })
			r.refused("b",
				"mtu-exceeded", 2)
		},
			near:   func(r *rig) { r.fact("b", func(f *plan.Fact) { f.MTU = 1400 }) },
			object: "port b", sign: "2 frames longer than its MTU of 1400 were refused since it was connected; " +
				"others send up to 1500", fix: "ip link set dev pb mtu 1500", level: wrong},
		{rule: "mtu", provoke: func(r *rig) {
			r.fact("b", func(f *plan.Fact) { f.MTU = 1400 })
			r.refused("b", "mtu-exceeded", 2)
			r.dropped("a", "mtu-exceeded", 2)
		},
			near:   none, // a copy that the only receiver refuses is reported as its fault alone
			object: "port b", sign: "2 frames longer than its MTU of 1400", fix: "mtu 1500", level: wrong},
		{rule: "neighbour-mtu", provoke: longest(1500), near: longest(1518), object: "uplink u1",
			sign: "port eth7 of tor1 takes frames of 1500 bytes, and packets of up to 1500", fix: "mtu: 1482",
			level: wrong},
		{rule: "neighbour-vlan", provoke: announces(20, 30), near: announces(10, 30), object: "port group web",
			sign: "VLAN 10 is not among those that port eth7 of tor1 announces by LLDP at u1: 20,30",
			fix:  "heddle uplink show u1", level: note},
		{rule: "neighbour-vlan", old: "vlan: {access: 10}", new: `vlan: {trunk: ["0", "20-21"]}`,
			object:  "port group web",
			provoke: announces(10, 20), near: announces(10, 20, 21), sign: "VLAN 21 is not among those",
			fix:   "uplink show u1",
			level: note},
		{rule: "device-missing", provoke: func(r *rig) {
			r.view("b").State, r.view("b").Reason = api.Pending, "device pb does not exist"
			r.Absent = map[plan.PortID]sightings.Absence{id("b"): {Since: r.Now.Add(-time.Hour)}}
			r.Host.Waiting[id("b")] = problem.Problem{Code: problem.DeviceMissing, Device: "pb"}
		}, near: func(r *rig) { r.view("b").State = api.Down },
			object: "port b", sign: "device pb does not exist; for 1h0m0s", fix: "heddle port show b",
			level: note},
		{rule: "program-before", provoke: func(r *rig) {
			r.view("a").RunsBefore = []api.ProgramBefore{{Switch: "lab", Port: "a", Device: "pa", Hook: "ingress",
				Name: "heddle_x", Program: 12, Link: 34}}
		}, near: none, object: "port a", sign: "program heddle_x (id 12, link 34) runs on device pa (ingress) before " +
			"the switch's", fix: "bpftool link detach id 34", level: wrong},
		{rule: "program-before", provoke: func(r *rig) {
			r.uplink(1).RunsBefore = []api.ProgramBefore{{Switch: "lab", Uplink: "u1", Device: "eno1",
				Hook: api.HookXDP, Program: 12}}
		}, near: none, object: "uplink u1", sign: "XDP program (id 12) runs on device eno1 (xdp)",
			fix: "ip link set eno1 xdp off", level: wrong},
		{rule: "past-switch", provoke: func(r *rig) {
			r.Past = []Past{{At: plan.PortID{Switch: "lab", Name: "u1"}, Device: "mv0", Driver: "macvlan",
				Where: "on top of device eno1"}}
		}, near: none, object: "uplink u1", sign: "macvlan mv0, on top of device eno1, sends and receives beside the " +
			"switch", fix: "ip link del mv0", level: wrong},
		{rule: "past-switch", provoke: func(r *rig) {
			r.Past = []Past{{At: plan.PortID{Switch: "lab", Name: "a"}, Device: "pa.10", Driver: "vlan",
				Where: "on top of device pa, in bridge br0"}}
		}, near: none, object: "port a", sign: "vlan pa.10, on top of device pa, in bridge br0, sends",
			fix: "ip link del pa.10", level: wrong},
		{rule: "device-losses", provoke: losses(api.DeviceLosses{RxErrors: 1, TxDropped: 4}),
			near: losses(api.DeviceLosses{RxDropped: 100}), object: "uplink u1",
			sign: "1 error receiving", fix: "ethtool -S eno1", level: note},
		{rule: "device-refused", provoke: func(r *rig) { r.refused("a", "device-refused", 20) }, near: func(r *rig) {
			r.refused("a", "device-refused", 19)
		}, object: "port a", sign: "20 copies were refused",
			fix: "heddle stats a", level: note},
	}
}

func vlanCases() []ruleCase {
	const web, other = "{name: web, vlan: {access: 10}}", "{name: web, vlan: {access: 20}}"
	silent := func(r *rig, ports ...string) {
		for _, p := range ports {
			r.count(p, "packetsOutUnicast", 0)
			r.count(p, "packetsOutBroadcast", 0)
		}
	}
	return []ruleCase{
		{rule: "wrong-vlan", old: web, new: other, provoke: func(r *rig) { silent(r, "a") }, near: func(r *rig) {
			silent(r, "a")
			r.count("a", "packetsOutUnicast", 1)
		}, object: "port a", sign: "it sent 2,000 frames (access 20) since it was connected and got none; it shares " +
			"its VLAN with 2 other ports; its uplinks (u1, u2) brought 4,000 frames",
			fix: "heddle trace a n", level: api.FindingNote},
		{rule: "wrong-vlan", old: web, new: other, provoke: func(r *rig) {
			silent(r, "a")
			r.dropped("u2", "no-receiver", 7)
		}, near: func(r *rig) {
			silent(r, "a")
			r.count("a", "packetsInUnicast", 0)
			r.count("a", "packetsInBroadcast", 9)
		},
			object: "port a", sign: "brought 4,000 frames, 7 of them for VLANs or addresses that no port here has",
			fix: "heddle capture u2 --stage drop", level: api.FindingNote},
		{rule: "wrong-vlan", provoke: func(r *rig) { r.count("a", "packetsOutUnicast", 0) }, near: func(r *rig) {
			r.count("a", "packetsOutUnicast", 0)
			r.count("a", "packetsInBroadcast", 19)
		}, object: "port a", sign: "it sent 1,000 broadcast frames (access 10) since it was connected, and not one " +
			"unicast frame came for it, while 1,000 frames to all did", fix: "heddle capture u1 --count 10",
			level: api.FindingNote},
		{rule: "wrong-vlan", old: web, new: other, provoke: func(r *rig) {
			silent(r, "a")
			r.uplink(2).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{SystemName: "tor1", PVID: 20}}}
		}, near: func(r *rig) {
			r.uplink(2).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{SystemName: "tor1", PVID: 20}}}
		}, object: "port a", sign: "; tor1 has VLAN 20 untagged on u2 (LLDP), and it is sent with a tag here",
			fix: "heddle trace a n", level: api.FindingNote},
		{rule: "wrong-vlan", old: web, new: "{name: web}", provoke: func(r *rig) {
			silent(r, "a")
			r.uplink(1).LLDP = &api.LLDP{Neighbours: []api.Neighbour{{SystemName: "tor1", PVID: 20}}}
		}, near: func(r *rig) { silent(r, "a"); r.fact("a", func(f *plan.Fact) { f.Up = false }) }, object: "port a",
			sign: "; tor1 takes untagged frames of u1 as VLAN 20 (LLDP)", fix: "heddle trace a n",
			level: api.FindingNote},
		{rule: "wrong-vlan", old: web, new: other, provoke: func(r *rig) { silent(r, "a") },
			near: func(r *rig) { // what it sent was refused
				silent(r, "a")
				r.dropped("a", "forged-transmit", 1995)
			}, object: "port a", sign: "got none", fix: "heddle trace a n", level: api.FindingNote},
		{rule: "wrong-vlan", old: web, new: other, provoke: func(r *rig) { silent(r, "a") },
			near: func(r *rig) { // no station receives anything, on any VLAN
				silent(r, "a", "b", "n", "s")
				r.count("n", "packetsInUnicast", 0)
				r.count("n", "packetsInBroadcast", 0)
				for _, u := range []string{"u1", "u2"} {
					r.count(u, "packetsInUnicast", 0)
					r.count(u, "packetsInBroadcast", 0)
				}
			}, object: "port a", sign: "got none", fix: "heddle trace a n", level: api.FindingNote},
	}
}

func allCases() (all []ruleCase) {
	for _, list := range [][]ruleCase{controllerCases(), securityCases(), guardCases(), floodCases(), addressCases(),
		vlanCases(), uplinkCases(), deviceCases(), tunnelCases(), twinCases(), guestCases(), flowCases(),
		learningCases(), offloadCases()} {
		all = append(all, list...)
	}
	return all
}

func (c *ruleCase) text(t *testing.T) string {
	if !strings.Contains(sound, c.old) {
		t.Fatalf("the sound configuration has no %q", c.old)
	}
	return strings.Replace(sound, c.old, c.new, 1)
}

func TestEachRuleFindsItsFault(t *testing.T) {
	for _, c := range allCases() {
		t.Run(c.rule, func(t *testing.T) {
			r := newRig(t, c.text(t))
			c.provoke(r)
			found := r.found(c.rule)
			if len(found) == 0 {
				t.Fatalf("silent; all findings: %+v", Examine(r.Snapshot).Findings)
			}
			if len(found) > 1 && found[0].Rule == "mtu" {
				t.Errorf("more than the one at fault is told: %+v", found[1:])
			}
			f := found[0]
			said := f.Command
			if f.Edit != nil {
				said += " " + f.Edit.Set
			}
			if f.Object() != c.object || f.Level != c.level || !strings.Contains(f.Sign, c.sign) ||
				!strings.Contains(said, c.fix) || f.Why == "" || f.Change == "" || f.Command == "" {
				t.Errorf("%s, %s, sign %q, remedy %q; want %s, %s, %q, %q\n%+v", f.Object(), f.Level, f.Sign, said,
					c.object, c.level, c.sign, c.fix, f)
			}
			if strings.Contains(f.Sign, "%!") {
				t.Errorf("sign %q", f.Sign)
			}
		})
	}
}

func TestEachRuleIsSilentWhereItsFaultIsNot(t *testing.T) {
	for _, c := range allCases() {
		t.Run(c.rule, func(t *testing.T) {
			r := newRig(t, c.text(t))
			c.near(r)
			if found := r.found(c.rule); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func TestASoundHostHasNoFindings(t *testing.T) {
	a := Examine(newRig(t, sound).Snapshot)
	if len(a.Findings) > 0 || a.Rules != len(Rules()) || a.Ports != 4 || a.Uplinks != 2 || !a.Healthy() {
		t.Errorf("%+v", a)
	}
}

func TestEveryRuleHasACaseAndWords(t *testing.T) {
	tested, seen := map[string]bool{}, map[string]bool{}
	for _, c := range allCases() {
		tested[c.rule] = true
	}
	for _, r := range Rules() {
		if !tested[r.ID] || seen[r.ID] || r.About == "" || r.Sign == "" || r.Why == "" || r.Level == "" {
			t.Errorf("rule %s: tested %v, twice %v, words %q %q %q", r.ID, tested[r.ID], seen[r.ID], r.About, r.Sign,
				r.Why)
		}
		seen[r.ID] = true
	}
}
