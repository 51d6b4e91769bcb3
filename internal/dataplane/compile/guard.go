package compile

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// guardList is the position in the table of the addresses that a port's owner may use; ports with equal lists share
// them.
type guardList struct {
	first      uint32
	ipv4, ipv6 uint16
}

// compileGuard puts the guards into a port's record.
func (c *compiler) compileGuard(rec *abi.Port, sw *plan.Switch, p *plan.Port) error {
	pol := p.Policy
	if sw.HealthCheck {
		rec.Rules |= abi.RuleNoHealthProbes
	}
	if !pol.DHCPServer.V {
		rec.Rules |= abi.RuleNoDHCPServer
	}
	if !pol.RouterAdvertisements.V {
		rec.Rules |= abi.RuleNoRouter
	}
	if !pol.AddressGuard.Enabled.V {
		return nil
	}
	rec.Rules |= abi.RuleGuardsAddresses
	key := strings.Join(pol.AddressGuard.Addresses.V, " ") + "|" + strings.Join(p.Addresses, " ")
	l, known := c.guards[key]
	if !known {
		var err error
		if l, err = c.guardList(p); err != nil {
			return err
		}
		c.guards[key] = l
	}
	rec.GuardFirst, rec.GuardIpv4, rec.GuardIpv6 = l.first, l.ipv4, l.ipv6
	return nil
}

// guardList appends the addresses of a port, IPv4 first: the listed ones, and a host port's own.
func (c *compiler) guardList(p *plan.Port) (guardList, error) {
	var ipv4, ipv6 []abi.GuardAddress
	add := func(own netip.Prefix) {
		if own.Addr().Is4() {
			ipv4 = append(ipv4, guardAddress(own))
		} else {
			ipv6 = append(ipv6, guardAddress(own))
		}
	}
	for _, s := range p.Policy.AddressGuard.Addresses.V {
		own, err := spec.ParseGuardAddress(s)
		if err != nil {
			return guardList{}, fmt.Errorf("address %s: %w", s, err)
		}
		add(own)
	}
	for _, s := range p.Addresses {
		own, err := netip.ParsePrefix(s)
		if err != nil {
			return guardList{}, fmt.Errorf("address %s: %w", s, err)
		}
		add(netip.PrefixFrom(own.Addr(), own.Addr().BitLen()))
	}
	l := guardList{uint32(len(c.img.GuardAddresses)), uint16(len(ipv4)), uint16(len(ipv6))}
	c.img.GuardAddresses = append(append(c.img.GuardAddresses, ipv4...), ipv6...)
	if len(c.img.GuardAddresses) > abi.MaxGuardAddresses {
		return l, fmt.Errorf("this host can have at most %d addresses of address guards; list prefixes in place of "+
			"their addresses", abi.MaxGuardAddresses)
	}
	return l, nil
}

// guardAddress returns an address in network byte order, which the program reads in words of its own byte order.
func guardAddress(p netip.Prefix) (g abi.GuardAddress) {
	var address, mask [16]byte
	copy(address[:], p.Addr().AsSlice())
	for i := range p.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	for i := range 2 {
		g.Address[i], g.Mask[i] = binary.LittleEndian.Uint64(address[8*i:]), binary.LittleEndian.Uint64(mask[8*i:])
	}
	return g
}

// guarded returns an upper bound of how many addresses the guards of a switch's ports need.
func guarded(sw *plan.Switch) (n int) {
	for _, p := range sw.Ports {
		if p.Policy.AddressGuard.Enabled.V {
			n += len(p.Policy.AddressGuard.Addresses.V) + len(p.Addresses)
		}
	}
	return n
}
