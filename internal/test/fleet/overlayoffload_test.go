package fleet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// segmentation are the offloads by which a device leaves it to others to cut frames, those within tunnels among them.
var segmentation = []string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation",
	"tx-tcp-mangleid-segmentation", "tx-udp-segmentation", "tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation",
	"tx-gso-partial"}

// offload turns a device's segmentation on or off; without it, the device's receiver puts segments together.
func offload(t *testing.T, ns *netns.NS, device string, on bool) {
	t.Helper()
	inside(t, ns, func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		have, err := tool.Features(device)
		if err != nil {
			return err
		}
		want := map[string]bool{"rx-gro": true}
		for _, name := range segmentation {
			if _, there := have[name]; there {
				want[name] = on
			}
		}
		return tool.Change(device, want)
	})
}

// talk is two guests that send each other bytes.
type talk struct {
	t        *testing.T
	from, to *netns.NS
	at       netip.Addr // of the one that receives
	random   *rand.ChaCha8
}

func (k *talk) bytes(n int) []byte {
	b := make([]byte, n)
	_, _ = k.random.Read(b) // never fails
	return b
}

// stream sends bytes over TCP and compares what arrives.
func (k *talk) stream(size int) {
	k.t.Helper()
	var server net.Listener
	inside(k.t, k.to, func() (err error) {
		server, err = net.Listen("tcp", netip.AddrPortFrom(k.at, 0).String())
		return err
	})
	defer server.Close()
	sent := k.bytes(size)
	done := make(chan error, 1)
	go func() {
		done <- k.from.Do(func() error {
			c, err := (&net.Dialer{Timeout: realhost.Patience}).Dial("tcp", server.Addr().String())
			if err != nil {
				return err
			}
			_, err = c.Write(sent)
			return errors.Join(err, c.Close())
		})
	}()
	c, err := server.Accept()
	if err != nil {
		k.t.Fatal(err)
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	if err = errors.Join(err, <-done); err != nil || !bytes.Equal(got, sent) {
		k.t.Errorf("TCP: %d of %d bytes arrived, or others: %v", len(got), len(sent), err)
	}
}

// sockets are UDP sockets of the two guests. The caller closes them.
func (k *talk) sockets() (server, client *net.UDPConn) {
	k.t.Helper()
	inside(k.t, k.to, func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(k.at, 0)))
		return err
	})
	inside(k.t, k.from, func() (err error) {
		client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	})
	return server, client
}

// datagrams sends UDP datagrams of these sizes, one at a time, and then many in one large frame that the kernel cuts; a
// datagram that is lost on the way is sent again.
func (k *talk) datagrams(sizes []int, cut int) {
	k.t.Helper()
	server, client := k.sockets()
	defer server.Close()
	defer client.Close()
	for _, n := range sizes {
		data := k.bytes(n)
		k.arrives(server, data, func() error { _, err := client.Write(data); return err })
	}
	many := k.bytes(12 * cut)
	k.arrives(server, many, func() error {
		_, _, err := client.WriteMsgUDP(many, segmentsOf(uint16(cut)), nil)
		return err
	})
}

// arrives sends until the bytes arrive, in one datagram or in several one after the other.
func (k *talk) arrives(server *net.UDPConn, want []byte, send func() error) {
	k.t.Helper()
	buf, got := make([]byte, 1<<16), []byte{}
	for end := time.Now().Add(realhost.Patience); ; {
		if err := send(); err != nil {
			k.t.Fatalf("send %d bytes: %v", len(want), err)
		}
		got = got[:0]
		for len(got) < len(want) {
			if err := server.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
				k.t.Fatal(err)
			}
			n, err := server.Read(buf)
			if err != nil {
				break
			}
			got = append(got, buf[:n]...)
		}
		if bytes.Equal(got, want) {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("UDP: %d of %d bytes arrived, or others", len(got), len(want))
		}
	}
}

// segmentsOf is the control message that asks the kernel for datagrams of n bytes (UDP_SEGMENT).
func segmentsOf(n uint16) []byte {
	b := make([]byte, unix.CmsgSpace(2))
	head := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	head.Level, head.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	head.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], n)
	return b
}

// TestS84_EveryByteCrossesWhoeverCutsSegments: TCP and UDP, over IPv4 and IPv6, within a tunnel over either; frames are
// cut by the guest, by its host, by the device under the tunnel, or by nobody; datagrams are one byte shorter than, as
// long as and longer than the guest's MTU.
func TestS84_EveryByteCrossesWhoeverCutsSegments(t *testing.T) {
	testkit.Long(t, "has each way of cutting segments; TestS84_GuestsTalkByTCPAcrossHosts has one")
	t.Parallel()
	for _, outer6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("outer IPv6=%v", outer6), func(t *testing.T) {
			r := newOverlayRig(t, outer6, "other")
			for i := range r.hosts {
				r.command(r.spaces[i][0], "ip", "addr", "add", fmt.Sprintf("192.168.9.%d/24", i+1), "dev", "eth0")
				r.command(r.spaces[i][0], "ip", "addr", "add", fmt.Sprintf("fd99::%d/64", i+1), "dev", "eth0", "nodad")
			}
			for _, wire := range []bool{true, false} {
				for i, h := range r.hosts {
					offload(t, h.NS, "u0", wire)
					offload(t, r.router, fmt.Sprintf("r%d", i+1), wire)
				}
				for _, guest := range []bool{true, false} {
					for i := range r.hosts {
						offload(t, r.spaces[i][0], "eth0", guest)
					}
					r.talks(fmt.Sprintf("whole on the wire=%v, of the guest=%v", wire, guest))
				}
			}
			for i, h := range r.hosts {
				for _, name := range []string{"tunnel-mtu", "mtu-exceeded", "device-refused", "tunnel-no-endpoint"} {
					if n := h.Refused("tunnel", name); n != 0 {
						t.Errorf("host %d: %d × %s", i, n, name)
					}
				}
			}
		})
	}
}

// talks has the guests talk by both families.
func (r *overlayRig) talks(what string) {
	for _, family := range []struct {
		name, at string
		headers  int
	}{{"IPv4", "192.168.9.2", 28}, {"IPv6", "fd99::2", 48}} {
		r.t.Run(what+", "+family.name, func(t *testing.T) {
			k := &talk{t: t, from: r.spaces[0][0], to: r.spaces[1][0], at: netip.MustParseAddr(family.at),
				random: rand.NewChaCha8([32]byte{84})}
			full := 1500 - family.headers
			k.stream(2 << 20)
			k.datagrams([]int{1, full - 1, full, full + 1, 9000}, full)
		})
	}
}

// TestS84_AFrameThatDoesNotFitTheUnderlayHasAReason: with an underlay that is one byte too small for the guests' MTU,
// what is one byte shorter arrives whole, and what is not is counted, and nothing else is lost.
func TestS84_AFrameThatDoesNotFitTheUnderlayHasAReason(t *testing.T) {
	testkit.Long(t, "TestS112_RulesOfATrunkHoldInItsVLANs has packets that are too long")
	t.Parallel()
	r := newOverlayRig(t, false, "other")
	for i := range r.hosts {
		r.command(r.spaces[i][0], "ip", "addr", "add", fmt.Sprintf("192.168.9.%d/24", i+1), "dev", "eth0")
	}
	k := &talk{t: t, from: r.spaces[0][0], to: r.spaces[1][0], at: netip.MustParseAddr("192.168.9.2"),
		random: rand.NewChaCha8([32]byte{85})}
	r.command(r.hosts[0].NS, "ip", "link", "set", "u0", "mtu", "1549")
	r.hosts[0].Await("the host says that the underlay is too small", func() bool {
		return bytes.Contains([]byte(r.hosts[0].must("uplink", "list")), []byte("low-mtu"))
	})
	k.datagrams([]int{1471, 1, 1471}, 1471)
	if n := r.hosts[0].Refused("tunnel", "tunnel-mtu"); n != 0 {
		t.Errorf("%d frames that fit were refused", n)
	}
	var client *net.UDPConn
	inside(t, k.from, func() (err error) {
		client, err = net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(192, 168, 9, 2), Port: 9})
		return err
	})
	defer client.Close()
	k.control(client, func(fd int) error { // without don't-fragment, so that the guest is not told
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_INTERFACE)
	})
	for want := uint64(1); want <= 3; want++ {
		if _, err := client.Write(k.bytes(1472)); err != nil {
			t.Fatal(err)
		}
		r.hosts[0].Await("a frame that is one byte too long is counted", func() bool {
			return r.hosts[0].Refused("tunnel", "tunnel-mtu") == want
		})
	}
	r.command(r.hosts[0].NS, "ip", "link", "set", "u0", "mtu", "1550")
	r.hosts[0].Await("the host sees that the underlay is large enough", func() bool {
		_, err := client.Write(k.bytes(1472))
		before := r.hosts[0].Refused("tunnel", "tunnel-mtu")
		if err == nil {
			_, err = client.Write(k.bytes(1472))
		}
		return err == nil && r.hosts[0].Refused("tunnel", "tunnel-mtu") == before
	})
	k.datagrams([]int{1471, 1472}, 1472)
}
