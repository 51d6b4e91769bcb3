package wire

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// SendPacket sends a UDP packet from an address of this host, and a source port that the kernel chooses anew each time:
// where the network has several ways, packets take all of them in turn. It is never fragmented, and what the kernel
// believes to fit the way is not asked for.
func SendPacket(from netip.Addr, to netip.AddrPort, packet []byte) (err error) {
	domain, level, discover, probe := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE
	if from.Is6() {
		domain, level, discover, probe = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER,
			unix.IPV6_PMTUDISC_PROBE
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open a UDP socket: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := unix.SetsockoptInt(fd, level, discover, probe); err != nil {
		return fmt.Errorf("forbid fragments: %w", err)
	}
	if err := unix.Bind(fd, socketAddress(netip.AddrPortFrom(from, 0))); err != nil {
		return fmt.Errorf("send from %s: %w", from, err)
	}
	return unix.Sendto(fd, packet, 0, socketAddress(to))
}

func socketAddress(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
