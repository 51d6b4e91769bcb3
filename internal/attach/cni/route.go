package cni

import (
	"fmt"
	"net"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addRoutes gives the container the routes of the IPAM plugin's answer by the interface. A second route of the answer
// to one destination is another way to it. One that the container has already is a mistake: another interface's network
// would lose its traffic, or this one never get any.
func (s *sandbox) addRoutes(r *current.Result, link int) error {
	earlier := map[destination]bool{}
	for _, route := range r.Routes {
		n := routeOf(r, route, link)
		add, to := s.RouteAdd, destinationOf(n)
		if earlier[to] {
			add = s.RouteAppend
		}
		if err := add(n); err != nil {
			return fmt.Errorf("give the container the route to %s: %w", route.Dst.String(), err)
		}
		earlier[to] = true
	}
	return nil
}

// destination is what the kernel has one way to, unless another is appended.
type destination struct {
	dst             string
	table, priority int
}

func destinationOf(n *netlink.Route) destination {
	d := destination{n.Dst.String(), n.Table, n.Priority}
	if d.table == unix.RT_TABLE_UNSPEC {
		d.table = unix.RT_TABLE_MAIN
	}
	if d.priority == 0 && n.Dst.IP.To4() == nil {
		d.priority = ip6Priority
	}
	return d
}

// ip6Priority is the priority that the kernel gives to a route of IPv6 without one (IP6_RT_PRIO_USER).
const ip6Priority = 1024

// routeOf is a route of the IPAM plugin's answer as the kernel knows it.
func routeOf(r *current.Result, route *types.Route, link int) *netlink.Route {
	n := &netlink.Route{LinkIndex: link, Dst: &route.Dst, Gw: route.GW, MTU: route.MTU, AdvMSS: route.AdvMSS,
		Priority: route.Priority}
	if route.Table != nil {
		n.Table = *route.Table
	}
	if route.Scope != nil {
		n.Scope = netlink.Scope(*route.Scope)
	}
	// A route whose scope is the link, or the host, has no gateway.
	if n.Gw == nil && n.Scope < netlink.SCOPE_LINK {
		n.Gw = gatewayFor(r, route.Dst)
	}
	if n.Gw == nil && route.Scope == nil {
		n.Scope = netlink.SCOPE_LINK
	}
	return n
}

// gatewayFor is the gateway of the first address in the destination's family.
func gatewayFor(r *current.Result, dst net.IPNet) net.IP {
	for _, ip := range r.IPs {
		if (ip.Address.IP.To4() == nil) == (dst.IP.To4() == nil) && ip.Gateway != nil {
			return ip.Gateway
		}
	}
	return nil
}

func (a *attachment) verifyRoutes(s *sandbox, r *current.Result, link int) error {
	for _, route := range r.Routes {
		want := routeOf(r, route, link)
		filter := *want
		mask := netlink.RT_FILTER_DST | netlink.RT_FILTER_TABLE
		if want.Table == 0 {
			filter.Table = unix.RT_TABLE_MAIN
		}
		family := netlink.FAMILY_V4
		if route.Dst.IP.To4() == nil {
			family = netlink.FAMILY_V6
		}
		have, err := s.RouteListFiltered(family, &filter, mask)
		if err != nil {
			return fmt.Errorf("list the container's routes: %w", err)
		}
		found := false
		for _, h := range have {
			found = found || h.LinkIndex == link && want.Gw.Equal(h.Gw) ||
				slices.ContainsFunc(h.MultiPath, func(n *netlink.NexthopInfo) bool {
					return n.LinkIndex == link && want.Gw.Equal(n.Gw)
				})
		}
		if !found {
			return fmt.Errorf("the container has lost its route to %s by %s", route.Dst.String(), a.ifname)
		}
	}
	return nil
}
