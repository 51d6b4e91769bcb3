package cni

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// configure sets on the container's interface what the IPAM plugin has assigned.
func (a *attachment) configure(s *sandbox, r *current.Result) error {
	l, err := s.LinkByName(a.ifname)
	if err != nil {
		return fmt.Errorf("find the container's interface: %w", err)
	}
	if err := a.allowIPv6(s, r); err != nil {
		return err
	}
	for _, ip := range r.IPs {
		address := &netlink.Addr{IPNet: &ip.Address}
		if ip.Address.IP.To4() == nil {
			address.Flags = unix.IFA_F_NODAD // usable at once: the IPAM plugin avoids duplicates
		}
		if err := s.AddrAdd(l, address); err != nil {
			return fmt.Errorf("give the container's interface the address %s: %w", ip.Address.String(), err)
		}
	}
	for _, route := range r.Routes {
		// A second route to one destination is another way to it, and no mistake.
		if err := s.RouteAppend(routeOf(r, route, l.Attrs().Index)); err != nil {
			return fmt.Errorf("give the container the route to %s: %w", route.Dst.String(), err)
		}
	}
	return nil
}

// allowIPv6 switches IPv6 on at the container's interface if it gets such an address: where a runtime without IPv6, or
// a hardened host, has switched it off, the kernel refuses the address. It also has the interface keep the address when
// it is set down and up again, as it keeps those of IPv4.
func (a *attachment) allowIPv6(s *sandbox, r *current.Result) error {
	wanted := false
	for _, ip := range r.IPs {
		wanted = wanted || ip.Address.IP.To4() == nil
	}
	if !wanted {
		return nil
	}
	return s.inside(func() error {
		dir := "/proc/sys/net/ipv6/conf/" + a.ifname + "/"
		if err := setTo(dir+"disable_ipv6", "0"); err != nil {
			return fmt.Errorf("switch IPv6 on at the container's interface %s, which was assigned an IPv6 address: %w",
				a.ifname, err)
		}
		if err := setTo(dir+"keep_addr_on_down", "1"); err != nil {
			return fmt.Errorf("have the container's interface %s keep its IPv6 addresses: %w", a.ifname, err)
		}
		return nil
	})
}

// setTo sets a parameter of the kernel that has another value: it may be read-only.
func setTo(file, value string) error {
	have, err := os.ReadFile(file)
	if err == nil && strings.TrimSpace(string(have)) != value {
		err = os.WriteFile(file, []byte(value), 0o644)
	}
	return err
}

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

// verify compares the container's interface with ADD's answer.
func (a *attachment) verify(s *sandbox, r *current.Result) error {
	l, err := s.LinkByName(a.ifname)
	if err != nil {
		return fmt.Errorf("the container has lost its interface %s: %w", a.ifname, err)
	}
	for _, i := range r.Interfaces {
		if i.Name == a.ifname && i.Sandbox != "" && i.Mac != "" && i.Mac != l.Attrs().HardwareAddr.String() {
			return fmt.Errorf("the container's interface %s has MAC %s instead of %s", a.ifname, l.Attrs().HardwareAddr,
				i.Mac)
		}
	}
	have, err := s.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list the container's addresses: %w", err)
	}
	for _, want := range r.IPs {
		found := false
		for _, h := range have {
			found = found || h.IPNet.String() == want.Address.String()
		}
		if !found {
			return fmt.Errorf("the container's interface %s has lost its address %s", a.ifname, want.Address.String())
		}
	}
	return a.verifyRoutes(s, r, l.Attrs().Index)
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
