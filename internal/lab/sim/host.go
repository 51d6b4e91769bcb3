package sim

import (
	"crypto/sha256"
	"fmt"
	"net/netip"

	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// host is a hypervisor, nested or not, or a physical switch of kind heddle: the model implements its switches.
type host struct {
	w       *world
	model   *model.Host
	arrival map[*device]plan.PortID
	devices map[plan.PortID]*device
	copies  map[plan.PortID]uint64 // handed over since the counts were last reset
}

// newHost makes the plan of a configuration and gives it facts about the node's devices like the real agent.
func newHost(w *world, name string, cfg *spec.Config) (*host, error) {
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	h := &host{w: w, arrival: map[*device]plan.PortID{}, devices: map[plan.PortID]*device{},
		copies: map[plan.PortID]uint64{}}
	facts := plan.Facts{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			if d := w.device(name, u.Device); d != nil {
				h.connect(u.ID, d)
				facts[u.ID] = plan.Fact{Up: true, MTU: d.mtu, DeviceMAC: d.mac}
			}
		}
		for _, port := range sw.Ports {
			d := w.device(name, port.Device)
			if port.Role == spec.Host {
				d, err = h.makeInterface(name, port)
			}
			if err != nil {
				return nil, err
			}
			if d != nil {
				h.connect(port.ID, d)
				facts[port.ID] = portFact(d)
			}
		}
	}
	h.model = model.New(p, facts, w.loop.now)
	return h, nil
}

// portFact is what a port's device shows of its owner (D1, D2). The inside of a QEMU machine cannot be seen.
func portFact(d *device) plan.Fact {
	f := plan.Fact{Up: true, MTU: d.mtu}
	if owner := d.peer; !owner.hidden {
		f.SeenMAC, f.Promiscuous = owner.mac, plan.AsksNo
		if owner.promiscuous {
			f.Promiscuous = plan.AsksYes
		}
	}
	return f
}

func (h *host) connect(id plan.PortID, d *device) {
	h.arrival[d], h.devices[id] = id, d
	d.node = h
}

// makeInterface makes a host interface and connects it to the host's own stack.
func (h *host) makeInterface(node string, p *plan.Port) (*device, error) {
	if p.InitialMAC.IsZero() {
		sum := sha256.Sum256([]byte(node + "/" + p.ID.String()))
		p.InitialMAC = plan.MAC{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
	}
	var addresses []netip.Prefix
	for _, text := range p.Addresses {
		a, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("host %s, port %s: %w", node, p.ID, err)
		}
		addresses = append(addresses, a)
	}
	c := h.w.lay(h.w.newDevice(node, "switch end of "+p.Device), h.w.newDevice(node, p.Device), adapterLatency, p.MTU)
	c.inside = true
	c.b.mac = p.InitialMAC
	h.w.stack(node).plug(c.b, addresses)
	c.b.node = h.w.stack(node)
	return c.a, nil
}

// receive passes a frame to the switch and sends its copies. Copies for the host's own stack arrive on a device without
// an address, where nothing answers: hosts of a lab answer ARP only on the interface that has the address.
func (h *host) receive(d *device, frame []byte) {
	id, ok := h.arrival[d]
	if !ok {
		return
	}
	for _, c := range h.model.Frame(id, frame, h.w.loop.now).Copies {
		if c.HostStack {
			continue
		}
		h.copies[c.To]++
		h.w.send(h.devices[c.To], c.Frame)
	}
}
