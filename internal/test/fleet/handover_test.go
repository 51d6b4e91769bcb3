package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// adoptedConfig is a host that has by its own file what the controllers define, and a switch of its own.
const adoptedConfig = `
switches:
- name: lan
  kind: standard
  uplinks: [{name: uplink1, device: eno1}]
  portGroups: [{name: office}]
- name: dvs
  uplinks: [{name: uplink1, device: eno2}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: db, vlan: {access: 20}}
  - {name: spare, vlan: {access: 40}}
ports:
- {name: own1, switch: lan, portGroup: office, device: p-own1, mac: "02:00:00:00:01:%02x"}
- {name: web1, switch: dvs, portGroup: web, device: p-own2, mac: "02:00:00:00:02:%02x"}
`

// Hosts that run by their files come under the controllers while they carry traffic.
func TestAHostHandsItsSwitchOverWithoutLosingAFrame(t *testing.T) {
	testkit.Long(t, "streams while a host is handed over; TestAHostJoinsAndHandsOverByOneCommand has it without a "+
		"stream")
	testkit.Never(t)
	t.Parallel()
	f := newFleetOf(t, adoptedConfig, "own1", "web1")
	f.controller.Start()
	between := f.stream("p-own2@0", "p-own2@1", fleetMAC(0, 2), fleetMAC(1, 2))
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	out := f.controller.Define(fleetText)
	if len(out.Waiting) != 2 || !strings.Contains(strings.Join(out.Waiting[0].Problems, "\n"), "host hand-over") {
		t.Fatalf("the definition of what the hosts have: %+v", out)
	}
	for n, h := range f.hosts {
		if text := h.must("host", "hand-over", "--dry-run"); !strings.Contains(text, "nothing changes") {
			t.Errorf("the differences:\n%s", text)
		}
		f.has("what a hand-over prints", h.must("host", "hand-over"), "by the controllers' definition now: dvs")
		name := fmt.Sprintf("esx%d", n)
		f.controller.Await(name+" is up", func() bool { return f.controller.StateOf(name) == api.HostUp })
		if err := h.Heddle("host", "hand-over"); err == nil {
			t.Error("a second time there is something to hand over")
		}
	}
	f.hosts[1].End(syscall.SIGKILL)
	f.hosts[1].Start("")
	f.hosts[1].Up("own1", "web1")
	f.whole("between the hosts", between)
	f.controller.Define(strings.Replace(fleetText, "access: 10", "access: 50", 1))
	for n := range f.hosts {
		if got := f.vlan(n, "web1"); got != "access 50" {
			t.Errorf("host %d has VLAN %s after the controllers changed it", n, got)
		}
	}
	f.reaches("p-own2@1", "p-own2@0", fleetMAC(1, 2), fleetMAC(0, 2))
}

// A host that runs by its file joins and hands its switch over by one command; without a terminal to ask on, it takes
// --yes, and is not let in before.
func TestAHostJoinsAndHandsOverByOneCommand(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, adoptedConfig, "own1", "web1")
	f.controller.Start()
	f.define(strings.Replace(fleetText, "  - {name: spare, vlan: {access: 40}}\n", "", 1))
	between := f.stream("p-own2@0", "p-own2@1", fleetMAC(0, 2), fleetMAC(1, 2))
	for n, h := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		token, err := f.controller.JoinToken(t.Context(), api.JoinTerms{Labels: map[string]string{"rack": "a"}})
		if err != nil {
			t.Fatal(err)
		}
		join := []string{"host", "join", f.controller.Address, "--token", token.Token, "--name", name, "--adopt"}
		if err := h.Heddle(join...); err == nil || !strings.Contains(err.Error(), "add --yes") {
			t.Errorf("nobody is asked: %v", err)
		}
		if m, err := h.Membership(t.Context()); err != nil || m.Member {
			t.Errorf("the host has joined before anybody agreed: %+v, %v", m, err)
		}
		out := h.must(append(join, "--yes")...)
		if !strings.Contains(out, "this host is "+name) || !strings.Contains(out, "- port group dvs/spare") {
			t.Errorf("the command says:\n%s", out)
		}
		f.inState(name, api.HostUp)
	}
	f.whole("between the hosts", between)
}
