package cni

import (
	"fmt"
	"os"
	"strings"

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
	return s.addRoutes(r, l.Attrs().Index)
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
