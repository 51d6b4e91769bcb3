package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

const orderedTeam = `
switches:
  - name: lab
    upDelay: 20ms
    uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}, {name: uplink3, device: up3}]
    defaults: {teaming: {policy: explicit, active: [uplink1, uplink2]%s}}
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: db, vlan: {access: 200}}
ports:
  - {name: vm1, switch: lab, portGroup: web, device: port1, mac: "02:00:00:00:01:01"}
  - {name: vm2, switch: lab, portGroup: db, device: port2, mac: "02:00:00:00:01:02"}
`

// wired plugs the host's uplink devices into another namespace: up1 to far1 and so on.
func (h *host) wired(n int) *netns.NS {
	h.t.Helper()
	wire := testkit.NS(h.t, "wire")
	for i := range n {
		h.plug(wire, i+1)
	}
	return wire
}

func (h *host) plug(wire *netns.NS, i int) {
	h.t.Helper()
	h.ip(fmt.Sprintf("link add up%d type veth peer name far%d netns %s", i, i, wire.Name))
	run(h.t, wire, fmt.Sprintf("ip link set far%d up", i))
}

// uses awaits that the ports use these uplinks: "vm1 uplink1".
func (h *host) uses(why string, want ...string) {
	h.t.Helper()
	for _, w := range want {
		port, uplink, _ := strings.Cut(w, " ")
		h.await(why+": "+w, func() bool { return strings.Join(h.port(port).Uplinks, " ") == uplink })
	}
}

// failovers are the failovers told so far.
func (h *host) failovers() []event.Event {
	h.t.Helper()
	return slices.DeleteFunc(h.told(), func(e event.Event) bool { return e.Kind != event.Failover })
}

// links are the states that an uplink's link was told to be in, in order.
func (h *host) links(uplink string) (states []string) {
	h.t.Helper()
	for _, e := range h.told() {
		if e.Kind == event.Link && e.Uplink == uplink {
			states = append(states, e.To)
		}
	}
	return states
}

func TestS42_S43_S45_EveryWayOfLosingAnUplinkMovesAllPortsAndBack(t *testing.T) {
	h := newHost(t)
	wire, elsewhere := h.wired(3), testkit.NS(t, "elsewhere")
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.guest("port2", "02:00:00:00:01:02", "192.0.2.12/24")
	h.start("--config", h.file("heddle.yaml", fmt.Sprintf(orderedTeam, "")))
	first, second := []string{"vm1 uplink1", "vm2 uplink1"}, []string{"vm1 uplink2", "vm2 uplink2"}
	h.uses("at first", first...)
	for _, c := range []struct {
		what         string
		lose, fix    func()
		reason, back string
	}{
		{"the far end goes down", func() { run(t, wire, "ip link set far1 down") },
			func() { run(t, wire, "ip link set far1 up") }, "has no link", ""},
		{"the device is set down", func() { h.ip("link set up1 down") }, func() { h.ip("link set up1 up") },
			"was set down", ""},
		{"the device is deleted", func() { h.ip("link del up1") }, func() { h.plug(wire, 1) }, "is gone", ""},
		{"the device moves away", func() { h.ip("link set up1 netns " + elsewhere.Name) },
			func() { h.plug(wire, 4); h.ip("link set up4 name up1") }, "is gone", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			before, links := len(h.failovers()), len(h.links("uplink1"))
			c.lose()
			h.uses(c.what, second...)
			c.fix()
			h.uses("after "+c.what, first...)
			h.await("both moves are told", func() bool { return len(h.failovers()) == before+2 })
			h.await("the link's way down and up is told", func() bool { return len(h.links("uplink1")) >= links+2 })
			if got := strings.Join(h.links("uplink1")[links:], " "); got != "down up" {
				t.Errorf("%s: the events of the link are %q", c.what, got)
			}
			e := h.failovers()[before:]
			if e[0].From != "uplink1" || e[0].To != "uplink2" || e[0].Ports != 2 ||
				!strings.Contains(e[0].Text, "up1 "+c.reason) || !strings.Contains(e[0].Text, " ms: ") {
				t.Errorf("%s is told as %+v", c.what, e[0])
			}
			if e[1].From != "uplink2" || e[1].To != "uplink1" || e[1].Ports != 2 ||
				!strings.HasSuffix(e[1].Text, "uplink1 is back") {
				t.Errorf("%s: the way back is told as %+v", c.what, e[1])
			}
		})
	}
	h.ip("link set up1 down")
	h.ip("link set up2 down")
	h.uses("an unused uplink is left", "vm1 ", "vm2 ")
}

// What becomes of uplink devices while no agent runs is found out by the next one.
func TestS45_UplinksLostWithoutTheAgentAreLeftWhenItStarts(t *testing.T) {
	testkit.Long(t, "starts an agent for each way of losing an uplink; "+
		"TestS45_LinkDownMovesPortsToTheStandbyAndBack has one")
	h := newHost(t)
	wire, elsewhere := h.wired(3), testkit.NS(t, "elsewhere")
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.guest("port2", "02:00:00:00:01:02", "192.0.2.12/24")
	h.start("--config", h.file("heddle.yaml", fmt.Sprintf(orderedTeam, "")))
	first, second := []string{"vm1 uplink1", "vm2 uplink1"}, []string{"vm1 uplink2", "vm2 uplink2"}
	h.uses("at first", first...)
	for _, c := range []struct {
		what      string
		lose, fix func()
	}{
		{"the far end goes down", func() { run(t, wire, "ip link set far1 down") },
			func() { run(t, wire, "ip link set far1 up") }},
		{"the device is renamed", func() { h.ip("link set up1 down"); h.ip("link set up1 name px") },
			func() { h.ip("link set px name up1"); h.ip("link set up1 up") }},
		{"the device is deleted", func() { h.ip("link del up1") }, func() { h.plug(wire, 1) }},
		{"the device moves away", func() {
			h.ip("link set up1 netns " + elsewhere.Name)
			run(t, elsewhere,
				"ip link set up1 up")
		}, func() { h.plug(wire, 4); h.ip("link set up4 name up1") }},
	} {
		t.Run(c.what, func(t *testing.T) {
			h.kill(syscall.SIGKILL)
			c.lose()
			h.start()
			h.uses(c.what, second...)
			if told := h.failovers(); len(told) != 1 || told[0].From != "uplink1" || told[0].To != "uplink2" ||
				told[0].Ports != 2 {
				t.Errorf("%s is told as %+v", c.what, told)
			}
			if c.what == "the device moves away" {
				if n := programs(t, elsewhere, "up1"); n != 0 {
					t.Errorf("%d programs still run on a device that left the host", n)
				}
			}
			h.kill(syscall.SIGKILL)
			c.fix()
			h.start()
			h.uses("after "+c.what, first...)
		})
	}
}

// An uplink's device whose addresses are the host's has a program where frames leave it too: that also goes at once
// when the device leaves the host (K4), with the agent running and after it was away.
func TestS96_ADeviceThatLeftHasNoProgram(t *testing.T) {
	testkit.Long(t, "starts agents anew; TestDeviceThatLeavesTheHostIsDetached has a device that leaves")
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("agent away %v", away), func(t *testing.T) {
			h := newHost(t)
			h.wired(3)
			elsewhere := testkit.NS(t, "elsewhere")
			h.ip("addr add 198.51.100.9/24 dev up1")
			h.start("--config", h.file("heddle.yaml", fmt.Sprintf(orderedTeam, "")))
			h.await("both programs are there", func() bool {
				return programs(t, h.ns, "up1") == 1 && programsAt(t, h.ns, "up1", ebpf.AttachTCXEgress) == 1
			})
			if away {
				h.kill(syscall.SIGKILL)
			}
			h.ip("link set up1 netns " + elsewhere.Name)
			if away {
				h.start()
			}
			h.await("the uplink's device is missed", func() bool { return h.uplinkState("uplink1") == api.Pending })
			if in, out := programs(t, elsewhere, "up1"), programsAt(t, elsewhere, "up1", ebpf.AttachTCXEgress); in+
				out != 0 {
				t.Errorf("on the device that left run %d programs where frames enter and %d where they leave", in, out)
			}
		})
	}
}

func TestS44_WithoutFailbackPortsStayAlsoWhenTheAgentIsKilled(t *testing.T) {
	testkit.Long(t, "TestS42_S43_S45_EveryWayOfLosingAnUplinkMovesAllPortsAndBack has the usual failback")
	h := newHost(t)
	wire := h.wired(3)
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	vm2 := h.guest("port2", "02:00:00:00:01:02", "192.0.2.12/24")
	h.start("--config", h.file("heddle.yaml", fmt.Sprintf(orderedTeam, ", standby: [uplink3], failback: false")))
	h.uses("at first", "vm1 uplink1", "vm2 uplink1")
	run(t, wire, "ip link set far1 down")
	h.uses("uplink1 failed", "vm1 uplink2", "vm2 uplink2")
	run(t, wire, "ip link set far1 up")
	h.await("uplink1 is usable", func() bool { return h.uplinkState("uplink1") == api.Up })
	h.uses("uplink1 is back", "vm1 uplink2", "vm2 uplink2")
	h.kill(syscall.SIGKILL)
	h.start()
	h.uses("the agent was killed", "vm1 uplink2", "vm2 uplink2")
	run(t, vm2, "ip link set eth0 down")
	h.awaitPort("vm2", api.Down)
	run(t, vm2, "ip link set eth0 up")
	h.uses("vm2 was off", "vm1 uplink2", "vm2 uplink1")
	run(t, wire, "ip link set far2 down")
	h.uses("uplink2 failed", "vm1 uplink3", "vm2 uplink1")
}

func (h *host) uplinkState(name string) api.PortState {
	h.t.Helper()
	var u api.Uplink
	if err := json.Unmarshal([]byte(h.must("uplink", "show", name, "-o", "json")), &u); err != nil {
		h.t.Fatal(err)
	}
	return u.State
}

const announcedTeam = `
switches:
  - name: lab
    upDelay: 0s
    uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}]
    defaults: {teaming: {policy: explicit, active: [uplink1, uplink2]}}
    portGroups:
      - {name: plain, vlan: {none: true}}
      - {name: web, vlan: {access: 100}}
      - {name: some, vlan: {trunk: ["10-11"]}}
      - {name: nested, vlan: {trunk: ["0-4094"]}, security: {forgedTransmits: accept, macLearning: {enabled: true}}}
      - {name: silent, vlan: {access: 100}, teaming: {notifySwitches: false}}
      - {name: other, vlan: {access: 100}, teaming: {active: [uplink2]}}
ports:
  - {name: vm1, switch: lab, portGroup: plain, device: port1, mac: "02:00:00:00:01:01"}
  - {name: vm2, switch: lab, portGroup: web, device: port2, mac: "02:00:00:00:01:02"}
  - {name: vm3, switch: lab, portGroup: some, device: port3, mac: "02:00:00:00:01:03"}
  - {name: vm4, switch: lab, portGroup: nested, device: port4, mac: "02:00:00:00:01:04"}
  - {name: vm5, switch: lab, portGroup: silent, device: port5, mac: "02:00:00:00:01:05"}
  - {name: vm6, switch: lab, portGroup: other, device: port6, mac: "02:00:00:00:01:06"}
  - {name: vm7, switch: lab, portGroup: web, device: port7, mac: "02:00:00:00:01:07"}
`

// announcing is how many announcements wait.
func (h *host) announcing() int {
	h.t.Helper()
	s, err := api.NewClient(filepath.Join(h.dir, "run", h.name+".sock")).State(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return s.Agent.Announcing
}

// rarp reads a RARP announcement as "VLAN MAC", "-" for untagged; "" when it is something else.
func rarp(f []byte) string {
	vlan, at := "-", 12
	if len(f) < 60 {
		return ""
	}
	if binary.BigEndian.Uint16(f[at:]) == 0x8100 {
		vlan, at = fmt.Sprint(binary.BigEndian.Uint16(f[at+2:])&0xfff), at+4
	}
	body := f[at+2:]
	toAll := [6]byte(f) == [6]byte{255, 255, 255, 255, 255, 255}
	if binary.BigEndian.Uint16(f[at:]) != 0x8035 || !toAll || body[7] != 3 || string(body[8:14]) != string(f[6:12]) ||
		string(body[18:24]) != string(f[6:12]) {
		return ""
	}
	return fmt.Sprintf("%s %x", vlan, f[10:12])
}

func TestS49_D21_D22_EveryMovedPortIsAnnouncedOnTheOtherUplinkInItsVLANs(t *testing.T) {
	h := newHost(t)
	wire := h.wired(2)
	guests := map[int]*netns.NS{}
	for i := 1; i <= 7; i++ {
		guests[i] = h.guest(fmt.Sprintf("port%d", i), fmt.Sprintf("02:00:00:00:01:%02x", i),
			fmt.Sprintf("192.0.2.%d/24", 10+i))
	}
	run(t, guests[7], "ip link set eth0 down")
	h.start("--config", h.file("heddle.yaml", announcedTeam))
	h.uses("at first", "vm1 uplink1", "vm2 uplink1", "vm3 uplink1", "vm4 uplink1", "vm5 uplink1", "vm6 uplink2")
	nested := cable.Open(t, guests[4], "eth0")
	nested.Send(append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 5, 1, 0x81, 0, 1, 44, 0x88, 0xb5},
		make([]byte, 46)...))
	h.await("the nested MAC is learned", func() bool {
		return strings.Contains(h.must("mac", "list"), "02:00:00:00:05:01")
	})
	h.await("what was connected is announced", func() bool { return h.announcing() == 0 })
	owner := cable.Open(t, guests[2], "eth0")
	far := cable.Open(t, wire, "far2")
	run(t, wire, "ip link set far1 down")
	want := map[string]bool{}
	for _, w := range []string{"- 0101", "100 0102", "10 0103", "11 0103", "- 0104", "300 0104", "300 0501"} {
		want[w] = true
	}
	counts := map[string]int{}
	far.Gather("every moved port's MAC, in its VLANs, five times each, one learned twice", func(all [][]byte) bool {
		if r := rarp(all[len(all)-1]); r != "" {
			counts[r]++
		}
		return counts["- 0101"] == 5 && counts["100 0102"] == 5 && counts["300 0104"] == 5 && counts["300 0501"] == 2
	})
	for r, n := range counts {
		switch {
		case !want[r] && strings.HasSuffix(r, "0106"): // connected at the start on uplink2, and announced then
		case !want[r]:
			t.Errorf("%s was announced %d times", r, n)
		case n > 8:
			t.Errorf("%s was announced %d times", r, n)
		}
		delete(want, r)
	}
	if len(want) > 0 {
		t.Errorf("not announced: %v", want)
	}
	igmp, mld := 0, 0
	asked := func(f []byte) {
		switch {
		case len(f) >= 60 && f[12] == 8 && f[13] == 0 && f[23] == 2 && f[38] == 0x11:
			igmp++
		case len(f) >= 90 && f[12] == 0x86 && f[62] == 130:
			mld++
		}
	}
	owner.Gather("the owner is asked for its groups, untagged", func(all [][]byte) bool {
		asked(all[len(all)-1])
		return igmp >= 2 && mld >= 2
	})
	h.await("everything is announced", func() bool { return h.announcing() == 0 })
	marker := cable.Frame(cable.Broadcast(), [6]byte{2, 0, 0, 0, 1, 5}, 0, "the last")
	cable.Open(t, guests[5], "eth0").Send(marker)
	owner.Gather("a neighbour's frame", func(all [][]byte) bool {
		asked(all[len(all)-1])
		return bytes.Equal(all[len(all)-1], marker)
	})
	if igmp != 2 || mld != 2 {
		t.Errorf("the owner was asked for its groups by %d IGMP and %d MLD queries", igmp, mld)
	}
}

func TestS50_AConnectedPortIsAnnouncedAndItsOwnerAskedForItsGroups(t *testing.T) {
	h := newHost(t)
	wire := h.wired(2)
	vm := h.guest("port8", "02:00:00:00:01:08", "192.0.2.18/24")
	h.start("--config", h.file("heddle.yaml", announcedTeam))
	h.await("uplink1 is up", func() bool { return h.uplinkState("uplink1") == api.Up })
	far, owner := cable.Open(t, wire, "far1"), cable.Open(t, vm, "eth0")
	h.must("port", "connect", "vm8", "--port-group", "web", "--device", "port8")
	counts := map[string]int{}
	far.Gather("the port's MAC, five times", func(all [][]byte) bool {
		if r := rarp(all[len(all)-1]); r != "" {
			counts[r]++
		}
		return counts["100 0108"] == 5
	})
	if len(counts) != 1 {
		t.Errorf("announced: %v", counts)
	}
	igmp := 0
	owner.Gather("two IGMPv3 queries", func(all [][]byte) bool {
		if f := all[len(all)-1]; len(f) >= 60 && f[12] == 8 && f[13] == 0 && f[23] == 2 && f[38] == 0x11 {
			igmp++
		}
		return igmp == 2
	})
}
