package sim

import (
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/lab/scenario"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// How long a frame is on its way. These values only decide the order of events; they are typical of short cables and of
// the hand-over between two network namespaces.
const (
	cableLatency   = 5 * time.Microsecond
	adapterLatency = time.Microsecond
)

// node is what owns a device: it receives the frames that come in there.
type node interface{ receive(d *device, frame []byte) }

// device is one end of a cable.
type device struct {
	end         scenario.End
	mac         plan.MAC
	mtu         int
	promiscuous bool // receives the frames for others: uplinks and bridge ports do
	hidden      bool // cannot be seen from the other end
	node        node
	peer        *device
	cable       *cable
	sent        uint64 // frames, since the counts were last reset
}

// cable connects two devices: a link of the physical network, a guest's adapter, or a host's own interface.
type cable struct {
	a, b    *device
	latency time.Duration
	inside  bool // leads from a host's switch to its own stack
}

// world is a running scenario.
type world struct {
	loop   *loop
	cables []*cable
	byEnd  map[scenario.End]*device
	hosts  map[string]*host
	stacks map[string]*stack
	pings  uint16 // number of series sent so far: the identifier of the next
}

// newWorld builds a scenario. Everything in it is up, and nothing has been learned.
func newWorld(s *scenario.Scenario) (*world, error) {
	w := &world{
		loop:  &loop{limit: maxEvents},
		byEnd: map[scenario.End]*device{}, hosts: map[string]*host{}, stacks: map[string]*stack{},
	}
	if err := w.adapters(s); err != nil {
		return nil, err
	}
	for _, k := range s.Links {
		c := w.lay(w.newDevice(k.A.Node, k.A.Device), w.newDevice(k.B.Node, k.B.Device), cableLatency, k.MTU)
		c.a.mac, c.b.mac = s.LinkMAC(k.A), s.LinkMAC(k.B)
	}
	for _, h := range s.Hosts {
		w.ask(h.Name, h.Config)
	}
	w.bridges(s)
	w.routers(s)
	return w, w.switches(s)
}

// adapters connects VMs and nested hosts to the devices of their ports.
func (w *world) adapters(s *scenario.Scenario) error {
	for _, h := range s.Hosts {
		for _, n := range h.NICs {
			c, err := w.adapter(s, n.Host, n.Port, w.newDevice(h.Name, n.Device), n.MTU)
			if err != nil {
				return err
			}
			c.b.mac = n.MAC
		}
	}
	for _, v := range s.VMs {
		c, err := w.adapter(s, v.Host, v.Port, w.newDevice(v.Name, guestDevice), v.MTU)
		if err != nil {
			return err
		}
		c.b.mac, c.b.hidden = v.MAC, v.Kind == scenario.QEMU || v.Queues > 0
		guest := w.stack(v.Name)
		guest.gateway = v.Gateway
		guest.plug(c.b, v.Addresses)
		c.b.node = guest
	}
	for _, r := range s.Routers {
		for _, f := range r.Interfaces {
			if !f.OnPort() {
				continue
			}
			c, err := w.adapter(s, f.Host, f.Port, w.newDevice(r.Name, f.Device), f.MTU)
			if err != nil {
				return err
			}
			c.b.mac = f.MAC
		}
	}
	return nil
}

// guestDevice is the name of a VM's only adapter inside the VM.
const guestDevice = "eth0"

func (w *world) adapter(s *scenario.Scenario, on, port string, owner *device, mtu int) (*cable, error) {
	if h := s.Host(on); h != nil {
		if p := scenario.Port(h.Config, port); p != nil {
			return w.lay(w.newDevice(on, p.Device), owner, adapterLatency, mtu), nil
		}
	}
	return nil, fmt.Errorf("%s: host %q has no port %q", owner.end.Node, on, port)
}

// ask puts the uplink devices of a configuration into promiscuous mode, like an agent.
func (w *world) ask(node string, cfg *spec.Config) {
	for _, sw := range cfg.Switches {
		for _, u := range sw.Uplinks {
			if d := w.device(node, u.Device); d != nil {
				d.promiscuous = true
			}
		}
	}
}

// bridges sets up the physical switches that are bridges, and prepares those of kind heddle.
func (w *world) bridges(s *scenario.Scenario) {
	for _, sw := range s.Switches {
		if sw.Kind == scenario.Heddle {
			w.ask(sw.Name, sw.Config)
			continue
		}
		b := newBridge(w)
		for _, d := range w.devicesOf(sw.Name) {
			d.promiscuous = true
			d.node = b
			b.plug(d)
		}
	}
}

func (w *world) routers(s *scenario.Scenario) {
	for _, r := range s.Routers {
		st := w.stack(r.Name)
		st.forwards = true
		for _, f := range r.Interfaces {
			if d := w.device(r.Name, f.Device); d != nil {
				d.node = st
				st.plug(d, f.Addresses)
			}
		}
	}
}

// switches starts the model's switches, when everything that they need exists.
func (w *world) switches(s *scenario.Scenario) error {
	for _, h := range s.Hosts {
		sw, err := newHost(w, h.Name, h.Config)
		if err != nil {
			return err
		}
		w.hosts[h.Name] = sw
	}
	for _, k := range s.Switches {
		if k.Kind != scenario.Heddle {
			continue
		}
		sw, err := newHost(w, k.Name, k.Config)
		if err != nil {
			return err
		}
		w.hosts[k.Name] = sw
	}
	return nil
}

func (w *world) newDevice(node, name string) *device {
	d := &device{end: scenario.End{Node: node, Device: name}}
	w.byEnd[d.end] = d
	return d
}

// device is the device of that name on a node, nil when nothing is plugged in there.
func (w *world) device(node, name string) *device {
	return w.byEnd[scenario.End{Node: node, Device: name}]
}

// devicesOf lists the devices of a node in the order in which they were plugged in.
func (w *world) devicesOf(node string) []*device {
	var all []*device
	for _, c := range w.cables {
		for _, d := range []*device{c.a, c.b} {
			if d.end.Node == node {
				all = append(all, d)
			}
		}
	}
	return all
}

// stack is the IP stack of a node.
func (w *world) stack(node string) *stack {
	if w.stacks[node] == nil {
		w.stacks[node] = &stack{w: w}
	}
	return w.stacks[node]
}

// lay connects two devices.
func (w *world) lay(a, b *device, latency time.Duration, mtu int) *cable {
	c := &cable{a: a, b: b, latency: latency}
	for _, d := range []*device{a, b} {
		d.cable, d.mtu = c, mtu
	}
	a.peer, b.peer = b, a
	w.cables = append(w.cables, c)
	return c
}

// send puts a frame on the cable at a device; it arrives at the other end later. Frames are never changed once they are
// sent.
func (w *world) send(d *device, frame []byte) {
	d.sent++
	w.loop.after(d.cable.latency, func() {
		if far := d.peer; far.node != nil {
			far.node.receive(far, frame)
		}
	})
}

// clearCounts begins a measurement.
func (w *world) clearCounts() {
	for _, c := range w.cables {
		c.a.sent, c.b.sent = 0, 0
	}
	for _, h := range w.hosts {
		clear(h.copies)
	}
}

// findStack is the stack that has an address, which must be on the named node.
func (w *world) findStack(node string, a netip.Addr) (*stack, error) {
	if s := w.stacks[node]; s != nil {
		for _, i := range s.interfaces {
			if i.has(a) {
				return s, nil
			}
		}
	}
	return nil, fmt.Errorf("node %q has no interface with the address %s", node, a)
}
