package host

import (
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

const twoSwitches = `
switches:
  - name: lab
    portGroups: [{name: web, vlan: {access: 100}}]
  - name: dmz
    portGroups: [{name: web, vlan: {access: 200}}]
ports:
  - {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
  - {name: c, switch: dmz, portGroup: web, device: pc, mac: "02:00:00:00:00:0c"}
`

// A port goes to another switch, and back, while its guest sends numbered broadcasts: each is heard on exactly one of
// the switches, in order, no link flaps, and the port's counters and number go on.
func TestS100_APortMovesToAnotherSwitchInOneStep(t *testing.T) {
	testkit.Never(t)
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoSwitches))
	vms := map[string]*netns.NS{}
	for _, name := range []string{"a", "b", "c"} {
		vms[name] = h.guest("p"+name, "02:00:00:00:00:0"+name, "192.0.2.1/24")
	}
	h.must("port", "connect", "a", "--switch", "lab", "--port-group", "web", "--device", "pa")
	for _, name := range []string{"a", "b", "c"} {
		h.awaitPort(name, api.Up)
	}
	before, number := flaps(t, vms["a"]), h.port("a").Number
	b, c := cable.Open(t, vms["b"], "eth0"), cable.Open(t, vms["c"], "eth0")
	last, stop := calls(t, vms["a"])
	pass := func() {
		from := last.Load()
		h.await("broadcasts", func() bool { return last.Load() > from+100 })
	}
	pass()
	h.must("port", "move", "a", "--switch", "dmz")
	pass()
	if p := h.port("a"); p.Switch != "dmz" || p.PortGroup != "web" || p.Number != number || p.State != api.Up {
		t.Errorf("after the move: %+v", p)
	}
	h.must("port", "move", "a", "--switch", "lab", "--port-group", "web")
	pass()
	sent := stop()
	end := cable.Open(t, vms["a"], "eth0") // each of the two hears where the stream ends
	end.Send(call(sent + 1))
	h.must("port", "move", "a", "--switch", "dmz")
	end.Send(call(sent + 1))

	at := make([]string, sent+1)
	for name, end := range map[string]*cable.End{"lab": b, "dmz": c} {
		for _, n := range heard(end, sent+1) {
			if at[n] != "" {
				t.Errorf("broadcast %d was heard on %s and %s", n, at[n], name)
			}
			at[n] = name
		}
	}
	steps, lost := []string{}, 0
	for _, name := range at[1:] {
		if name == "" {
			lost++
		} else if len(steps) == 0 || steps[len(steps)-1] != name {
			steps = append(steps, name)
		}
	}
	if lost != 0 || len(steps) != 3 || steps[0] != "lab" || steps[1] != "dmz" {
		t.Errorf("of %d broadcasts %d were lost; heard on %v, one switch after the other", sent, lost, steps)
	}
	var got uint64
	for _, n := range h.stats("a").Counters {
		if n.Name == "packetsInBroadcast" {
			got = n.Value
		}
	}
	if got < sent {
		t.Errorf("the port counts %d broadcasts of its guest, which sent %d: its counters did not go on", got, sent)
	}
	if n := flaps(t, vms["a"]) - before; n != 0 {
		t.Errorf("the moved guest's link changed %d times", n)
	}
}
