package attack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// entries is the number of entries that are checked in the victims' neighbour tables: for each victim, the other one's
// IPv4 and IPv6 address.
const entries = 4

// met are the victims, each with the other one.
func met() map[string]end { return map[string]end{client: serverEnd, server: clientEnd} }

// settled reports whether the victims use their IPv6 addresses: before that, advertisements of others would take them
// away.
func (s *scene) settled() (bool, error) {
	for vm := range met() {
		tentative := false
		err := s.inside(vm, func(dev netlink.Link) error {
			list, err := netlink.AddrList(dev, netlink.FAMILY_V6)
			tentative = len(list) == 0 || slices.ContainsFunc(list, func(a netlink.Addr) bool {
				return a.Flags&unix.IFA_F_TENTATIVE != 0
			})
			return err
		})
		if err != nil || tentative {
			return false, err
		}
	}
	return true, nil
}

// meet enters the other's right MAC into each victim's neighbour table, as if learned, and removes routers.
func (s *scene) meet() error {
	for vm, other := range met() {
		err := s.inside(vm, func(dev netlink.Link) error {
			for _, ip := range []netip.Addr{other.v4, other.v6} {
				n := &netlink.Neigh{LinkIndex: dev.Attrs().Index, State: netlink.NUD_REACHABLE, IP: ip.AsSlice(),
					HardwareAddr: other.mac[:]}
				if err := netlink.NeighSet(n); err != nil {
					return fmt.Errorf("set the neighbour %s: %w", ip, err)
				}
			}
			routes, err := advertised(dev)
			for i := range routes {
				err = errors.Join(err, netlink.RouteDel(&routes[i]))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// believed counts the entries that still have the victim's MAC, and the routes that victims got from router
// advertisements.
func (s *scene) believed() (right, routers int, err error) {
	for vm, other := range met() {
		err := s.inside(vm, func(dev netlink.Link) error {
			list, err := netlink.NeighList(dev.Attrs().Index, netlink.FAMILY_ALL)
			if err != nil {
				return err
			}
			for _, n := range list {
				ip, _ := netip.AddrFromSlice(n.IP)
				if ip = ip.Unmap(); (ip == other.v4 || ip == other.v6) && slices.Equal(n.HardwareAddr, other.mac[:]) {
					right++
				}
			}
			routes, err := advertised(dev)
			routers += len(routes)
			return err
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return right, routers, nil
}

// advertised are a guest's routes from router advertisements.
func advertised(dev netlink.Link) ([]netlink.Route, error) {
	of := &netlink.Route{LinkIndex: dev.Attrs().Index, Protocol: unix.RTPROT_RA}
	return netlink.RouteListFiltered(netlink.FAMILY_V6, of, netlink.RT_FILTER_OIF|netlink.RT_FILTER_PROTOCOL)
}

// inside calls a function in a guest, with its adapter.
func (s *scene) inside(vm string, f func(dev netlink.Link) error) error {
	err := s.nodes[vm].Do(func() error {
		dev, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return f(dev)
	})
	if err != nil {
		return fmt.Errorf("guest %s: %w", vm, err)
	}
	return nil
}
