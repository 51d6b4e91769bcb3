package bench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// segment is a segment between the hosts.
type segment struct {
	name string
	vlan int
	vni  int
}

// segments are the one of the two guests, and the one of the guest that is reached by a router.
func segments() []segment {
	return []segment{{"guests", 100, 5000}, {"behind", 101, 5001}}
}

// adapter is a guest's on a host.
type adapter struct {
	guest   *guest
	device  string // the host's end
	segment int    // of segments()
}

// The host's ends of the adapters in the second segment, and the router's adapters.
const (
	farDev      = "far"
	routerDevA  = "router-0"
	routerDevB  = "router-1"
	routerFirst = "eth0"
	routerLast  = "eth1"
)

// secondSegment adds a guest on the second host in a segment of its own. Packets between it and the first guest pass a
// router, which is a guest of the first host with an adapter in each segment.
func (t *twoHosts) secondSegment(name string) error {
	far, err := t.path.namespace(name + "-far")
	if err != nil {
		return err
	}
	router, err := t.path.namespace(name + "-router")
	if err != nil {
		return err
	}
	at := func(subnet, host byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 77, subnet, host}) }
	c := &guest{ns: far, addr: at(1, 1), mac: "02:4b:00:00:00:03"}
	r0 := &guest{ns: router, addr: at(0, routerHost), mac: "02:4b:00:00:00:04", dev: routerFirst}
	r1 := &guest{ns: router, addr: at(1, routerHost), mac: "02:4b:00:00:00:05", dev: routerLast}
	first, second := t.hosts[0], t.hosts[1]
	err = errors.Join(first.plug(r0, routerDevA, 0), first.plug(r1, routerDevB, 1), second.plug(c, farDev, 1),
		router.Do(forwardPackets), t.path.a.by(r0.addr, at(1, 0)), c.by(r1.addr, at(0, 0)))
	t.path.far = c
	return err
}

// plug connects a guest to the host, in one of segments().
func (h *hostOfTwo) plug(g *guest, device string, segment int) error {
	h.adapters = append(h.adapters, adapter{g, device, segment})
	return g.plug(h.ns, device)
}

// by has the guest reach a subnet by a router.
func (g *guest) by(router, subnet netip.Addr) error {
	return g.ns.Do(func() error {
		to := &net.IPNet{IP: subnet.AsSlice(), Mask: net.CIDRMask(prefixBits, subnet.BitLen())}
		if err := netlink.RouteAdd(&netlink.Route{Dst: to, Gw: router.AsSlice()}); err != nil {
			return fmt.Errorf("route to %s by %s: %w", subnet, router, err)
		}
		return nil
	})
}
