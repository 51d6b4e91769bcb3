package smoke

import (
	"fmt"
	"testing"
)

// shapesConfig meters b alone, for a collector of each shape.
const shapesConfig = `
switches:
  - name: lab
    ipfix: {collectors: [{address: 127.0.0.1, port: %d}, {address: 127.0.0.1, port: %d, shape: vds}]}
    portGroups:
      - {name: plain, vlan: {access: 10}}
      - {name: metered, vlan: {access: 10}, monitoring: {ipfix: %v, observe: %s}}
ports:
  - {name: a, switch: lab, portGroup: plain, device: port-a, mac: "02:00:00:00:00:01"}
  - {name: b, switch: lab, portGroup: metered, device: port-b, mac: "02:00:00:00:00:02"}
`

// deltas are the packets that records tell of, by direction, and from whom.
func (c *collector) deltas() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[string]uint64{}
	for id, list := range c.records {
		for _, r := range list {
			by[fmt.Sprintf("%d from port %d to port %d", id.direction, id.in, id.out)] += r.deltaPackets
		}
	}
	return by
}

// TestS63_D6_WhatIsMeteredIsChosenByPortAndDirection: with monitoring on b only, exactly what goes to b is told in the
// shape of a VDS, with the direction egress; the standard shape tells what the policy observes. A change of that takes
// effect while frames pass.
func TestS63_D6_WhatIsMeteredIsChosenByPortAndDirection(t *testing.T) {
	r := newFlowRig(t)
	vds := r.collect(0)
	config := func(on bool, observe string) string {
		return fmt.Sprintf(shapesConfig, r.collector.port, vds.port, on, observe)
	}
	r.begin(config(true, "both"))
	back := func(n int) {
		for range n {
			r.b.Send(frameOf(1, 2, udp(7, 100)))
		}
	}
	r.send(30, 3)
	back(20)
	r.Configure(config(false, "both")) // which ends all flows
	const out, in = "1 from port 1 to port 2", "0 from port 2 to port 1"
	want := func(what string, c *collector, egress, ingress uint64) {
		t.Helper()
		r.awaitOr(what, func() bool { by := c.deltas(); return by[out] == egress && by[in] == ingress }, func() string {
			return fmt.Sprint(c.deltas())
		})
	}
	want("both directions at b", r.collector, 30, 20)
	want("what left by b", vds, 30, 0)
	r.Configure(config(true, "ingress"))
	r.send(30, 3)
	back(20)
	r.Configure(config(false, "ingress"))
	want("what entered by b", r.collector, 30, 40)
	r.Configure(config(true, "egress"))
	r.send(30, 3)
	back(20)
	r.Configure(config(false, "egress"))
	want("what left by b, again", r.collector, 60, 40)
	want("what left by b, again", vds, 60, 0)
	for _, c := range []*collector{r.collector, vds} {
		c.sound()
		if n := len(c.deltas()); n > 2 {
			t.Errorf("more was told: %v", c.deltas())
		}
	}
}
