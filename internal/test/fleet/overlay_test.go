package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// overlayConfig is a host with a tunnel and ports in two segments.
const overlayConfig = `
switches:
- name: lab
  mtu: 1500
  tunnel:
    endpoints: [{address: "%s"}]
    peers: [%s]
    monitoring: {ipfix: true}
  portGroups:
  - {name: web, overlay: {vni: 5000}}
  - {name: db, overlay: {vni: 5000}, vlan: {access: 10}}
  - {name: other, overlay: {vni: 6000}}
ports:
- {name: one, switch: lab, portGroup: web, device: p-one, mac: "02:00:00:00:00:%02x"}
- {name: two, switch: lab, portGroup: %s, device: p-two, mac: "02:00:00:00:00:%02x"}
`

// overlayRig is two hosts and a router between them, and a third machine with the kernel's own VXLAN device.
type overlayRig struct {
	t      *testing.T
	hosts  []*host
	router *netns.NS
	third  *netns.NS
	kernel *cable.End // the third machine's device of VNI 5000
	guests [][]*cable.End
	spaces [][]*netns.NS
	wire   *cable.End // the router's end of the first host's cable
	addr   []string   // endpoints: of the hosts, the third machine, a stranger
}

// newOverlayRig makes it, over IPv4 or IPv6. The second port of the second host is in the port group second.
func newOverlayRig(t *testing.T, v6 bool, second string) *overlayRig {
	t.Helper()
	testkit.Tool(t, "ip")
	r := &overlayRig{t: t, router: testkit.NS(t, "router"), third: testkit.NS(t, "third")}
	r.command(r.router, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
	spaces := []*netns.NS{testkit.NS(t, "host0"), testkit.NS(t, "host1"), r.third}
	for i, ns := range spaces {
		r.underlay(i+1, ns, v6)
	}
	r.addr = append(r.addr, r.network(4, v6)+"2")
	r.command(r.router, "ip", "addr", "add", r.addr[3], "dev", "lo")
	r.command(r.router, "ip", "link", "set", "lo", "up")
	r.command(r.third, "ip", "link", "add", "vx", "type", "vxlan", "id", "5000", "dstport", "4789", "local", r.addr[2],
		"nolearning")
	for _, a := range r.addr[:2] {
		r.command(r.third, "bridge", "fdb", "append", "00:00:00:00:00:00", "dev", "vx", "dst", a)
	}
	r.command(r.third, "ip", "link", "set", "vx", "up")
	for i, ns := range spaces[:2] {
		h := newHost(t, ns)
		one, two := testkit.NS(t, "one"), testkit.NS(t, "two")
		r.hosts, r.spaces = append(r.hosts, h), append(r.spaces, []*netns.NS{one, two})
		r.guests = append(r.guests, []*cable.End{h.PlugInto(one, "p-one", cable.MAC(byte(10*i+1))),
			h.PlugInto(two, "p-two", cable.MAC(byte(10*i+2)))})
		h.Start(r.config(i, second))
		h.Up("one", "two", "tunnel")
	}
	// After the hosts, whose watch for what a test leaves would otherwise end before these are closed: of tests side by
	// side, one would be blamed for those of another.
	r.kernel, r.wire = cable.Open(t, r.third, "vx"), cable.Open(t, r.router, "r1")
	return r
}

// config is the configuration of a host, with the other and the third machine as peers.
func (r *overlayRig) config(i int, second string) string {
	peers := []string{fmt.Sprintf("{name: other, address: %q}", r.addr[1-i]),
		fmt.Sprintf("{name: third, address: %q}", r.addr[2])}
	return fmt.Sprintf(overlayConfig, r.addr[i], strings.Join(peers, ", "), 10*i+1, second, 10*i+2)
}

func (r *overlayRig) network(n int, v6 bool) string {
	if v6 {
		return fmt.Sprintf("fd09:%d::", n)
	}
	return fmt.Sprintf("10.9.%d.", n)
}

// underlay connects a machine to the router by a network of its own.
func (r *overlayRig) underlay(n int, ns *netns.NS, v6 bool) {
	r.t.Helper()
	length := "/24"
	if v6 {
		length = "/64"
	}
	join(r.t, ns, "u0", r.router, fmt.Sprintf("r%d", n))
	r.addr = append(r.addr, r.network(n, v6)+"2")
	for _, end := range []struct {
		ns          *netns.NS
		device, one string
	}{{ns, "u0", "2"}, {r.router, fmt.Sprintf("r%d", n), "1"}} {
		r.command(end.ns, "ip", "link", "set", end.device, "mtu", "1600")
		args := []string{"ip", "addr", "add", r.network(n, v6) + end.one + length, "dev", end.device}
		if v6 {
			args = append(args, "nodad")
		}
		r.command(end.ns, args...)
	}
	r.command(ns, "ip", "route", "add", "default", "via", r.network(n, v6)+"1")
}

func (r *overlayRig) command(ns *netns.NS, args ...string) {
	r.t.Helper()
	if out, err := ns.Output(args[0], args[1:]...); err != nil {
		r.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// TestS84_S105_AnOverlaySegmentOverARoutedNetwork: what a guest sends to all reaches each host with members once, also
// the kernel's own VXLAN device, and comes back from none; what is for one goes there alone once it is known where it
// is; strangers and unknown VNIs are refused and counted; the tunnel outlives the agent, and "down" leaves nothing.
func TestS84_S105_AnOverlaySegmentOverARoutedNetwork(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("IPv6=%v", v6), func(t *testing.T) {
			if v6 {
				testkit.Long(t, "the same over IPv4 stays")
			}
			t.Parallel()
			r := newOverlayRig(t, v6, "other")
			r.everybody()
			r.known()
			r.decoded(v6)
			r.strangers(v6)
			r.hosts[0].End(syscall.SIGKILL)
			r.once(cable.MAC(1), "without an agent")
			r.hosts[0].StartWith(r.hosts[0].Launch)
			r.once(cable.MAC(1), "with the next agent")
			r.hosts[0].Configure(strings.Replace(r.config(0, "other"), fmt.Sprintf("{name: other, address: %q}, ",
				r.addr[1]), "", 1))
			r.hosts[0].Await("a host that is no peer any more is a stranger", func() bool {
				r.guests[1][0].Send(cable.Frame(cable.Broadcast(), cable.MAC(11), 0, "from a stranger"))
				return r.hosts[0].Counter("tunnel", "tunnel-unknown-endpoint") > 1
			})
			r.nothingLeft()
		})
	}
}

// once: what a guest of the first host sends to all comes to the other guest of the segment and to the third machine.
func (r *overlayRig) once(from [6]byte, text string) {
	r.t.Helper()
	all := cable.Frame(cable.Broadcast(), from, 0, text)
	r.guests[0][0].Send(all)
	r.guests[1][0].Expect(all, "S84: the other host")
	r.kernel.Expect(all, "S84: the kernel's own VXLAN device")
}

func (r *overlayRig) everybody() {
	r.t.Helper()
	r.once(cable.MAC(1), "to all")
	marker := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "the marker")
	r.guests[0][0].Send(marker)
	for _, e := range []*cable.End{r.guests[1][0], r.kernel} {
		if before := e.Until(marker); len(before) != 0 {
			r.t.Errorf("S84: %d more frames came than one for each endpoint: %x", len(before), before)
		}
	}
	r.guests[1][1].Refuse(marker, "another VNI")
	r.guests[0][1].Refuse(marker, "another VNI")
	r.guests[0][0].Refuse(marker, "its own frame came back")
	outside := cable.Frame(cable.Broadcast(), cable.MAC(77), 0, "from the kernel's device")
	r.kernel.Send(outside)
	r.guests[0][0].Expect(outside, "S84: from the kernel's device to the first host")
	r.guests[1][0].Expect(outside, "S84: from the kernel's device to the second host")
	r.kernel.Refuse(outside, "S84: what came from the overlay went back to it")
}

// known: each host has learned from the broadcasts where the others are.
func (r *overlayRig) known() {
	r.t.Helper()
	r.guests[1][0].Send(cable.Frame(cable.Broadcast(), cable.MAC(11), 0, "the second host speaks"))
	r.guests[0][0].Expect(cable.Frame(cable.Broadcast(), cable.MAC(11), 0, "the second host speaks"), "to all")
	one := cable.Frame(cable.MAC(11), cable.MAC(1), 0, "to one")
	marker := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "after the one")
	r.guests[0][0].Send(one)
	r.guests[0][0].Send(marker)
	r.guests[1][0].Expect(one, "unicast to where the destination was learned")
	before := r.kernel.Until(marker)
	if slices.ContainsFunc(before, func(f []byte) bool { return bytes.Equal(f, one) }) {
		r.t.Error("what is for one host went to another")
	}
	outside := cable.Frame(cable.MAC(77), cable.MAC(1), 0, "to the third")
	r.guests[0][0].Send(outside)
	r.kernel.Expect(outside, "unicast to the kernel's device")
}

// decoded: tshark reads the outer headers as they are meant to be.
func (r *overlayRig) decoded(v6 bool) {
	r.t.Helper()
	r.wire.Forget()
	r.guests[0][0].Send(cable.Frame(cable.MAC(11), cable.MAC(1), 0, "look at me"))
	frames := r.wire.Gather("an overlay frame", func(all [][]byte) bool {
		return bytes.Contains(all[len(all)-1], []byte("look at me"))
	})
	got := string(testkit.Dissect(r.t, frames[len(frames)-1:], "vxlan.vni", "udp.dstport", "ip.ttl", "ip.flags.df",
		"ipv6.hlim", "ip.dst", "ipv6.dst", "_ws.malformed", "udp.checksum.status"))
	want := fmt.Sprintf("5000\t4789\t64\tTrue\t\t%s\t\t\t", r.addr[1])
	if v6 {
		want = fmt.Sprintf("5000\t4789\t\t\t64\t\t%s\t\t", r.addr[1])
	}
	if got = strings.Replace(got, "\t1\t", "\tTrue\t", 1); !strings.HasPrefix(got, want) {
		r.t.Errorf("tshark reads %q, not %q", got, want)
	}
}

// strangers: overlay frames from an address that is no peer, or for a VNI that the host has not, are refused.
func (r *overlayRig) strangers(v6 bool) {
	r.t.Helper()
	h := r.hosts[0]
	forged := cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "forged")
	r.vxlan(r.router, r.addr[3], r.addr[0], 5000, forged)
	h.Await("S105: the stranger's frame is counted", func() bool {
		return h.Counter("tunnel", "tunnel-unknown-endpoint") == 1
	})
	r.vxlan(r.third, r.addr[2], r.addr[0], 7000, forged)
	r.vxlan(r.third, r.addr[2], r.addr[0], 5000, cable.Frame(cable.Broadcast(), cable.MAC(66), 11, "forged"))
	h.Await("S105: frames for other segments are counted", func() bool {
		return h.Counter("tunnel", "tunnel-unknown-vni") == 2
	})
	r.vxlan(r.third, r.addr[2], r.addr[0], 5000, cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "allowed"))
	r.guests[0][0].Expect(cable.Frame(cable.Broadcast(), cable.MAC(66), 0, "allowed"), "from a peer")
	r.guests[0][0].Refuse(forged, "S105: a forged frame")
}

// vxlan sends an inner frame as an endpoint would.
func (r *overlayRig) vxlan(ns *netns.NS, from, to string, vni uint32, inner []byte) {
	r.t.Helper()
	inside(r.t, ns, func() error {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(from)}, &net.UDPAddr{IP: net.ParseIP(to), Port: 4789})
		if err != nil {
			return err
		}
		_, err = c.Write(append([]byte{8, 0, 0, 0, byte(vni >> 16), byte(vni >> 8), byte(vni), 0}, inner...))
		return errors.Join(err, c.Close())
	})
}

// nothingLeft: "down" removes the tunnel's device.
func (r *overlayRig) nothingLeft() {
	r.t.Helper()
	if err := r.hosts[0].Heddle("down", "--purge"); err != nil {
		r.t.Fatal(err)
	}
	r.hosts[0].Ended()
	err := r.hosts[0].Do(func() error { _, err := netlink.LinkByName("vx-lab"); return err })
	if !errors.As(err, new(netlink.LinkNotFoundError)) {
		r.t.Errorf("after down, the tunnel's device: %v", err)
	}
}

// TestS84_GuestsTalkByTCPAcrossHosts: a guest's stack talks to another host's, in a VLAN inside the segment, where
// large frames are cut by the kernel; every byte arrives.
func TestS84_GuestsTalkByTCPAcrossHosts(t *testing.T) {
	t.Parallel()
	r := newOverlayRig(t, false, "db")
	for i := range r.hosts {
		r.command(r.spaces[i][1], "ip", "addr", "add", fmt.Sprintf("192.168.9.%d/24", i+1), "dev", "eth0")
	}
	sent := bytes.Repeat([]byte("every byte arrives\n"), 1<<18)
	var heard net.Listener
	inside(t, r.spaces[1][1], func() (err error) { heard, err = net.Listen("tcp", "192.168.9.2:7000"); return err })
	got := make(chan []byte, 1)
	go func() {
		c, err := heard.Accept()
		if err != nil {
			got <- nil
			return
		}
		all, _ := io.ReadAll(c) // what is missing shows in the comparison
		got <- all
	}()
	inside(t, r.spaces[0][1], func() error {
		c, err := net.Dial("tcp", "192.168.9.2:7000")
		if err != nil {
			return err
		}
		_, err = c.Write(sent)
		return errors.Join(err, c.Close())
	})
	if all := <-got; !bytes.Equal(all, sent) {
		t.Errorf("%d of %d bytes arrived, or others", len(all), len(sent))
	}
	if err := heard.Close(); err != nil {
		t.Error(err)
	}
	r.named()
	for i, h := range r.hosts {
		for _, name := range []string{"tunnel-mtu", "device-refused", "tunnel-no-endpoint"} {
			if n := h.Refused("tunnel", name); n != 0 {
				t.Errorf("host %d: %d × %s", i, n, name)
			}
		}
	}
}

// named: the flows at the tunnel and the learned MACs are shown with their VNI and the VLAN inside, and the flows with
// the endpoints between which they cross.
func (r *overlayRig) named() {
	r.t.Helper()
	h := r.hosts[0]
	wanted := plan.SegmentOf(10, false).In(5000)
	cross := api.FlowTunnel{Local: netip.MustParseAddr(r.addr[0]), Remote: netip.MustParseAddr(r.addr[1])}
	for _, direction := range []string{"egress", "ingress"} {
		h.Await("S105: the "+direction+" flow at the tunnel is shown in its segment", func() bool {
			flows, err := h.Flows(r.t.Context(), api.FlowQuery{Sort: "bytes", Limit: 100})
			return err == nil && slices.ContainsFunc(flows.Flows, func(f api.Flow) bool {
				return f.Port == spec.TunnelName && f.Direction == direction &&
					f.VLAN == wanted && f.Protocol == "tcp" && f.Tunnel != nil && *f.Tunnel == cross
			})
		})
	}
	if text := h.must("flows", "list", "--port", spec.TunnelName, "-o", "wide"); !strings.Contains(text,
		r.addr[0]+" ↔ "+r.addr[1]) {
		r.t.Errorf("the wide table lacks the endpoints:\n%s", text)
	}
	if text := h.must("mac", "list"); !strings.Contains(text, "vni:5000/10") || !strings.Contains(text, "vni:5000 ") {
		r.t.Errorf("S105: the MACs are not shown in their segments:\n%s", text)
	}
}
