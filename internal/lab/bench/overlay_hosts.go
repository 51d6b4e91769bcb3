package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
)

// The devices of a host: the cable to the other one, and the guest's.
const (
	wireDev = "wire"
	vmDev   = "vm"
	// wireMTU leaves room for the outer headers and a VLAN.
	wireMTU = guestMTU + 100
)

// hostOfTwo is one of two hosts with a guest each.
type hostOfTwo struct {
	ns          *netns.NS
	guest       *guest
	adapters    []adapter
	addr, other netip.Addr // of the hosts on the cable between them
	gateway     netip.Addr // the router between the hosts, if there is one
}

// twoHosts are the hosts that a path leads over.
type twoHosts struct {
	path  *path
	hosts [2]*hostOfTwo
}

// connect makes two hosts with a cable between them, plugs a guest into each, and lets setup do the rest.
func (o OverlayOptions) connect(ctx context.Context, name string, p *path,
	setup func(context.Context, *twoHosts) error) error {
	t := &twoHosts{path: p}
	for i, g := range []*guest{p.a, p.b} {
		ns, err := p.namespace(fmt.Sprintf("%s-host-%c", name, 'a'+i))
		if err != nil {
			return err
		}
		t.hosts[i] = &hostOfTwo{ns: ns, guest: g}
	}
	join := t.cable
	if o.Routed {
		join = func() error { return t.routed(name, o.CutSegments) }
	}
	if err := join(); err != nil {
		return err
	}
	for _, h := range t.hosts {
		if err := h.ns.Do(func() error { return h.underlay(o.CutSegments) }); err != nil {
			return err
		}
		if err := h.plug(h.guest, vmDev, 0); err != nil {
			return err
		}
	}
	return setup(ctx, t)
}

// cable joins the hosts by a veth pair.
func (t *twoHosts) cable() error {
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 78, 0, byte(i + 1)}) }
	for i, h := range t.hosts {
		h.addr, h.other = at(i), at(1-i)
	}
	return veth(t.hosts[0].ns, wireDev, t.hosts[1].ns, wireDev)
}

// veth joins two namespaces by a cable with room for the outer headers.
func veth(near *netns.NS, name string, far *netns.NS, peer string) error {
	inside, err := far.Handle()
	if err != nil {
		return err
	}
	defer inside.Close()
	return near.Do(func() error {
		err := netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name, MTU: wireMTU}, PeerName: peer,
			PeerNamespace: netlink.NsFd(inside), PeerMTU: wireMTU,
		})
		if err != nil {
			return fmt.Errorf("add the cable between the hosts: %w", err)
		}
		return nil
	})
}

// underlay gives the host's end of the cable its address and turns it on. It runs in the host.
func (h *hostOfTwo) underlay(cut bool) error {
	link, err := netlink.LinkByName(wireDev)
	if err != nil {
		return err
	}
	if cut {
		if err := cutSegments(wireDev); err != nil {
			return err
		}
	}
	if err := errors.Join(netlink.AddrAdd(link, onCable(h.addr)), netlink.LinkSetUp(link)); err != nil {
		return err
	}
	return h.toRouter()
}

// cutSegments makes an end of a cable like a card without segmentation, whose receiver puts segments together.
func cutSegments(device string) error {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer tool.Close()
	have, err := tool.Features(device)
	if err != nil {
		return fmt.Errorf("read the offloads of the cable: %w", err)
	}
	want := map[string]bool{}
	for _, name := range []string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation",
		"tx-tcp-mangleid-segmentation", "tx-udp-segmentation", "tx-udp_tnl-segmentation",
		"tx-udp_tnl-csum-segmentation", "tx-gso-partial"} {
		if _, there := have[name]; there {
			want[name] = false
		}
	}
	want["rx-gro"] = true
	if err := tool.Change(device, want); err != nil {
		return fmt.Errorf("turn off the segmentation of the cable: %w", err)
	}
	return nil
}

// heddleHosts runs an agent on each host, with a switch that reaches the other one by way and has the guests in the
// segments.
func heddleHosts(program []string, way func(*hostOfTwo) string, in func(segment) string) func(context.Context,
	*twoHosts) error {
	return func(_ context.Context, t *twoHosts) error {
		for _, h := range t.hosts {
			if err := t.path.agent(machine{ns: h.ns}, program, h.config(way(h), in)); err != nil {
				return err
			}
		}
		return nil
	}
}

func (h *hostOfTwo) config(way string, in func(segment) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "switches:\n  - name: bench\n    kind: distributed\n    %s\n    portGroups:\n", way)
	for _, s := range segments() {
		fmt.Fprintf(&b, "      - {name: %s, %s}\n", s.name, in(s))
	}
	b.WriteString("ports:\n")
	for _, a := range h.adapters {
		fmt.Fprintf(&b, "  - {name: %s, switch: bench, portGroup: %s, device: %[1]s, mac: %[3]q}\n", a.device,
			segments()[a.segment].name, a.guest.mac)
	}
	return b.String()
}

// kernelVXLAN joins the guests of each segment and a VXLAN device by a bridge on each host, which learn.
func kernelVXLAN(_ context.Context, t *twoHosts) error {
	for _, h := range t.hosts {
		for i := range segments() {
			if err := h.ns.Do(func() error { return h.bridgeVXLAN(i) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hostOfTwo) bridgeVXLAN(i int) error {
	wire, err := netlink.LinkByName(wireDev)
	if err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("br", i), MTU: guestMTU}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return lacking("bridge devices", err)
	}
	tunnel := &netlink.Vxlan{
		LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("vxlan", i), MTU: guestMTU}, VxlanId: segments()[i].vni,
		VtepDevIndex: wire.Attrs().Index,
		SrcAddr:      h.addr.AsSlice(), Group: h.other.AsSlice(), Port: 4789, Learning: true,
	}
	if err := netlink.LinkAdd(tunnel); err != nil {
		return lacking("VXLAN devices", err)
	}
	for _, name := range append(h.devices(i), tunnel.Name) {
		link, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetMaster(link, bridge)
		}
		if err != nil {
			return fmt.Errorf("connect %s to the bridge: %w", name, err)
		}
	}
	return errors.Join(netlink.LinkSetUp(tunnel), netlink.LinkSetUp(bridge))
}

// devices are the host's ends of the adapters in a segment.
func (h *hostOfTwo) devices(segment int) []string {
	var names []string
	for _, a := range h.adapters {
		if a.segment == segment {
			names = append(names, a.device)
		}
	}
	return names
}

// ovsVXLAN joins the guests of each segment and a tunnel by a bridge of Open vSwitch's user-space datapath. The tunnels
// go out by another bridge that has the cable and the host's address, as that datapath asks for.
func ovsVXLAN(ctx context.Context, t *twoHosts) error {
	if err := ovsTools(); err != nil {
		return err
	}
	for _, h := range t.hosts {
		for _, a := range h.adapters {
			if err := a.guest.ns.Do(a.guest.plainFrames); err != nil {
				return err
			}
		}
		args := bridgeOf("br-wire", wireDev)
		for i, s := range segments() {
			tunnel := fmt.Sprint("vxlan", i)
			args = append(args, "--")
			args = append(args, bridgeOf(fmt.Sprint("br", i), append(h.devices(i), tunnel)...)...)
			args = append(args, "--", "set", "interface", tunnel, "type=vxlan", fmt.Sprint("options:key=", s.vni),
				"options:remote_ip="+h.other.String())
		}
		if err := startOVS(ctx, t.path, h.ns, args...); err != nil {
			return err
		}
		if err := h.ns.Do(h.addressOn("br-wire")); err != nil {
			return err
		}
	}
	return nil
}

// addressOn moves the host's address from the cable to another device.
func (h *hostOfTwo) addressOn(device string) func() error {
	return func() error {
		from, err := netlink.LinkByName(wireDev)
		if err != nil {
			return err
		}
		to, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrDel(from, onCable(h.addr)), netlink.LinkSetMTU(to, wireMTU),
			netlink.AddrAdd(to, onCable(h.addr)), netlink.LinkSetUp(to), h.toRouter())
	}
}

// onCable is an address with the subnet of its cable.
func onCable(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(prefixBits, a.BitLen())}}
}
