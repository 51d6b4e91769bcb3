package kerneltest

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// policyChange is a change of one policy under a stream of vm1's, and who receives the stream before it and after.
type policyChange struct {
	name          string
	config        string
	ports         string // separated by semicolons
	header        string
	size          int // of a frame, bytes; 0 = 60
	from, to      string
	before, after string
	reason        string // of the copies or frames that are no longer made; "" = none is refused
	at            string // where they are counted: refused at these receivers, or dropped at the sender vm1
}

func policyChanges() []policyChange {
	return []policyChange{
		{name: "forged transmits", ports: "vm1 web;vm2 web;vm3 web;tap4 web",
			config: "portGroups: [{name: web, security: {forgedTransmits: accept}}]",
			header: "all vm9 0806", from: "forgedTransmits: accept", to: "forgedTransmits: reject",
			before: "tap4 vm2 vm3", after: "", reason: "forged-transmit", at: "vm1"},
		{name: "promiscuous", ports: "vm1 web;vm2 web;vm3 sniff;vm4 sniff",
			config: "portGroups: [{name: web}, {name: sniff, security: {promiscuous: accept}}]",
			header: "vm2 vm1 0800", from: "promiscuous: accept", to: "promiscuous: reject",
			before: "vm2 vm3 vm4", after: "vm2"},
		{name: "unicast flooding", ports: "vm1 web;vm2 web;vm3 nest;vm4 nest",
			config: "portGroups: [{name: web}, {name: nest, security: {forgedTransmits: accept, macLearning: " +
				"{enabled: true, unicastFlooding: true}}}]",
			header: "ext9 vm1 0800", from: "unicastFlooding: true", to: "unicastFlooding: false",
			before: "vm3 vm4", after: "", reason: "unknown-unicast", at: "vm1"},
		{name: "active uplink", ports: "vm1 web;vm2 web",
			config: "uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]\n  portGroups: [{name: web, " +
				"teaming: {policy: explicit, active: [u1]}}]",
			header: "ext9 vm1 0800", from: "active: [u1]", to: "active: [u2]",
			before: "u1", after: "u2"},
		{name: "unused uplink", ports: "vm1 web;vm2 web",
			config: "uplinks: [{name: u1, device: dev1}]\n  portGroups: [{name: web, teaming: {active: [u1]}}]",
			header: "ext9 vm1 0800", from: "active: [u1]", to: "active: []",
			before: "u1", after: "", reason: "no-uplink", at: "vm1"},
		{name: "MTU", ports: "vm1 web;vm2 web;tap3 web",
			config: "mtu: 1500\n  portGroups: [{name: web}]",
			header: "all vm1 0800", size: 1400, from: "mtu: 1500", to: "mtu: 1280",
			before: "tap3 vm2", after: "", reason: "mtu-exceeded", at: "vm1"},
		{name: "blocked receivers", ports: "vm1 web;vm2 web;vm3 shut;vm4 shut",
			config: "portGroups: [{name: web}, {name: shut, blocked: false}]",
			header: "all vm1 0806", from: "blocked: false", to: "blocked: true",
			before: "vm2 vm3 vm4", after: "vm2", reason: "receiver-blocked", at: "vm3 vm4"},
	}
}

// A policy of any kind changes for all ports at one instant: every frame is treated wholly as before or wholly as
// after, no frame as before follows one as after, none sent after the command has returned is treated as before, and
// none is lost, doubled or unaccounted for.
func TestAChangedPolicyIsInForceForAllPortsAtOneInstant(t *testing.T) {
	testkit.Long(t, "streams at many ports while policies change")
	for _, c := range policyChanges() {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t, "  "+c.config, strings.Split(c.ports, ";")...)
			gathered := h.gather()
			s := startSized(h.ends["vm1"], c.header, max(c.size, 60))
			h.await("frames before the change", func() bool { return s.number.Load() > 200 })
			h.edit(c.from, c.to)
			last := s.number.Load()
			h.await("frames after the change", func() bool { return s.number.Load() > last+500 })
			sent := s.stop(h)
			h.await("every frame is switched", func() bool { return h.received("vm1") == sent })
			c.judge(h, sent, last, gathered())
		})
	}
}

// judge checks which port received which frames. The change was complete when frame last had been sent.
func (c policyChange) judge(h *host, sent, last uint64, got map[string][]captured) {
	h.t.Helper()
	receivers := make([][]string, sent+1)
	for name, list := range got {
		for _, n := range numbers(list) {
			receivers[n] = append(receivers[n], name)
		}
	}
	var early, late uint64
	for n := uint64(1); n <= sent; n++ {
		slices.Sort(receivers[n])
		switch who := strings.Join(receivers[n], " "); {
		case who == c.before && late == 0 && n <= last:
			early++
		case who == c.after:
			late++
		default:
			h.t.Fatalf("frame %d of %d reached %q; the change was over at frame %d, %d frames were treated as before "+
				"and %d as after", n, sent, who, last, early, late)
		}
	}
	if early == 0 || late < 500 {
		h.t.Errorf("%d frames were treated as before, %d as after", early, late)
	}
	if c.reason == "" {
		return
	}
	counters := h.counters()
	for name := range strings.FieldsSeq(c.at) {
		n := counters[name].Refused[reason(c.reason)]
		if name == "vm1" {
			n = counters[name].Drops[reason(c.reason)]
		}
		if n != late {
			h.t.Errorf("%s counts %d of %d frames as %s; dropped %v, refused %v", name, n, late, c.reason,
				counters[name].Drops, counters[name].Refused)
		}
	}
}
