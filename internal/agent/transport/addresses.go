package transport

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// addressesOf are the addresses at which others reach a listener, 8 at most: the one that it has, or else those that
// come first and then all global ones of this host.
func addressesOf(at net.Addr, first []netip.Addr) (out []string, err error) {
	own, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, err
	}
	if !own.Addr().IsUnspecified() {
		return []string{own.String()}, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	return offered(first, all, own.Port()), nil
}

// offered are those of the host's addresses that others may reach, as HOST:PORT.
func offered(first []netip.Addr, all []net.Addr, port uint16) (out []string) {
	list := slices.Clone(first)
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr())
		}
	}
	seen := map[netip.Addr]bool{}
	for _, a := range list {
		// Loopback addresses count where the controller is on this machine, and the other host with it.
		a = a.Unmap().WithZone("")
		if seen[a] || !a.IsGlobalUnicast() && !(a.IsLoopback() && slices.Contains(first, a)) {
			continue
		}
		seen[a] = true
		if out = append(out, net.JoinHostPort(a.String(), strconv.Itoa(int(port)))); len(out) == mostAddresses {
			break
		}
	}
	return out
}
