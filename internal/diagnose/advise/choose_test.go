package advise

import (
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
)

func learningCases() []ruleCase {
	const nested = "{forgedTransmits: accept, macLearning: {enabled: true, limit: 20}}"
	const learns = "macLearning: {enabled: true, limit: 20}"
	unasked := func(name string) func(*rig) {
		return func(r *rig) { r.fact(name, func(f *plan.Fact) { f.Promiscuous = plan.AsksNo }) }
	}
	off := func(r *rig) {
		for _, u := range []string{"u1", "u2"} {
			r.count(u, "packetsInUnicast", 0)
		}
	}
	note := api.FindingNote
	return []ruleCase{
		{rule: "learning-forged", old: nested, new: "{" + learns + "}", provoke: none, object: "port group nested",
			near: func(r *rig) {
				r.sw.Ports[2].Policy.ForgedTransmits.V = true
			},
			sign: "security.macLearning.enabled is true, and security.forgedTransmits is reject",
			fix:  "security: {forgedTransmits: accept}", level: note},
		{rule: "learning-promiscuous", old: nested,
			new:     "{promiscuous: accept, forgedTransmits: accept, " + learns + "}",
			provoke: func(r *rig) { r.count("n", "packetsOutUnicast", 0) }, near: unasked("n"), object: "port n",
			sign: "security.macLearning.enabled is true, and security.promiscuous is accept",
			fix:  "security: {promiscuous: reject}", level: note},
		{rule: "promiscuous-uplinks", old: "kind: distributed",
			new: "kind: distributed\n  checks: {reversePathPromiscuous: false}", provoke: off, near: unasked("s"),
			object: "switch lab", level: note, fix: "checks: {reversePathPromiscuous: true}",
			sign: "checks.reversePathPromiscuous is off, u1, u2 can be used, and promiscuous mode is accepted at s"},
	}
}

func offloadCases() []ruleCase {
	is := func(name string, a Ability) func(*rig) {
		return func(r *rig) { r.Abilities = map[plan.PortID]Ability{id(name): a} }
	}
	passes := func(queues int, bytes uint64) func(*rig) {
		return func(r *rig) {
			is("u1", Ability{Device: "eno1", Queues: queues, MaxQueues: 8})(r)
			r.lately("u1", map[string]uint64{"bytesInUnicast": bytes, "packetsOutUnicast": 20})
		}
	}
	note := api.FindingNote
	return []ruleCase{
		{rule: "guest-offloads", provoke: is("a", Ability{Device: "tap7", Tap: true}),
			near: is("a", Ability{Device: "tap7", Tap: true, Segments: true, Checksums: true}), object: "port a",
			sign: "the guest behind tap tap7 takes neither TCP packets of many frames (TSO) nor frames without " +
				"checksums; ",
			fix: "ethtool -k tap7", level: note},
		{rule: "guest-offloads", provoke: is("a", Ability{Device: "tap7", Tap: true, Checksums: true}),
			near: is("a", Ability{Device: "va"}), object: "port a", sign: "takes no TCP packets of many frames (TSO)",
			fix: "ethtool -k tap7", level: note},
		{rule: "single-queue", provoke: passes(1, 125_000_000), near: passes(2, 125_000_000), object: "uplink u1",
			sign: "40 frames and 2.0 Gb a second (measured for 500ms), by 1 of the 8 receive queues",
			fix:  "ethtool -l eno1", level: note},
		{rule: "single-queue", provoke: passes(1, 250_000_000), near: passes(1, 124_000_000), object: "uplink u1",
			sign: "4.0 Gb a second", fix: "ethtool -l eno1", level: note},
	}
}

// The cost of promiscuous mode at a learning port is reported once, with its measure if there is one.
func TestALearningPromiscuousPortIsToldOnce(t *testing.T) {
	c := learningCases()[1]
	r := newRig(t, c.text(t))
	r.count("n", "packetsInUnicast", 10)
	r.count("n", "packetsOutUnicast", 3000)
	if n := len(r.found("promiscuous")); n != 1 {
		t.Fatalf("%d findings with a measure", n)
	}
	if f := r.found("learning-promiscuous"); len(f) > 0 {
		t.Errorf("%+v", f)
	}
}
