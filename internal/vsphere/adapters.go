package vsphere

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"heddle/internal/spec"
)

// defaultStack is the key of the TCP/IP stack that adapters have unless they say another.
const defaultStack = "defaultTcpipStack"

// adapters takes the VMkernel adapters on the switches, or notes them.
func (p *placement) adapters(h *placed) {
	o := h.from
	if o == nil || o.Config.Network == nil {
		return
	}
	called := newNames(false)
	routed := map[bool]bool{} // whether a host port has the main table's default route, of IPv4 (false) and IPv6 (true)
	for i := range o.Config.Network.Vnic {
		v := &o.Config.Network.Vnic[i]
		on := v.Spec.DistributedVirtualPort
		if on == nil {
			continue
		}
		to := spec.HostPort{Name: called.fresh(v.Device)}
		for _, s := range p.switches {
			if portKey(s.from.Config.UUID, "") == portKey(on.SwitchUUID, "") {
				to.Switch, to.PortGroup = s.to.Name, s.groups[on.PortgroupKey]
				to.MTU = adapterMTU(v.Spec.MTU, s.to.MTU)
			}
		}
		to.Addresses = v.addresses()
		switch {
		case to.PortGroup == "":
			continue // of a switch that is not taken
		case !p.options.HostPorts:
			h.absent("VMkernel adapter "+v.Device, strings.Join(to.Addresses, ", "),
				"import with --host-ports to get a host port with its addresses")
			continue
		}
		a := adapter{about: h.part("VMkernel adapter", v.Device), vnic: v, network: o.Config.Network, to: &to}
		a.automatic()
		a.route(routed)
		a.others()
		h.ports = append(h.ports, to)
	}
}

// adapter is a VMkernel adapter that becomes a host port.
type adapter struct {
	about
	*vnic
	network *hostNetwork
	to      *spec.HostPort
}

// addresses are those that somebody has set, of both families.
func (v *vnic) addresses() (set []string) {
	ip := v.Spec.IP
	if ip == nil {
		return nil
	}
	if a, ok := prefix(ip.IPAddress, ip.SubnetMask); ok && !ip.DHCP {
		set = append(set, a)
	}
	if ip.IPv6Config == nil {
		return set
	}
	for _, a := range ip.IPv6Config.IPv6Address {
		addr, err := netip.ParseAddr(a.IPAddress)
		if err != nil || !addr.Is6() || addr.IsLinkLocalUnicast() || a.Origin != "" && a.Origin != "manual" {
			continue // the interface makes its link-local address itself
		}
		if pfx := netip.PrefixFrom(addr, a.PrefixLength); pfx.IsValid() {
			set = append(set, pfx.String())
		}
	}
	return set
}

// automatic notes the ways in which the adapter gets addresses that no host port has.
func (a *adapter) automatic() {
	ip := a.Spec.IP
	switch {
	case ip != nil && ip.DHCP:
		a.changed("DHCP", "true", "the host port gets no address by DHCP: add addresses or pools")
	case len(a.to.Addresses) == 0:
		a.changed("addresses", "", "the host port has no address: add addresses or pools")
	}
	if ip == nil || ip.IPv6Config == nil {
		return
	}
	if ip.IPv6Config.AutoConfigurationEnabled {
		a.changed("IPv6 autoconfiguration", "true", "the kernel takes router advertisements at the host port as its "+
			"sysctls say (accept_ra)")
	}
	if ip.IPv6Config.DHCPv6Enabled {
		a.changed("DHCPv6", "true", "the host port gets no address by DHCPv6: add addresses or pools")
	}
}

// route takes the adapter's gateway where a host port can have it: one of a network that its addresses are in, for the
// main table once.
func (a *adapter) route(routed map[bool]bool) {
	stack := a.Spec.NetStackInstanceKey
	if stack == "" {
		stack = defaultStack
	}
	if stack != defaultStack {
		a.absent("TCP/IP stack", stack, "Linux has one TCP/IP stack for all host ports: give the port a gateway "+
			"with a table, and ip rules that use it, if its routes are to be its own")
	}
	c, own := a.gateways(stack)
	for _, gateway := range []string{c.DefaultGateway, c.IPv6DefaultGateway} {
		reached, v6 := a.reaches(gateway), strings.Contains(gateway, ":")
		switch {
		case gateway == "" || !reached && !own:
			// The stack's gateway is another adapter's.
		case !reached:
			a.absent("gateway", gateway, "it is in no network of the port's addresses")
		case stack != defaultStack || routed[v6] || a.to.Gateway != "":
			a.absent("gateway", gateway, "the host port has no default route by it: one port has that of the main "+
				"table, one for a port; give this one gateway and table, or a route by hand")
		default:
			a.to.Gateway, routed[v6] = gateway, true
		}
	}
}

// gateways are the adapter's own, which it has where it overrides those of its stack, or its stack's.
func (a *adapter) gateways(stack string) (c ipRouteConfig, own bool) {
	if r := a.Spec.IPRouteSpec; r != nil && r.IPRouteConfig != nil {
		return *r.IPRouteConfig, true
	}
	for _, s := range a.network.NetStackInstance {
		if s.Key == stack && s.IPRouteConfig != nil {
			return *s.IPRouteConfig, false
		}
	}
	if a.network.IPRouteConfig != nil && stack == defaultStack {
		c = *a.network.IPRouteConfig
	}
	return c, false
}

// reaches reports whether a gateway is in a network of the host port's addresses.
func (a *adapter) reaches(gateway string) bool {
	g, err := netip.ParseAddr(gateway)
	if err != nil {
		return false
	}
	for _, has := range a.to.Addresses {
		if p, err := netip.ParsePrefix(has); err == nil && p.Contains(g) && p.Addr() != g {
			return true
		}
	}
	return false
}

// others notes what no host port has.
func (a *adapter) others() {
	if a.Spec.MAC != "" {
		a.changed("MAC address", a.Spec.MAC, "the host port has a MAC of its own: give it this one as mac where "+
			"something goes by it, and the ESXi host has given it up")
	}
	if a.Spec.PinnedPnic != "" {
		a.absent("pinned network card", a.Spec.PinnedPnic, "the teaming of the port group chooses the uplink")
	}
}

// adapterMTU is that of a host port: the switch's where it is the same or not possible.
func adapterMTU(mtu, ofSwitch int) int {
	if ofSwitch == 0 {
		ofSwitch = 1500
	}
	if mtu < smallestMTU || mtu >= ofSwitch {
		return 0
	}
	return mtu
}

func prefix(address, mask string) (string, bool) {
	a, err := netip.ParseAddr(address)
	m, errMask := netip.ParseAddr(mask)
	if err != nil || errMask != nil || !a.Is4() || !m.Is4() {
		return "", false
	}
	bits, of := net.IPMask(m.AsSlice()).Size()
	return fmt.Sprintf("%s/%d", a, bits), of == 32 && bits > 0
}
