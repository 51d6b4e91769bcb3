package hostdev

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Way is a pair of addresses between which packets go: of this host, and of another one.
type Way struct{ Own, Far netip.Addr }

// PathMTUs returns how long packets to other hosts may be, as the kernel knows it: the MTU of the route's device, that
// of the route, and what routers on the way have said. An address to which there is no route is left out.
func PathMTUs(ways []Way) (map[netip.Addr]int, error) {
	known, devices := map[netip.Addr]int{}, map[int]int{}
	for _, w := range ways {
		routes, err := netlink.RouteGetWithOptions(w.Far.AsSlice(), &netlink.RouteGetOptions{SrcAddr: w.Own.AsSlice()})
		if isNoRoute(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up the route from %s to %s: %w", w.Own, w.Far, err)
		}
		for _, r := range routes {
			of, seen := devices[r.LinkIndex]
			if !seen {
				if l, err := netlink.LinkByIndex(r.LinkIndex); err == nil { // one that has just gone says nothing
					of = l.Attrs().MTU
					devices[r.LinkIndex] = of
				}
			}
			for _, mtu := range []int{of, r.MTU} {
				if mtu > 0 && (known[w.Far] == 0 || mtu < known[w.Far]) {
					known[w.Far] = mtu
				}
			}
		}
	}
	return known, nil
}

// isNoRoute: there is no route, one that refuses, or an address that this host has no more.
func isNoRoute(err error) bool {
	return errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.EINVAL)
}
