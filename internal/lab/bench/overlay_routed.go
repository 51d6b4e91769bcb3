package bench

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
)

// routerHost is the last number of the router's address on each cable.
const routerHost = 254

// routed joins the hosts by a cable each to a router between them, as hosts in subnets of their own.
func (t *twoHosts) routed(name string, cut bool) error {
	router, err := t.path.namespace(name + "-between")
	if err != nil {
		return err
	}
	if err := router.Do(forwardPackets); err != nil {
		return err
	}
	for i, h := range t.hosts {
		subnet := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 78, byte(i), last}) }
		far := [4]byte{10, 78, byte(1 - i), 1}
		h.addr, h.other, h.gateway = subnet(1), netip.AddrFrom4(far), subnet(routerHost)
		if err := h.cableTo(router, fmt.Sprintf("host-%c", 'a'+i), cut); err != nil {
			return err
		}
	}
	return nil
}

// cableTo joins the host and the router, whose end it configures.
func (h *hostOfTwo) cableTo(router *netns.NS, device string, cut bool) error {
	if err := veth(h.ns, wireDev, router, device); err != nil {
		return err
	}
	return router.Do(func() error {
		link, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		if cut {
			if err := cutSegments(device); err != nil {
				return err
			}
		}
		return errors.Join(netlink.AddrAdd(link, onCable(h.gateway)), netlink.LinkSetUp(link))
	})
}

// toRouter sends by the router what is for other subnets. It runs in the host.
func (h *hostOfTwo) toRouter() error {
	if !h.gateway.IsValid() {
		return nil
	}
	err := netlink.RouteAdd(&netlink.Route{
		Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, h.gateway.BitLen())}, Gw: h.gateway.AsSlice(),
	})
	if err != nil {
		return fmt.Errorf("route to the other host by %s: %w", h.gateway, err)
	}
	return nil
}

// forwardPackets makes a router of the namespace that it runs in.
func forwardPackets() error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
}
