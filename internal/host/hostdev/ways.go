package hostdev

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// Ways returns the devices by which packets go from addresses of this host to those of others, and come from there:
// names by ifindex. They are the devices that have the addresses, and all those of the routes, also where a route has
// several next hops. An address to which there is no route has none.
func Ways(own, far []netip.Addr) (map[int]string, error) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list this host's devices: %w", err)
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list this host's addresses: %w", err)
	}
	used := map[int]bool{}
	for _, a := range addresses {
		ip, _ := netip.AddrFromSlice(a.IP)
		for _, o := range own {
			if ip.Unmap() == o {
				used[a.LinkIndex] = true
			}
		}
	}
	for _, o := range own {
		for _, f := range far {
			if o.Is4() != f.Is4() {
				continue
			}
			if err := addWays(used, o, f); err != nil {
				return nil, err
			}
		}
	}
	ways := map[int]string{}
	for _, l := range links {
		if used[l.Attrs().Index] {
			ways[l.Attrs().Index] = l.Attrs().Name
		}
	}
	return ways, nil
}

// addWays adds the devices of the route from one address to another.
func addWays(to map[int]bool, own, far netip.Addr) error {
	routes, err := netlink.RouteGetWithOptions(far.AsSlice(), &netlink.RouteGetOptions{SrcAddr: own.AsSlice(),
		FIBMatch: true})
	switch {
	case isNoRoute(err):
		return nil
	case err != nil:
		return fmt.Errorf("look up the route from %s to %s: %w", own, far, err)
	}
	for _, r := range routes {
		if r.LinkIndex != 0 {
			to[r.LinkIndex] = true
		}
		for _, hop := range r.MultiPath {
			to[hop.LinkIndex] = true
		}
	}
	return nil
}
