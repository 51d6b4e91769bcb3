package cni

import (
	"errors"
	"fmt"
	"net"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// sandbox is the container's network namespace, opened.
type sandbox struct {
	*netlink.Handle
	ns netns.NsHandle
}

func openSandbox(path string) (*sandbox, error) {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return nil, types.NewError(types.ErrInvalidNetNS,
			fmt.Sprintf("the container's network namespace %s cannot be opened", path), err.Error())
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		ns.Close()
		return nil, types.NewError(types.ErrInvalidNetNS,
			fmt.Sprintf("the container's network namespace %s cannot be entered", path), err.Error())
	}
	return &sandbox{h, ns}, nil
}

func (s *sandbox) close() {
	s.Close()
	s.ns.Close()
}

// pair makes the veth pair; the host's end is up and has no addresses of the host.
func (a *attachment) pair(s *sandbox, mtu int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = a.hostDevice(), mtu
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerMTU, v.PeerNamespace, v.PeerHardwareAddr = a.ifname, uint32(mtu), netlink.NsFd(s.ns), a.mac
	if err := netlink.LinkAdd(v); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return types.NewError(types.ErrInternal, fmt.Sprintf("the container has an interface %s, or the host a "+
				"device %s, already", a.ifname, a.hostDevice()), "DEL it first")
		}
		return fmt.Errorf("make the pair of devices %s and %s: %w", a.hostDevice(), a.ifname, err)
	}
	return netlink.LinkSetUp(v)
}

// dropPair removes the pair; it is no error if it is gone.
func dropPair(device string) error {
	l, err := netlink.LinkByName(device)
	if err == nil {
		err = netlink.LinkDel(l)
	}
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// configure sets on the container's interface what the IPAM plugin has assigned.
func (a *attachment) configure(s *sandbox, r *current.Result) error {
	l, err := s.LinkByName(a.ifname)
	if err != nil {
		return fmt.Errorf("find the container's interface: %w", err)
	}
	if err := s.LinkSetUp(l); err != nil {
		return fmt.Errorf("set the container's interface up: %w", err)
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
		gw := route.GW
		if gw == nil {
			gw = gatewayFor(r, route.Dst)
		}
		n := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: &route.Dst, Gw: gw, MTU: route.MTU, AdvMSS: route.AdvMSS,
			Priority: route.Priority}
		if gw == nil {
			n.Scope = netlink.SCOPE_LINK
		}
		if err := s.RouteAdd(n); err != nil {
			return fmt.Errorf("give the container the route to %s: %w", route.Dst.String(), err)
		}
	}
	return nil
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
	return nil
}
