package bench

import (
	"context"
	"fmt"

	"heddle/internal/lab/report"
)

// OverlayOptions are the options of "heddle bench overlay".
type OverlayOptions struct {
	SwitchOptions
	// CutSegments: the cards between the hosts do not cut segments and do not compute checksums within tunnels, as
	// cards without tunnel offload; the kernel then does so for each packet before it leaves. The receiver puts
	// segments together again (GRO).
	CutSegments bool
	// Routed puts each host in a subnet of its own, with a router between them, in place of one cable.
	Routed bool
}

// The names of the peers that connect guests of two hosts, besides heddle and ovs.
const (
	peerVLAN  = "vlan"
	peerVXLAN = "vxlan"
)

// overlays are the ways to connect guests of two hosts.
func (o OverlayOptions) comparison() comparison {
	by := func(name string, setup func(context.Context, *twoHosts) error) Peer {
		return Peer{name, func(ctx context.Context, p *path) error {
			return o.connect(ctx, name, p, func(ctx context.Context, t *twoHosts) error {
				if err := t.secondSegment(name); err != nil {
					return err
				}
				return setup(ctx, t)
			})
		}}
	}
	c := comparison{
		name: "bench overlay", to: []string{peerVXLAN, peerVLAN}, tests: overlayTests(), budgets: overlayBudgets(),
		peers: func(heddle []string) []Peer {
			return []Peer{
				by(peerVLAN, heddleByVLAN(heddle)),
				by(peerHeddle, heddleByTunnel(heddle)),
				by(peerVXLAN, kernelVXLAN),
				by(peerOVS, ovsVXLAN),
			}
		},
		notes: []string{"Two hosts, each a namespace with a guest, are joined by a veth pair; both share this " +
			"machine's CPUs. heddle is an overlay segment, vlan the same switch with a VLAN on the cable, vxlan the " +
			"kernel's bridge and VXLAN device, ovs Open vSwitch's user-space datapath, whose own process is not in " +
			"the CPU time. routed is a stream to a guest of a second segment, by a router that is a guest of the " +
			"first host."},
	}
	if o.CutSegments {
		c.notes = append(c.notes, "The cable's ends do not segment (TSO, tunnel and UDP segmentation off): the kernel "+
			"cuts segments and computes checksums in software; GRO puts them together.")
	} else {
		c.notes = append(c.notes, "The cable carries whole segments, as a card with tunnel offload takes them.")
	}
	if o.Routed {
		c.notes = append(c.notes, "In place of the veth pair, each host has a cable to a router between them.")
	}
	return c
}

// overlayTests are those of a switch, and a stream through a router between two segments.
func overlayTests() []test {
	tests := switchTests()
	routed := tests[0]
	routed.name, routed.routed = "routed", true
	return append(tests, routed)
}

// overlayBudgets are those of the overlay (docs/reference/benchmarks.md).
func overlayBudgets() []switchBudget {
	return []switchBudget{
		{test: "stream", against: peerVXLAN, atLeast: 0.97, cpuToo: true},
		{test: "rr", against: peerVXLAN, atLeast: 1, cpuToo: true},
		{test: "crr", against: peerVXLAN, atLeast: 0.97, cpuToo: true},
		{test: "udp", against: peerVXLAN, atLeast: 1.15, cpuToo: true},
		{test: "udp", against: peerVLAN, atLeast: 0.5, cpuToo: true},
		{test: "routed", against: peerVXLAN, atLeast: 1, cpuToo: true},
	}
}

// Overlay compares an overlay segment between two hosts with a VLAN, the kernel's VXLAN device and Open vSwitch.
func Overlay(ctx context.Context, o OverlayOptions) (*report.Report, error) {
	return o.comparison().measure(ctx, o.SwitchOptions)
}

// Check returns what is wrong with the options, without doing anything.
func (o OverlayOptions) Check() error { return o.comparison().check(o.SwitchOptions) }

// OverlayPeerNames are the names that "heddle bench overlay" can be asked for.
func OverlayPeerNames() []string { return names(OverlayOptions{}.comparison().peers(nil)) }

// The configuration of a host of each kind: the VM's segment, and how it reaches the other host.
func heddleByVLAN(program []string) func(context.Context, *twoHosts) error {
	return heddleHosts(program, func(*hostOfTwo) string {
		return fmt.Sprintf("uplinks: [{name: uplink1, device: %s}]", wireDev)
	}, func(s segment) string { return fmt.Sprintf("vlan: {access: %d}", s.vlan) })
}

func heddleByTunnel(program []string) func(context.Context, *twoHosts) error {
	return heddleHosts(program, func(h *hostOfTwo) string {
		return fmt.Sprintf("tunnel: {endpoints: [{address: %s}], peers: [{address: %s}]}", h.addr, h.other)
	}, func(s segment) string { return fmt.Sprintf("overlay: {vni: %d}", s.vni) })
}
