package rpc

import (
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
)

// A copy of a host is refused while the host is there; a host of which the agent restarted is let in.
func TestS104_AClonedHostIsRefused(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	copied := &machine{c: c, dir: m.dir, record: must(cluster.Load(m.dir))(t), report: &controllerv1.HostReport{}}
	copied.start()
	c.await("the copy is refused", func() bool {
		return copied.heard("two machines have the certificate of host esx1", c.shown("esx1").GetAddress())
	})
	if m.lost() != 0 || c.log.count("a host is refused", "esx1", c.shown("esx1").GetAddress()) == 0 {
		t.Errorf("the host itself lost its connection: %v", m.said)
	}
	m.stop()
	c.await("the other one is let in", func() bool { return c.log.count("host connected", "esx1") == 2 })
}

// A host speaks for itself alone, and for ports of switches that it has.
func TestS104_AHostReportsForItselfAlone(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	c.up("esx2")
	for range 2 {
		m.has(&controllerv1.HostPort{Switch: "other", PortGroup: "secret", Name: "p1"},
			&controllerv1.HostPort{Switch: "dvs", PortGroup: "none", Name: "p2"},
			&controllerv1.HostPort{Switch: "dvs", PortGroup: "web", Name: "p3"})
		c.await("what is its own is listed", func() bool { return len(c.ports()) == 1 })
		if got := c.ports()[0]; got != "esx1 dvs/web p3" {
			t.Errorf("listed: %s", got)
		}
		m.has()
		c.await("nothing is listed", func() bool { return len(c.ports()) == 0 })
	}
	if n := c.log.count("not its to report", "host=esx1"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}
