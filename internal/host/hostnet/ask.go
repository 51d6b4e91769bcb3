package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Neighbour is an entry of the host's neighbour table that the kernel maintains itself.
type Neighbour struct {
	Address netip.Addr
	MAC     [6]byte
	// Reachable: the neighbour has answered since it was last asked.
	Reachable bool
	// Asking: a request is in progress.
	Asking bool
	// Unused is how long ago something was last sent to the neighbour.
	Unused time.Duration
}

// userHertz is the unit of times in neighbour messages (USER_HZ).
const userHertz = 100

// Neighbours returns the neighbours on the device whose MAC is known or requested. Static ones are left out: the table
// does not show whether they answer.
func (Net) Neighbours(index uint32) (list []Neighbour, err error) {
	all, err := dump(unix.RTM_GETNEIGH, neighbourDump{}, unix.RTM_NEWNEIGH)
	if err != nil {
		return nil, fmt.Errorf("read the neighbours: %w", err)
	}
	const asking = unix.NUD_INCOMPLETE | unix.NUD_PROBE | unix.NUD_DELAY
	for _, b := range all {
		ip, ok := netip.AddrFromSlice(attribute(b, neighbourHeader, unix.NDA_DST))
		state := neighbourState(b)
		if !ok || neighbourIndex(b) != index || ip.IsMulticast() || state&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 {
			continue
		}
		n := Neighbour{Address: ip, Reachable: state&unix.NUD_REACHABLE != 0, Asking: state&asking != 0}
		if mac := attribute(b, neighbourHeader, unix.NDA_LLADDR); len(mac) == len(n.MAC) {
			n.MAC = [6]byte(mac)
		}
		if cache := attribute(b, neighbourHeader, unix.NDA_CACHEINFO); len(cache) >= 8 {
			// struct nda_cacheinfo: confirmed, used
			n.Unused = time.Duration(binary.NativeEndian.Uint32(cache[4:])) * time.Second / userHertz
		}
		list = append(list, n)
	}
	return list, nil
}

// Ask makes the kernel ask for the neighbour again, whatever is known about it: Neighbours reports Reachable again when
// it has answered.
func (Net) Ask(index uint32, ip netip.Addr) error {
	b := make([]byte, neighbourHeader)
	b[0] = unix.AF_INET
	if ip.Is6() {
		b[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(b[4:], index)
	binary.NativeEndian.PutUint16(b[8:], unix.NUD_PROBE)
	// An entry without a MAC cannot be probed (EINVAL); a missing one is not created (ENOENT).
	err := send(unix.RTM_NEWNEIGH, unix.NLM_F_REPLACE, appendAttribute(b, unix.NDA_DST, ip.AsSlice()))
	if err == nil {
		return nil
	}
	return look(index, ip)
}

// NextHops returns the gateways of all routes through the device, except those with a static MAC; those of default
// routes come first.
func (c *Config) NextHops() (list []netip.Addr) {
	add := func(gw netip.Addr) {
		if !slices.Contains(list, gw) && !slices.Contains(c.Fixed, gw) {
			list = append(list, gw)
		}
	}
	for _, gw := range c.Gateways {
		add(gw)
	}
	for _, o := range c.Routes {
		for _, gw := range gatewaysOf(o.Message, c.Index) {
			add(gw)
		}
	}
	return list
}

// Has reports whether the address is in the configuration.
func (c *Config) Has(ip netip.Addr) bool {
	return slices.ContainsFunc(c.Prefixes, func(s string) bool {
		p, err := netip.ParsePrefix(s)
		return err == nil && p.Addr() == ip
	})
}

// OnLink reports whether a neighbour is in the network of an address in the configuration, so that it can answer this
// address; link-local neighbours always are.
func (c *Config) OnLink(ip netip.Addr) bool {
	return ip.IsLinkLocalUnicast() || slices.ContainsFunc(c.Prefixes, func(s string) bool {
		p, err := netip.ParsePrefix(s)
		return err == nil && p.Contains(ip)
	})
}

// Session is an established TCP connection of this host with another.
type Session struct {
	Local, Remote netip.AddrPort
	// Heard counts what the other end has sent; it grows with every segment.
	Heard uint64
}

// Sessions returns the established TCP connections with other hosts, as far as the kernel tells: without its modules
// inet_diag and tcp_diag it tells of none.
func (Net) Sessions() ([]Session, error) { return sessionsBy(netlink.SocketDiagTCPInfo) }

func sessionsBy(diag func(family uint8) ([]*netlink.InetDiagTCPInfoResp, error)) (list []Session, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := diag(family)
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP):
			continue
		case err != nil:
			return nil, fmt.Errorf("read the TCP connections: %w", err)
		}
		for _, r := range all {
			if r.InetDiagMsg == nil || r.TCPInfo == nil || r.InetDiagMsg.State != netlink.TCP_ESTABLISHED {
				continue
			}
			id := r.InetDiagMsg.ID
			local, remote := addrPort(id.Source, id.SourcePort), addrPort(id.Destination, id.DestinationPort)
			if local.Addr() == remote.Addr() || remote.Addr().IsLoopback() || !remote.IsValid() {
				continue
			}
			list = append(list, Session{local, remote, r.TCPInfo.Bytes_acked + r.TCPInfo.Bytes_received +
				uint64(r.TCPInfo.Segs_in)})
		}
	}
	return list, nil
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}

// Index returns the ifindex of the device of that name.
func (Net) Index(device string) (uint32, bool) {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return 0, false
	}
	return uint32(l.Attrs().Index), true
}
