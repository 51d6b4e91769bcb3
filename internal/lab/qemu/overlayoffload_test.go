package qemu_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/cputime"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
)

// offloadStream is how much goes each way by TCP in each exchange of the matrix.
const offloadStream = 96 << 10

// family is that of the packets inside the tunnel.
type family struct {
	name, network string
	headers       int // of IP and UDP
}

var families = []family{{"IPv4", "192.0.2.", 28}, {"IPv6", "2001:db8::", 48}}

// peer is an end of an exchange, and the last part of its addresses.
type peer struct {
	machine
	host string
}

// TestS84_EveryByteCrossesFromEmulatedGuests: guests with virtio-net and e1000, and a guest within them behind a
// bridge, talk over a tunnel of IPv4 and IPv6 to another host's guest and to a machine with the kernel's own VXLAN
// device, by TCP and UDP over IPv4 and IPv6. Frames are cut by the guest's card, by the guest, by the host, or by
// nobody; datagrams are one byte shorter than, as long as, and longer than each MTU; and who has not the room learns of
// it. Each byte is compared, and tshark finds each checksum outside and inside right.
func TestS84_EveryByteCrossesFromEmulatedGuests(t *testing.T) {
	needGuests(t, qemu.E1000)
	for _, card := range []qemu.NIC{qemu.VirtioNet, qemu.E1000} {
		t.Run(string(card), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
			defer cancel()
			r := newOverlayRig(t, ctx, card)
			t.Run("guest", func(t *testing.T) { r.matrix(t, peer{r.guest, "1"}, "whole", "cut", "plain") })
			r.do(r.guest, nest)
			r.inner.serve(t, ctx)
			t.Run("nested guest", func(t *testing.T) { r.matrix(t, peer{r.inner, "11"}, "whole", "plain") })
			r.nothingRefused()
			r.narrow()
			for _, outer := range []int{6, 4} {
				r.over(outer)
				for _, p := range []peer{{r.guest, "1"}, {r.inner, "11"}} {
					t.Run(fmt.Sprintf("small underlay of IPv%d, 192.0.2.%s", outer, p.host), func(t *testing.T) {
						r.learns(t, p, map[int]int{4: 1450, 6: 1430}[outer])
					})
				}
			}
			used, err := cputime.Process(r.guest.Pid())
			t.Logf("the guest took %s of CPU time, %v", used.Round(100*time.Millisecond), err)
		})
	}
}

// matrix has one guest talk to everybody, whoever cuts segments and adds up checksums.
func (r *overlayRig) matrix(t *testing.T, p peer, offloads ...string) {
	for _, outer := range []int{6, 4} {
		r.over(outer)
		for _, wire := range []string{"whole", "plain"} {
			r.offload(r.router, "r0", wire, "apart")
			r.offload(r.router, "r1", wire, "apart")
			r.offload(r.router, "r2", wire, "apart")
			r.offload(vm{r.host[0].NS, r.far.exchange}, "u0", wire, "together")
			r.offload(vm{r.host[1].NS, r.far.exchange}, "u0", wire, "together")
			r.offload(r.third, "u0", wire, "together")
			r.seen.end()
			for _, own := range offloads {
				r.offload(p, "eth0", own, "together")
				r.offload(r.far, "eth0", own, "together")
				t.Run(fmt.Sprintf("outer IPv%d, wire %s, guest %s", outer, wire, own), func(t *testing.T) {
					r.talks(t, p, own)
				})
			}
			t.Run(fmt.Sprintf("outer IPv%d, wire %s, decoded", outer, wire), func(t *testing.T) { r.decoded(t, wire) })
		}
	}
}

func (r *overlayRig) offload(m machine, device, how, merge string) {
	r.t.Helper()
	r.do(m, fmt.Sprintf("%s offload %s %s %s", exchangePath, device, how, merge))
}

// talks has the guest call the other host's guest, and the machine with the kernel's own device call the guest; as much
// comes back as is sent.
func (r *overlayRig) talks(t *testing.T, p peer, own string) {
	for _, f := range families {
		for _, way := range [][2]peer{{p, peer{r.far, "2"}}, {peer{r.third, "3"}, p}} {
			cut := 1500 - f.headers
			sizes := fmt.Sprintf("1,%d,%d,%d,9000", cut-1, cut, cut+1)
			if own == "plain" {
				cut = 0 // the kernel cuts for no card that leaves checksums to it
			}
			at := hostPort(f.network + way[1].host)
			r.exchanged(t, way[0], fmt.Sprintf("tcp %s %d", at, offloadStream))
			r.exchanged(t, way[0], fmt.Sprintf("sizes %s %d %s", at, cut, sizes))
		}
	}
	for _, m := range []machine{p, r.far, r.third} {
		if n := checksumErrors(t, r.ctx, m); n != 0 {
			t.Errorf("%d packets came with wrong checksums", n)
		}
	}
}

func (r *overlayRig) exchanged(t *testing.T, from machine, what string) {
	t.Helper()
	out, err := from.run(r.ctx, exchangePath+" "+what)
	if err != nil {
		t.Errorf("exchange %s: %v", what, err)
		return
	}
	if _, n, found := strings.Cut(strings.TrimSpace(out), "repeated "); found && n != "0" {
		t.Logf("exchange %s: %s", what, strings.TrimSpace(out))
	}
}

// wrong is what tshark must not find: only where no card is left to add up checksums are those on the wire complete.
var wrong = map[string]string{
	"whole": "_ws.malformed",
	"plain": "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 || " + testkit.BadTCPChecksum +
		" || icmp.checksum.status == 0 || icmpv6.checksum.status == 0",
}

// decoded has tshark read what the router received.
func (r *overlayRig) decoded(t *testing.T, wire string) {
	t.Helper()
	all := r.seen.end()
	check := []string{"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o",
		"tcp.check_checksum:TRUE", "-d", "udp.port==" + port + ",data", "-d", "tcp.port==" + port + ",data"}
	bad := testkit.Tshark(t, all, append(check, "-Y", wrong[wire])...)
	if len(bad) > 0 {
		t.Errorf("of %d frames tshark refuses:\n%.2000s", len(all), bad)
	}
	tunnelled := testkit.Tshark(t, all, append(check, "-Y", "vxlan.vni == 5000 && (tcp.checksum.status == 1 || "+
		"udp.checksum.status == 1)", "-T", "fields", "-e", "frame.number")...)
	n := bytes.Count(tunnelled, []byte("\n"))
	t.Logf("%d frames on the wire, %d of them of the segment with a checksum that tshark finds right", len(all), n)
	if wire == "plain" && n < 4*offloadStream/1500 {
		t.Errorf("tshark has read %d packets of TCP and UDP in the tunnel", n)
	}
}

// nothingRefused: all frames fitted.
func (r *overlayRig) nothingRefused() {
	r.t.Helper()
	for i, h := range r.host {
		for reason, n := range r.refused(h) {
			if strings.HasPrefix(reason, "tunnel-mtu") || reason == "mtu-exceeded" || reason == "device-refused" {
				r.t.Errorf("host %d: %d × %s", i, n, reason)
			}
		}
	}
}

// refused is why the tunnel of a host has refused frames.
func (r *overlayRig) refused(h *heddleHost) map[string]uint64 {
	r.t.Helper()
	all, err := h.Stats(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	by := map[string]uint64{}
	for _, s := range all {
		if s.Name != "tunnel" {
			continue
		}
		for _, d := range append(s.Drops, s.Refused...) {
			by[d.Reason] += d.Value
		}
	}
	return by
}

// narrow makes the underlay too small for the guests' MTU.
func (r *overlayRig) narrow() {
	r.t.Helper()
	for i, m := range []machine{vm{r.host[0].NS, ""}, vm{r.host[1].NS, ""}, r.third} {
		r.do(r.router, fmt.Sprintf("ip link set r%d mtu 1500", i))
		r.do(m, "ip link set u0 mtu 1500")
	}
}

// learns has a guest and those that it talks to learn how long packets may be.
func (r *overlayRig) learns(t *testing.T, p peer, room int) {
	for _, own := range []string{"whole", "cut"} {
		r.offload(p, "eth0", own, "together")
		r.offload(r.far, "eth0", own, "together")
		for _, f := range families {
			for _, way := range [][2]peer{{p, peer{r.far, "2"}}, {peer{r.far, "2"}, p}} {
				at := hostPort(f.network + way[1].host)
				for _, what := range []string{fmt.Sprintf("tcp %s %d", at, offloadStream),
					fmt.Sprintf("learn %s %d %d", at, room, f.headers)} {
					for _, m := range []machine{p, r.far} { // nobody has learned anything yet
						r.do(m, "ip -4 route flush cache; ip -6 route flush cache 2>/dev/null; true")
					}
					r.exchanged(t, way[0], what)
				}
			}
		}
	}
	if r.refused(r.host[0])["tunnel-mtu"] == 0 {
		t.Error("no frame was too long, so that nobody learned")
	}
}
