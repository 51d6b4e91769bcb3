package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// marked is a UDP packet of IPv4 or IPv6 to all, with that byte of DSCP and ECN.
func marked(from byte, v6 bool, tos byte, text string) []byte {
	f := cable.Frame(cable.Broadcast(), cable.MAC(from), 0, "")[:12]
	body := append([]byte{0, 7, 0, 7, 0, byte(8 + len(text)), 0, 0}, text...)
	if v6 {
		f = append(f, 0x86, 0xdd, 0x60|tos>>4, tos<<4, 0, 0, 0, byte(len(body)), 17, 64, 0xfd)
		f = append(append(append(f, make([]byte, 14)...), 1, 0xfd), append(make([]byte, 14), 2)...)
		return append(f, body...)
	}
	ip := []byte{0x45, tos, 0, byte(20 + len(body)), 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(ip[i])<<8 | uint32(ip[i+1])
	}
	sum = ^(sum&0xffff + sum>>16)
	ip[10], ip[11] = byte(sum>>8), byte(sum)
	return append(append(append(f, 8, 0), ip...), body...)
}

// tosIn is the byte of DSCP and ECN of a frame's packet.
func tosIn(f []byte) byte {
	if f[12] == 8 {
		return f[15]
	}
	return f[14]<<4 | f[15]>>4
}

// TestS84_DSCPAndECNCross: the outer packet has the inner one's DSCP and ECN, but "ECN-capable" for "congestion
// experienced"; congestion that an outer packet met is told to the inner one's receiver, and a packet whose receiver
// could not be told is dropped and counted (RFC 6040). IPv4 and IPv6, inside and outside.
func TestS84_DSCPAndECNCross(t *testing.T) {
	testkit.Long(t, "has all kinds of packets inside and outside; the package difftest has these bits as well")
	t.Parallel()
	for _, outer6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("outer IPv6=%v", outer6), func(t *testing.T) {
			r := newOverlayRig(t, outer6, "other")
			for _, inner6 := range []bool{false, true} {
				for _, row := range []struct{ inner, outer byte }{{0, 0}, {0xb8, 0xb8}, {0x29, 0x29}, {0x2a, 0x2a},
					{0x2b, 0x2a}} {
					t.Run(fmt.Sprintf("out, inner IPv6=%v, %#x", inner6, row.inner), func(t *testing.T) {
						r.leavesWith(t, inner6, row.inner, row.outer)
					})
				}
				// RFC 6040 section 4.2: by what is inside and what arrives outside; 4 = dropped
				for inner, row := range [][4]byte{{0, 0, 0, 4}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}} {
					for outer, want := range row {
						t.Run(fmt.Sprintf("in, inner IPv6=%v, ECN %d in %d", inner6, inner, outer), func(t *testing.T) {
							r.arrivesWith(t, inner6, byte(inner), byte(outer), want)
						})
					}
				}
			}
		})
	}
}

func (r *overlayRig) leavesWith(t *testing.T, inner6 bool, inner, outer byte) {
	t.Helper()
	text := []byte(fmt.Sprintf("out %v %#x", inner6, inner))
	sent := marked(1, inner6, inner, string(text))
	r.wire.Forget()
	r.guests[0][0].Send(sent)
	all := r.wire.Gather("the packet in the tunnel", func(all [][]byte) bool {
		return bytes.Contains(all[len(all)-1], text)
	})
	if got := tosIn(all[len(all)-1]); got != outer {
		t.Errorf("the outer packet has %#x, want %#x", got, outer)
	}
	r.guests[1][0].Expect(sent, "the other host's guest gets what was sent")
}

func (r *overlayRig) arrivesWith(t *testing.T, inner6 bool, inner, outer, want byte) {
	t.Helper()
	const dscp = 0x28
	text := fmt.Sprintf("in %v %d %d", inner6, inner, outer)
	before, untold := r.deviceErrors(), r.device().RxFrameErrors
	r.markedPacket(marked(66, inner6, dscp|inner, text), outer)
	if want == 4 {
		r.hosts[0].Await("the dropped packet is counted", func() bool { return r.deviceErrors() == before+1 })
		if got := r.device().RxFrameErrors; got != untold+1 {
			t.Errorf("%d packets are counted that met congestion and could not tell, want 1", got-untold)
		}
		shown := r.hosts[0].must("stats", "tunnel")
		if !strings.Contains(shown, "of these: congestion, no ECN inside, or reserved bits  ") {
			t.Errorf("the host does not name the reason:\n%s", shown)
		}
		r.guests[0][0].Refuse(marked(66, inner6, dscp|inner, text), "nobody could be told of the congestion")
		return
	}
	r.guests[0][0].Expect(marked(66, inner6, dscp|want, text), "RFC 6040")
	if got := r.deviceErrors(); got != before {
		t.Errorf("%d packets were dropped", got-before)
	}
}

// deviceErrors is how many packets the tunnel's device has dropped that it could not take.
func (r *overlayRig) deviceErrors() uint64 {
	r.t.Helper()
	return r.device().RxErrors
}

// device is what the first host's tunnel device counts.
func (r *overlayRig) device() *api.DeviceLosses {
	r.t.Helper()
	all, err := r.hosts[0].Stats(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == "tunnel" && s.Device != nil {
			return s.Device
		}
	}
	r.t.Fatal("the tunnel's device has no counters")
	return nil
}

// markedPacket sends an inner frame as the third machine would, in a packet that has met that ECN.
func (r *overlayRig) markedPacket(inner []byte, ecn byte) {
	r.t.Helper()
	inside(r.t, r.third, func() error {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(r.addr[2])},
			&net.UDPAddr{IP: net.ParseIP(r.addr[0]), Port: 4789})
		if err != nil {
			return err
		}
		raw, err := c.SyscallConn()
		if err == nil {
			var refused error
			err = raw.Control(func(fd uintptr) {
				if net.ParseIP(r.addr[0]).To4() != nil {
					refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, int(ecn))
				} else {
					refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_TCLASS, int(ecn))
				}
			})
			err = errors.Join(err, refused)
		}
		if err == nil {
			_, err = c.Write(append([]byte{8, 0, 0, 0, 0, 5000 >> 8, 5000 & 0xff, 0}, inner...))
		}
		return errors.Join(err, c.Close())
	})
}
