package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// TestS84_GuestsLearnWhatFitsTheTunnel: guests with an MTU of 1,500 on an underlay of 1,500 learn by the ICMP errors of
// IPv4 and IPv6 how long packets may be: TCP streams arrive whole, with segments cut by the guest, or by whoever is
// after it; a datagram that must not be fragmented arrives if it fits to the byte, and is refused by the guest's own
// kernel if it has one byte more.
func TestS84_GuestsLearnWhatFitsTheTunnel(t *testing.T) {
	testkit.Long(t, "has both families and each way of cutting segments; TestS112_RulesOfATrunkHoldInItsVLANs has "+
		"the errors")
	t.Parallel()
	for _, outer6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("outer IPv6=%v", outer6), func(t *testing.T) {
			r := newOverlayRig(t, outer6, "other")
			room := 1450
			if outer6 {
				room = 1430
			}
			for i, h := range r.hosts {
				r.command(r.spaces[i][0], "ip", "addr", "add", fmt.Sprintf("192.168.9.%d/24", i+1), "dev", "eth0")
				r.command(r.spaces[i][0], "ip", "addr", "add", fmt.Sprintf("fd99::%d/64", i+1), "dev", "eth0", "nodad")
				r.command(h.NS, "ip", "link", "set", "u0", "mtu", "1500")
				r.smallUnderlay(h, room)
			}
			for _, whole := range []bool{true, false} {
				for i := range r.hosts {
					offload(t, r.spaces[i][0], "eth0", whole)
				}
				for _, family := range []struct {
					name, at string
					headers  int
				}{{"IPv4", "192.168.9.2", 28}, {"IPv6", "fd99::2", 48}} {
					t.Run(fmt.Sprintf("segments of the guest=%v, %s", whole, family.name), func(t *testing.T) {
						k := &talk{t: t, from: r.spaces[0][0], to: r.spaces[1][0],
							at: netip.MustParseAddr(family.at), random: rand.NewChaCha8([32]byte{84})}
						k.forget()
						k.stream(1 << 20)
						k.forget()
						k.learnsMTU(room, family.headers)
					})
				}
			}
			if r.hosts[0].Refused("tunnel", "tunnel-mtu") == 0 {
				t.Error("no frame was too long, so that nothing was learned")
			}
		})
	}
}

// smallUnderlay waits until the host says in one line by how much its underlay is too small.
func (r *overlayRig) smallUnderlay(h *host, room int) {
	h.Await("the host says that its underlay is too small", func() bool {
		return strings.Contains(h.must("uplink", "list", "-o", "json"),
			fmt.Sprintf("device u0 has MTU 1500, %d below the %d", 1500-room, 3000-room))
	})
}

// forget has the sender forget what it has learned of paths.
func (k *talk) forget() {
	k.t.Helper()
	for _, v := range []string{"-4", "-6"} {
		if out, err := k.from.Output("ip", v, "route", "flush", "cache"); err != nil {
			k.t.Fatalf("flush the routes' cache: %v: %s", err, out)
		}
	}
}

// learnsMTU sends datagrams that must not be fragmented.
func (k *talk) learnsMTU(room, headers int) {
	k.t.Helper()
	server, client := k.sockets()
	defer server.Close()
	defer client.Close()
	k.control(client, func(fd int) error { return dontFragment(fd, k.at) })
	fits := k.bytes(room - headers)
	send := func() error {
		_, err := client.Write(fits)
		if errors.Is(err, syscall.EMSGSIZE) { // of an error that has come since the last call; told once
			_, err = client.Write(fits)
		}
		return err
	}
	k.arrives(server, fits, send)
	long, learned := append(fits, 1), 0
	for end := time.Now().Add(realhost.Patience); learned != room; {
		if _, err := client.Write(long); err != nil && !errors.Is(err, syscall.EMSGSIZE) {
			k.t.Fatal(err)
		}
		k.control(client, func(fd int) (err error) { learned, err = pathMTU(fd, k.at); return err })
		if time.Now().After(end) {
			k.t.Fatalf("the guest takes the path's MTU to be %d, and packets of %d bytes fit", learned, room)
		}
	}
	if _, err := client.Write(long); !errors.Is(err, syscall.EMSGSIZE) {
		k.t.Errorf("a datagram that is one byte too long: %v", err)
	}
	k.arrives(server, fits, send)
	k.arrives(server, fits[:len(fits)-1], func() error { _, err := client.Write(fits[:len(fits)-1]); return err })
}

func (k *talk) control(c *net.UDPConn, do func(fd int) error) {
	k.t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		var inner error
		err = raw.Control(func(fd uintptr) { inner = do(int(fd)) })
		err = errors.Join(err, inner)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func dontFragment(fd int, at netip.Addr) error {
	if at.Is4() {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	}
	return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO)
}

func pathMTU(fd int, at netip.Addr) (int, error) {
	if at.Is4() {
		return unix.GetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU)
	}
	return unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU)
}
