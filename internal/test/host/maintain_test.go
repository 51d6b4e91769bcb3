package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

const pairedTeam = `
switches:
  - name: lab
    uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}]
    defaults: {teaming: {policy: explicit, active: [uplink1], standby: [uplink2]%s}}
    portGroups:
      - {name: web}
      - {name: alone, teaming: {active: [uplink1], standby: []}}
ports:
  - {name: vm1, switch: lab, portGroup: web, device: port1, mac: "02:00:00:00:01:01"}
  - {name: vm2, switch: lab, portGroup: web, device: port2, mac: "02:00:00:00:01:02"}
`

// physical is a physical switch with both uplinks of the host, and a station on it: 192.0.2.1.
func (h *host) physical() (station *netns.NS) {
	h.t.Helper()
	wire := h.wired(2)
	station = testkit.NS(h.t, "station")
	run(h.t, wire, "ip link add br0 up type bridge")
	run(h.t, wire, "ip link add s0 up master br0 type veth peer name eth0 address 02:00:00:00:00:fe netns "+
		station.Name)
	run(h.t, wire, "ip link set far1 master br0")
	run(h.t, wire, "ip link set far2 master br0")
	run(h.t, station, "ip link set eth0 up")
	run(h.t, station, "ip addr add 192.0.2.1/24 dev eth0")
	return station
}

// uplink is an uplink as the command line shows it.
func (h *host) uplink(name string) (u api.Uplink) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must("uplink", "show", name, "-o", "json")), &u); err != nil {
		h.t.Fatal(err)
	}
	return u
}

// maintain runs a command on an uplink.
func (h *host) maintain(args ...string) (out struct {
	api.Maintained
	Quiet *bool
}) {
	h.t.Helper()
	text := h.must(append(append([]string{"uplink"}, args...), "-o", "json")...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		h.t.Fatalf("%v: %s", err, text)
	}
	return out
}

// passed is how many unicast frames passed by an uplink.
func (h *host) passed(uplink string) (n uint64) {
	h.t.Helper()
	for _, c := range h.stats(uplink).Counters {
		if c.Name == "packetsInUnicast" || c.Name == "packetsOutUnicast" {
			n += c.Value
		}
	}
	return n
}

// An uplink is drained, blocked and taken back while a guest sends, another receives, and the agent is killed in
// between: no packet is lost in any direction.
func TestS41_S42_S49_AnUplinkIsMaintainedWithoutLoss(t *testing.T) {
	testkit.Long(t, "streams while an uplink is drained and agents are killed; "+
		"TestS42_S43_S45_EveryWayOfLosingAnUplinkMovesAllPortsAndBack has uplinks that are left")
	testkit.Never(t)
	h := newHost(t)
	station := h.physical()
	vm1 := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	vm2 := h.guest("port2", "02:00:00:00:01:02", "192.0.2.12/24")
	file := h.file("heddle.yaml", fmt.Sprintf(pairedTeam, ""))
	h.start("--config", file)
	h.uses("at first", "vm1 uplink1", "vm2 uplink1")
	if !pings(vm1, "192.0.2.1") || !pings(vm2, "192.0.2.1") {
		t.Fatal("the station is not reached")
	}
	h.await("what was connected is announced", func() bool { return h.announcing() == 0 })
	knows(t, vm1, "192.0.2.1", "02:00:00:00:00:fe")
	knows(t, station, "192.0.2.11", "02:00:00:00:01:01")
	knows(t, station, "192.0.2.12", "02:00:00:00:01:02")
	streams := []*numbered{startNumbered(t, vm1, station, "192.0.2.1"), startNumbered(t, station, vm1, "192.0.2.11"),
		startNumbered(t, station, vm2, "192.0.2.12")} // vm2 sends nothing: it is found by what is announced alone
	h.await("the streams run", func() bool { return h.passed("uplink1") > 1000 })

	drained := h.maintain("drain", "uplink1")
	if drained.Quiet == nil || !*drained.Quiet || len(drained.CutOff) != 0 || len(drained.Moves) != 2 ||
		!slices.Equal(drained.Moves[0].From, []string{"uplink1"}) ||
		!slices.Equal(drained.Moves[0].To, []string{"uplink2"}) {
		t.Errorf("drained: %+v", drained)
	}
	h.uses("drained", "vm1 uplink2", "vm2 uplink2")
	if u := h.uplink("uplink1"); u.State != api.Drained || u.Maintenance == nil || !u.Maintenance.ByCommand ||
		u.Maintenance.Use != api.IsDrained || !strings.Contains(u.Reason, "heddle uplink restore uplink1") {
		t.Errorf("drained: %+v %+v", u, u.Maintenance)
	}
	before, other := h.passed("uplink1"), h.passed("uplink2")
	h.await("the streams go on by uplink2", func() bool { return h.passed("uplink2") > other+1000 })
	if now := h.passed("uplink1"); now != before {
		t.Errorf("%d unicast frames passed by the drained uplink", now-before)
	}

	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	h.uses("after a restart of the agent", "vm1 uplink2", "vm2 uplink2")
	if u := h.uplink("uplink1"); u.State != api.Drained {
		t.Errorf("a restart took the uplink back: %s", u.State)
	}

	if blocked := h.maintain("block", "uplink1"); blocked.Quiet == nil || !*blocked.Quiet {
		t.Errorf("blocked: %+v", blocked)
	}
	if u := h.uplink("uplink1"); u.State != api.Blocked || u.Maintenance.Use != api.IsBlocked {
		t.Errorf("blocked: %+v %+v", u, u.Maintenance)
	}
	if back := h.maintain("restore", "uplink1"); len(back.Moves) != 2 || back.Quiet != nil {
		t.Errorf("restored: %+v", back)
	}
	h.uses("restored", "vm1 uplink1", "vm2 uplink1")
	if u := h.uplink("uplink1"); u.State != api.Up || u.Maintenance != nil {
		t.Errorf("restored: %+v %+v", u, u.Maintenance)
	}
	before = h.passed("uplink1")
	h.await("the streams are back", func() bool { return h.passed("uplink1") > before+1000 })
	h.await("everything is announced", func() bool { return h.announcing() == 0 })
	for _, s := range streams {
		s.finish()
	}
	var told []string
	for _, e := range h.told() {
		if e.Kind == event.Maintenance {
			told = append(told, e.To)
		}
	}
	if want := "blocked in-use"; strings.Join(told, " ") != want { // of the agent that runs: drained was the one before
		t.Errorf("events: %q", told)
	}
}

// What a drained uplink would cut off is refused, and shown beforehand; what else concerns it says that it is drained.
func TestS41_ADrainedUplinkIsNotForgotten(t *testing.T) {
	testkit.Long(t, "TestS42_S43_S45_EveryWayOfLosingAnUplinkMovesAllPortsAndBack has uplinks that are left")
	h := newHost(t)
	h.physical()
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.guest("port2", "02:00:00:00:01:02", "192.0.2.12/24")
	content := fmt.Sprintf(pairedTeam, ", failback: false")
	file := h.file("heddle.yaml", strings.Replace(content, "portGroup: web, device: port2",
		"portGroup: alone, device: port2", 1))
	h.start("--config", file)
	h.uses("at first", "vm1 uplink1", "vm2 uplink1")
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"drain uplink1", 2, "1 port has no other uplink that can be used, and would be cut off: vm2; give --force"},
		{"drain uplnk1", 1, "there is no uplink uplnk1; did you mean uplink1?"},
		{"drain up1", 1, "up1 is the device of uplink uplink1"},
		{"drain uplink1 --switch nope", 1, "there is no switch nope"},
		{"drain uplink1 --dry-run", 0,
			"1 port moves from uplink1 to uplink2: vm1\n1 port loses its only uplink: vm2\n" +
				"nothing was changed (dry run)\n"},
		{"restore uplink1", 0, "uplink uplink1 is in use already\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			out, errs, status := h.heddle(append([]string{"uplink"}, strings.Fields(c.args)...)...)
			if status != c.status || !strings.Contains(out+errs, c.want) {
				t.Errorf("status %d, %s%s", status, out, errs)
			}
		})
	}
	if out := h.must("uplink", "drain", "uplink1", "--force"); !strings.Contains(out,
		"1 port lost its uplink: vm2\n") ||
		!strings.Contains(out, "uplink uplink1 is drained\nno unicast frame passes by it any more: its link may be "+
			"taken "+
			"down\ntake it back with: heddle uplink restore uplink1\n") {
		t.Errorf("drained: %s", out)
	}
	h.uses("drained", "vm1 uplink2", "vm2 ")
	if out := h.must("uplink", "list"); !strings.Contains(out, "drained") {
		t.Errorf("uplink list: %s", out)
	}
	if out, _, status := h.heddle("status"); status == 0 || !strings.Contains(out, "uplink lab/uplink1 is drained: ") {
		t.Errorf("status: %d %s", status, out) // it is 1 because of the port that is cut off
	}
	if _, errs, _ := h.heddle("apply", "-f", file, "--dry-run"); !strings.Contains(errs,
		"uplink lab/uplink1 is drained by command since ") {
		t.Errorf("apply --dry-run: %s", errs)
	}
	if out, _, status := h.heddle("config", "diff", "--running"); status != 1 ||
		!strings.Contains(out, "uplink lab/uplink1\n  + drained: true") {
		t.Errorf("config diff --running: %d %s", status, out)
	}
	if _, errs, status := h.heddle("port", "block", "uplink1"); status != 1 ||
		!strings.Contains(errs, `uplink1 is an uplink: use "heddle uplink block uplink1"`) {
		t.Errorf("port block: %d %s", status, errs)
	}
	h.must("uplink", "restore", "uplink1")
	h.uses("restored, without failback", "vm1 uplink2", "vm2 uplink1")

	drained := h.file("drained.yaml", strings.Replace(content, "device: up1", "device: up1, drained: true", 1))
	h.must("apply", "-f", drained)
	if u := h.uplink("uplink1"); u.State != api.Drained || u.Maintenance.ByCommand {
		t.Errorf("drained by the file: %+v %+v", u, u.Maintenance)
	}
	if _, errs, status := h.heddle("uplink", "restore", "uplink1"); status != 2 ||
		!strings.Contains(errs, "set switches[lab].uplinks[uplink1].drained to false") {
		t.Errorf("restore of what the file drains: %d %s", status, errs)
	}
}

// bundled is slow: with the fast timeout an agent that a busy machine delays for 3 s would lose its members.
const bundled = `
switches:
  - name: lab
    uplinks: [{name: uplink1, device: up1}, {name: uplink2, device: up2}]
    lags: [{name: lag1, uplinks: [uplink1, uplink2], timeout: slow, hash: ip-port}]
    portGroups: [{name: web}]
ports:
  - {name: vm, switch: lab, portGroup: web, device: port1, mac: "02:00:00:00:01:%02x"}
`

// The member of a LAG that is drained leaves it by LACP: the other host sends by the remaining one, and no packet is
// lost in either direction.
func TestS41_S52_AMemberOfALAGIsDrainedWithoutLoss(t *testing.T) {
	testkit.Long(t, "streams while a member of a LAG is drained; linkproto has LAGs")
	near, far := newHost(t), newHost(t)
	for i := 1; i <= 2; i++ {
		near.ip(fmt.Sprintf("link add up%d type veth peer name up%d netns %s", i, i, far.ns.Name))
	}
	a := near.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	b := far.guest("port1", "02:00:00:00:01:02", "192.0.2.12/24")
	near.start("--config", near.file("heddle.yaml", fmt.Sprintf(bundled, 1)))
	far.start("--config", far.file("heddle.yaml", fmt.Sprintf(bundled, 2)))
	bundledNow := func(why string, want api.PortState) {
		t.Helper()
		for _, h := range []*host{near, far} {
			h.await(why, func() bool {
				u := h.uplink("uplink1")
				return (u.State == want || h == far && u.State != api.Up && want != api.Up) &&
					h.uplink("uplink2").State == api.Up
			})
		}
	}
	bundledNow("the LAG forms", api.Up)
	knows(t, a, "192.0.2.12", "02:00:00:00:01:02")
	knows(t, b, "192.0.2.11", "02:00:00:00:01:01")
	var streams []*numbered
	// Each stream has ports of its own, by which the hash chooses its member: the hash may choose the same one for all.
	used := func() uint64 { return min(near.passed("uplink1"), near.passed("uplink2")) }
	for len(streams) < 4 || used() < 100 && len(streams) < 32 {
		streams = append(streams, startNumbered(t, a, b, "192.0.2.12"), startNumbered(t, b, a, "192.0.2.11"))
		before := near.passed("uplink1") + near.passed("uplink2")
		near.await("the streams flow", func() bool {
			return near.passed("uplink1")+near.passed("uplink2") > before+2000
		})
	}
	near.await("both members carry traffic", func() bool { return used() > 1000 })
	if out := near.maintain("drain", "uplink1"); out.Quiet == nil || !*out.Quiet || len(out.CutOff) != 0 {
		t.Errorf("drained: %+v", out)
	}
	bundledNow("the member has left", api.Drained)
	if u := near.uplink("uplink1"); u.LAG == nil || u.LAG.Used || u.LAG.ReasonCode != "drained" {
		t.Errorf("the member: %+v", u.LAG)
	}
	if u := far.uplink("uplink1"); u.State != api.Out || u.LAG.Used {
		t.Errorf("at the other end: %s %+v", u.State, u.LAG)
	}
	near.maintain("restore", "uplink1")
	bundledNow("the member is back", api.Up)
	for _, s := range streams {
		s.finish()
	}
	near.maintain("drain", "lag1", "--force", "--wait", "0")
	if u, v := near.uplink("uplink1"), near.uplink("uplink2"); u.State != api.Drained || v.State != api.Drained {
		t.Errorf("all of the LAG: %s, %s", u.State, v.State)
	}
}
