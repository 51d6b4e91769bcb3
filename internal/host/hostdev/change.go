package hostdev

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/host/hostroute"
	"heddle/internal/plan"
)

// NameMax is the longest device name, in bytes.
const NameMax = unix.IFNAMSIZ - 1

// Pair is a veth pair for a host interface: one end is the host's, the other belongs to the switch.
type Pair struct {
	Host   string   // name of the host's end
	MAC    plan.MAC // of the host's end
	MTU    int      // of both ends, bytes
	Switch string   // name of the switch's end
	Alias  string   // of both ends: shows an operator, and a later agent, to whom they belong
}

// CreatePair makes the pair, both ends down and the switch's end without IPv6, and adds it to the view.
func (h *Host) CreatePair(p Pair) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = p.Host, p.MTU, net.HardwareAddr(p.MAC[:])
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerMTU = p.Switch, uint32(p.MTU)
	if err := h.set.LinkAdd(v); err != nil {
		return fmt.Errorf("create device %s with its switch end %s: %w", p.Host, p.Switch, err)
	}
	for _, name := range []string{p.Host, p.Switch} {
		l, err := h.set.LinkByName(name)
		if err == nil {
			err = h.set.LinkSetAlias(l, p.Alias)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("mark device %s as Heddle's: %w", name, err), h.set.LinkDel(v))
		}
	}
	for _, name := range []string{p.Host, p.Switch} {
		if err := refreshName(h, name); err != nil {
			return err
		}
	}
	return nil
}

// refreshName reads one device again, after a change of our own.
func refreshName(h *Host, name string) error {
	l, err := h.set.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find device %s: %w", name, err)
	}
	return h.refreshIndex(uint32(l.Attrs().Index))
}

func (h *Host) refreshIndex(index uint32) error {
	now, found, err := h.ask.one(linkKey{localNS, index})
	if err != nil {
		return err
	}
	if found {
		h.put(now)
	} else {
		h.drop(index)
	}
	return nil
}

// byIndex returns a netlink.Link that has only the index: enough for every change.
func byIndex(index uint32) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: int(index)}}
}

// change makes one change to a device, explains a failure, and reads the device again.
func (h *Host) change(d Device, what string, f func(netlink.Link) error) error {
	if err := f(byIndex(d.Index)); err != nil {
		return fmt.Errorf("%s of device %s: %w", what, d.Name, err)
	}
	return h.refreshIndex(d.Index)
}

// Delete removes the device (a veth with its other end). It is no error if it is gone already.
func (h *Host) Delete(d Device) error {
	if err := h.set.LinkDel(byIndex(d.Index)); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove device %s: %w", d.Name, err)
	}
	h.drop(d.Index)
	if d.Kind == Veth && !d.Peer.Elsewhere {
		h.drop(d.Peer.Index)
	}
	return nil
}

// SetUp sets the device administratively up or down.
func (h *Host) SetUp(d Device, up bool) error {
	if up {
		return h.change(d, "set the state", h.set.LinkSetUp)
	}
	return h.change(d, "set the state", h.set.LinkSetDown)
}

// SetPromiscuous sets or clears the promiscuous mode flag.
func (h *Host) SetPromiscuous(d Device, on bool) error {
	if on {
		return h.change(d, "set promiscuous mode", h.set.SetPromiscOn)
	}
	return h.change(d, "end promiscuous mode", h.set.SetPromiscOff)
}

// SetMTU sets the largest layer-3 size, in bytes.
func (h *Host) SetMTU(d Device, mtu int) error {
	return h.change(d, fmt.Sprintf("set the MTU %d", mtu), func(l netlink.Link) error {
		return h.set.LinkSetMTU(l, mtu)
	})
}

// SetMAC sets the device's address.
func (h *Host) SetMAC(d Device, mac plan.MAC) error {
	return h.change(d, "set the MAC "+mac.String(), func(l netlink.Link) error {
		return h.set.LinkSetHardwareAddr(l, net.HardwareAddr(mac[:]))
	})
}

// SetAlias sets the text that shows an operator, and a later agent, to whom the device belongs.
func (h *Host) SetAlias(d Device, alias string) error {
	return h.change(d, "set the alias", func(l netlink.Link) error { return h.set.LinkSetAlias(l, alias) })
}

// SetName renames the device. A kernel before 6.2 refuses that while the device is up.
func (h *Host) SetName(d Device, name string) error {
	return h.change(d, "set the name "+name, func(l netlink.Link) error { return h.set.LinkSetName(l, name) })
}

// Addresses lists the device's addresses, apart from the IPv6 link-local ones. Those that are deprecated, temporary or
// secondary come last.
func (h *Host) Addresses(d Device) ([]netip.Prefix, error) {
	have, err := h.set.AddrList(byIndex(d.Index), netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of device %s: %w", d.Name, err)
	}
	var list, last []netip.Prefix
	for _, a := range have {
		p, ok := prefixOf(a.IPNet)
		switch {
		case !ok || p.Addr().Is6() && p.Addr().IsLinkLocalUnicast():
		case a.Flags&(unix.IFA_F_DEPRECATED|unix.IFA_F_TEMPORARY) != 0: // of IPv4 the latter means secondary
			last = append(last, p)
		default:
			list = append(list, p)
		}
	}
	return append(list, last...), nil
}

// AddAddress gives the device an address.
func (h *Host) AddAddress(d Device, p netip.Prefix) error {
	if err := h.set.AddrReplace(byIndex(d.Index), addrOf(p)); err != nil {
		return fmt.Errorf("give device %s the address %s: %w", d.Name, p, err)
	}
	return nil
}

// RemoveAddress removes one address from the device. Without promote_secondaries the kernel would remove, together with
// the first IPv4 address of a subnet, all others in it, whoever added them.
func (h *Host) RemoveAddress(d Device, p netip.Prefix) error {
	const promote = "promote_secondaries"
	was, err := readSysctl(d, "ipv4", promote)
	if err != nil {
		return err
	}
	if p.Addr().Is4() && was == "0" {
		if err := writeSysctl(d, "ipv4", promote, "1"); err != nil {
			return err
		}
		defer func() { _ = writeSysctl(d, "ipv4", promote, was) }()
	}
	if err := h.set.AddrDel(byIndex(d.Index), addrOf(p)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove address %s from device %s: %w", p, d.Name, err)
	}
	return nil
}

// SetRoutes makes the default routes that Heddle has on the device these, and returns those that were not there. The
// device has to be up.
func (h *Host) SetRoutes(d Device, want ...hostroute.Route) (added []hostroute.Route, err error) {
	if added, err = hostroute.Set(h.set, d.Index, want...); err != nil {
		return added, fmt.Errorf("routes of device %s: %w", d.Name, err)
	}
	return added, nil
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), ones), ok
}

// addrOf returns the address without duplicate address detection: the interface is usable at once, like a vmk.
func addrOf(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}
