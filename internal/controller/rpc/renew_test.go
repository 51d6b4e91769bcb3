package rpc

import (
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
)

const day = 24 * time.Hour

// A host renews its certificate when the controller says that it is due, whatever its own clock says, and the
// conversation goes on.
func TestRenewal_GoesOnWithoutAGap(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	m := c.up("esx1")
	for n := 1; n <= 3; n++ {
		was, serial := m.record.Expires(), c.serials("esx1")[0]
		c.pass(61 * day)
		c.poke("esx1")
		c.await("another certificate", func() bool { return m.record.Expires().After(was) })
		c.await("one connection of the new certificate", func() bool { return c.serials("esx1")[0] != serial })
		c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
		c.define(clusterText + []string{"", "- {name: g1, labels: {rack: b}}\n", ""}[n%3])
	}
	if m.lost() != 0 || c.log.count("host disconnected") != 0 {
		t.Errorf("there was no controller %d times; the log has %d ends of connections", m.lost(),
			c.log.count("host disconnected"))
	}
	if kept := must(cluster.Load(m.dir))(t); !kept.Expires().Equal(m.record.Expires()) {
		t.Error("the new certificate is not on disk")
	}
	// Reports go by the new connection.
	m.has(&controllerv1.HostPort{Switch: "dvs", PortGroup: "web", Name: "p1"})
	c.await("the port is listed", func() bool { return len(c.ports()) == 1 })
}

// A host that was off for months renews its certificate for its own key, and for nothing else before.
func TestRenewal_OfAnExpiredCertificate(t *testing.T) {
	for _, row := range []struct {
		name string
		off  time.Duration
		in   bool
	}{{"the day after its end", 91 * day, true}, {"the last day", 179 * day, true}, {"too late", 181 * day, false}} {
		t.Run(row.name, func(t *testing.T) {
			c := newController(t)
			c.define(clusterText)
			m := c.joins("esx1")
			c.pass(row.off)
			was := m.record.Expires()
			m.start()
			if !row.in {
				c.await("it is refused", func() bool { return m.heard("refuses the certificate") })
				return
			}
			c.await("it is up", func() bool { return c.state("esx1") == controllerv1.HostState_HOST_STATE_UP })
			if !m.record.Expires().After(was) || m.lost() != 0 {
				t.Errorf("its certificate ends on %v, and did on %v; %v", m.record.Expires(), was, m.said)
			}
		})
	}
}

// serials are the numbers of a host's certificates, the newest first.
func (c *controller) serials(name string) (list []string) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	for _, h := range c.fleet.hosts {
		if h.doc.Name == name {
			list = append(list, h.doc.Serial)
			for _, f := range h.doc.Former {
				list = append(list, f.Serial)
			}
		}
	}
	return list
}

// poke has the controller look whether a host is to be sent something.
func (c *controller) poke(name string) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	for _, h := range c.fleet.hosts {
		if h.doc.Name == name && h.conn != nil {
			h.conn.poke()
		}
	}
}

// has makes ports those that a machine reports.
func (m *machine) has(ports ...*controllerv1.HostPort) {
	m.mu.Lock()
	m.report = &controllerv1.HostReport{Ports: ports}
	m.mu.Unlock()
	if m.client != nil {
		m.client.Changed()
	}
}
