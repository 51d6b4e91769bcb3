package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// frameRig contains the switches whose program is measured: one small, one with 1,000 ports and 100,000 MACs, and one
// per size of broadcast.
type frameRig struct {
	benches []*dataplane.FrameBench
	cells   []*frameCell
}

const (
	repeatUnicast = 200_000
	manyPorts     = 1000
	manyMACs      = 100_000
)

func newFrameRig(ctx context.Context, quick bool) (*frameRig, error) {
	r := &frameRig{}
	sizes := []int{2, 64, 1000}
	if quick {
		sizes = sizes[:2]
	}
	err := errors.Join(r.addSmall(), r.addMany(), r.addMetering())
	if err == nil {
		err = r.addBroadcasts(ctx, sizes)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func portID(n int) plan.PortID { return plan.PortID{Switch: "bench", Name: fmt.Sprint("vm", n)} }

// portMAC is the MAC of port n, farMAC one behind a port, strangerMAC a MAC that nobody has.
func portMAC(n int) plan.MAC { return plan.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)} }
func farMAC(n int) plan.MAC  { return plan.MAC{6, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

// access100 is the ports' VLAN. Frames that leave by the uplink are untagged, because a test run reuses the same
// buffer, which would otherwise come back with the tag with which it left.
func access100() *spec.VLAN { return &spec.VLAN{Access: 100} }
func untagged() *spec.VLAN  { return &spec.VLAN{None: true} }

// desired is a distributed switch with one uplink and n ports in one VLAN and the default security policy, which
// rejects everything. ifindex gives each port's device.
func desired(n int, vlan *spec.VLAN, learning bool, ifindex func(port int) uint32) (binding.Desired, error) {
	cfg := &spec.Config{Switches: []spec.Switch{{
		Name: "bench", Kind: spec.Distributed, Uplinks: []spec.Uplink{{Name: "uplink1", Device: "up1"}},
		PortGroups: []spec.PortGroup{{Name: "vms", Policy: spec.Policy{VLAN: vlan}}},
	}}}
	if learning {
		group := &cfg.Switches[0].PortGroups[0]
		group.Security.ForgedTransmits = spec.Accept
		group.Security.MACLearning.Enabled = &learning
		quiet := false // frames to unknown destinations only go to the uplink
		group.Security.MACLearning.UnicastFlooding = &quiet
	}
	uplink := plan.PortID{Switch: "bench", Name: "uplink1"}
	d := binding.Desired{
		Facts:       plan.Facts{uplink: {Up: true, MTU: 1500, DeviceMAC: plan.MAC{2, 1, 0, 0, 0, 1}}},
		Attachments: map[plan.PortID]binding.Attachment{uplink: {Ifindex: 1}},
	}
	for i := range n {
		cfg.Ports = append(cfg.Ports, spec.Port{Name: portID(i).Name, Switch: "bench", PortGroup: "vms",
			MAC: portMAC(i).String()})
		d.Facts[portID(i)] = plan.Fact{Up: true, MTU: 1500}
		d.Attachments[portID(i)] = binding.Attachment{Ifindex: ifindex(i), PeerRedirect: true}
	}
	var err error
	d.Plan, err = plan.Resolve(cfg, nil)
	return d, err
}

func nowhere(port int) uint32 { return uint32(port + 2) }

// addSmall measures single frames on a switch of few ports.
func (r *frameRig) addSmall() error {
	known, err := r.bench(1)
	if err != nil {
		return err
	}
	unknown, err := r.bench(1)
	if err != nil {
		return err
	}
	r.cells = append(r.cells, &frameCell{name: cellEmpty, measure: func() (time.Duration, error) {
		return known.Empty(repeatUnicast)
	}})
	if err := r.addOne(known, cellKnown, access100(), portMAC(1)); err != nil {
		return err
	}
	if err := r.addOne(unknown, cellUnknown, untagged(), farMAC(1)); err != nil {
		return err
	}
	if err := r.addStorm(); err != nil {
		return err
	}
	few, err := r.learning(3, 2)
	if err != nil {
		return err
	}
	frame := benchFrame(farMAC(1), portMAC(0))
	r.cells = append(r.cells, &frameCell{name: cellLearned, measure: func() (time.Duration, error) {
		return few.One(portID(0), frame, repeatUnicast)
	}})
	return r.addCycle(few, cellFewHarness, cellFew, 3, 2, 2)
}

// addOne measures one frame on a switch of three ports.
func (r *frameRig) addOne(b *dataplane.FrameBench, name string, vlan *spec.VLAN, dst plan.MAC) error {
	d, err := desired(3, vlan, false, nowhere)
	if err != nil {
		return err
	}
	frame := benchFrame(dst, portMAC(0))
	r.cells = append(r.cells, &frameCell{name: name, measure: func() (time.Duration, error) {
		return b.One(portID(0), frame, repeatUnicast)
	}})
	return b.Apply(d)
}

// addStorm measures what storm control stops: one frame a second passes, all others only leave by the uplink.
func (r *frameRig) addStorm() error {
	b, err := r.bench(1)
	if err != nil {
		return err
	}
	d, err := desired(3, untagged(), false, nowhere)
	if err != nil {
		return err
	}
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.StormControl.UnknownUnicast.V = 1
	}
	frame := benchFrame(farMAC(1), portMAC(0))
	r.cells = append(r.cells, &frameCell{name: cellStorm, measure: func() (time.Duration, error) {
		return b.One(portID(0), frame, repeatUnicast)
	}})
	return b.Apply(d)
}

// learning is a switch of n ports that have learned that many MACs, spread evenly.
func (r *frameRig) learning(ports, macs int) (*dataplane.FrameBench, error) {
	b, err := r.bench(macs)
	if err != nil {
		return nil, err
	}
	d, err := desired(ports, access100(), true, nowhere)
	if err != nil {
		return nil, err
	}
	if err := b.Apply(d); err != nil {
		return nil, err
	}
	entries := make([]observe.MACEntry, macs)
	for i := range entries {
		entries[i] = observe.MACEntry{Switch: "bench", VLAN: 100, MAC: farMAC(i), Port: portID(i % ports)}
	}
	return b, b.Learn(entries)
}

func (r *frameRig) addMany() error {
	some, err := r.learning(manyPorts, manyMACs)
	if err != nil {
		return err
	}
	if err := r.addCycle(some, cellManyBase, cellMany, manyPorts, manyMACs, 1000); err != nil {
		return err
	}
	every, err := r.learning(manyPorts, manyMACs)
	if err != nil {
		return err
	}
	return r.addCycle(every, cellAllBase, cellAll, manyPorts, manyMACs, manyMACs)
}

// addCycle adds two cells: frames to n of the learned MACs in turn, each from the port after its destination's, and the
// harness alone, which writes their addresses.
func (r *frameRig) addCycle(b *dataplane.FrameBench, base, name string, ports, macs, n int) error {
	frames := make([]dataplane.BenchFrame, n)
	for i := range frames {
		// A step that is prime to the number of MACs visits them in an order that no prefetcher predicts.
		to := i * 7919 % macs
		from := (to + 1) % ports
		frames[i] = dataplane.BenchFrame{From: portID(from), Dst: farMAC(to), Src: portMAC(from)}
	}
	if err := b.SetCycle(frames); err != nil {
		return err
	}
	frame := benchFrame(farMAC(0), portMAC(0))
	for _, empty := range []bool{true, false} {
		c := &frameCell{name: name, measure: func() (time.Duration, error) {
			return b.Cycle(frame, repeatUnicast, empty)
		}}
		if empty {
			c.name = base
		}
		r.cells = append(r.cells, c)
	}
	return nil
}

// addBroadcasts measures broadcasts to real devices: veth pairs, both ends up, in the namespace of the calling thread.
func (r *frameRig) addBroadcasts(ctx context.Context, sizes []int) error {
	// Address resolution and router solicitations of a thousand interfaces would be measured too.
	if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0o644); err != nil &&
		!errors.Is(err, os.ErrNotExist) {
		return err
	}
	var indexes []uint32
	for _, size := range sizes {
		for len(indexes) < size {
			if err := ctx.Err(); err != nil {
				return err
			}
			index, err := vethPair(len(indexes))
			if err != nil {
				return err
			}
			indexes = append(indexes, index)
		}
		if err := r.addBroadcast(indexes[:size]); err != nil {
			return err
		}
	}
	return nil
}

// addBroadcast measures a broadcast from one port to as many others as there are devices.
func (r *frameRig) addBroadcast(indexes []uint32) error {
	b, err := r.bench(1)
	if err != nil {
		return err
	}
	sender := len(indexes)
	d, err := desired(sender+1, access100(), false, func(port int) uint32 {
		if port == sender {
			return 1
		}
		return indexes[port]
	})
	if err != nil {
		return err
	}
	// Without an uplink, because its device would be the loopback of the test run.
	d.Plan.Switches[0].Uplinks = nil
	if err := b.Apply(d); err != nil {
		return err
	}
	frame := benchFrame([6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, portMAC(sender))
	repeat := max(20_000/len(indexes), 20)
	r.cells = append(r.cells, &frameCell{
		name: fmt.Sprintf("broadcast to %d ports", len(indexes)), receivers: len(indexes),
		measure: func() (time.Duration, error) { return b.One(portID(sender), frame, repeat) },
	})
	return nil
}

func vethPair(n int) (uint32, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = fmt.Sprintf("port%d", n)
	v := &netlink.Veth{LinkAttrs: attrs, PeerName: fmt.Sprintf("guest%d", n)}
	if err := netlink.LinkAdd(v); err != nil {
		return 0, fmt.Errorf("make device pair %d: %w", n, err)
	}
	for _, name := range []string{v.Name, v.PeerName} {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return 0, err
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return 0, err
		}
		if name == v.Name {
			attrs.Index = l.Attrs().Index
		}
	}
	return uint32(attrs.Index), nil
}
