package sim

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"heddle/internal/lab/scenario"
	"heddle/internal/plan"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func TestEventsHappenByTimeThenInTheOrderPlanned(t *testing.T) {
	l := &loop{limit: 100}
	var got []string
	say := func(s string) func() { return func() { got = append(got, s+"@"+l.now.String()) } }
	l.after(2*time.Second, say("c"))
	l.after(time.Second, func() {
		say("a")()
		l.after(time.Second, say("d")) // planned later than c, for the same instant
		l.after(0, say("b"))
	})
	l.after(5*time.Second, say("late"))
	if err := l.run(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	want := []string{"a@1s", "b@1s", "c@2s", "d@2s"}
	if !slices.Equal(got, want) || l.now != 2*time.Second || len(l.pending) != 1 {
		t.Errorf("happened %v by %v with %d pending, want %v", got, l.now, len(l.pending), want)
	}
}

// station notes what comes in.
type station struct{ got []string }

func (s *station) receive(_ *device, frame []byte) { s.got = append(s.got, string(frame)) }

// bridged is a bridge with n stations.
func bridged(n int) (*world, []*device, []*station) {
	w := &world{loop: &loop{limit: 1000}, byEnd: map[scenario.End]*device{}}
	b := newBridge(w)
	var devices []*device
	var stations []*station
	for i := range n {
		name := string(rune('a' + i))
		c := w.lay(w.newDevice("switch", name), w.newDevice(name, "eth0"), cableLatency, 1500)
		b.plug(c.a)
		s := &station{}
		c.a.node, c.b.node = b, s
		devices, stations = append(devices, c.b), append(stations, s)
	}
	return w, devices, stations
}

func TestBridgeLearnsFloodsMovesAndForgets(t *testing.T) {
	macA, macB := plan.MAC{2, 0, 0, 0, 0, 0xa}, plan.MAC{2, 0, 0, 0, 0, 0xb}
	stp, pause := plan.MAC{0x01, 0x80, 0xc2}, plan.MAC{0x01, 0x80, 0xc2, 0, 0, 1}
	w, devices, stations := bridged(3)
	for i, step := range []struct {
		from     int
		dst, src plan.MAC
		wait     time.Duration
		to       []int
	}{
		{0, macB, macA, 0, []int{1, 2}},                // unknown: to all others
		{1, macA, macB, 0, []int{0}},                   // A was learned
		{0, macB, macA, 0, []int{1}},                   // and so was B
		{1, macB, macA, 0, nil},                        // A is now where B is: frames for B come from B's own port
		{2, macA, macB, 0, []int{1}},                   // B moves too
		{0, broadcast, plan.MAC{2, 1}, 0, []int{1, 2}}, // groups to all others
		{0, stp, plan.MAC{2, 1}, 0, []int{1, 2}},
		{0, pause, plan.MAC{2, 1}, 0, nil},                // for the bridge itself
		{0, macA, broadcast, 0, []int{1}},                 // a group source is forwarded and not learned
		{0, macA, plan.MAC{2, 1}, bridgeAgeing, []int{1}}, // just known
		{0, macA, plan.MAC{2, 1}, 1, []int{1, 2}},         // forgotten
		{1, broadcast, plan.MAC{}, 0, []int{0, 2}},        // a zero source is not learned
		{0, plan.MAC{}, plan.MAC{2, 1}, 0, []int{1, 2}},
	} {
		if err := w.loop.run(step.wait); err != nil {
			t.Fatal(err)
		}
		at := w.loop.now
		w.send(devices[step.from], ethernet(step.dst, step.src, 0x88b5, []byte("hello")))
		for len(w.loop.pending) > 0 {
			if err := w.loop.run(w.loop.pending[0].at - w.loop.now); err != nil {
				t.Fatal(err)
			}
		}
		w.loop.now = at // hand-over takes no time here, so that ageing can be tested to the instant
		var to []int
		for k, s := range stations {
			if len(s.got) > 0 {
				to = append(to, k)
			}
			if len(s.got) > 1 {
				t.Errorf("step %d: station %d got %d copies", i, k, len(s.got))
			}
			s.got = nil
		}
		if !slices.Equal(to, step.to) {
			t.Errorf("step %d: reached %v, want %v", i, to, step.to)
		}
	}
	w.send(devices[0], []byte{1, 2, 3})
	if err := w.loop.run(time.Second); err != nil || len(stations[1].got) > 0 {
		t.Errorf("a runt was forwarded (%v)", err)
	}
}

// Messages are read by an implementation that is not ours, checksums included.
func TestPacketsAreWellFormed(t *testing.T) {
	src, dst := plan.MAC{2, 0, 0, 0, 0, 1}, plan.MAC{2, 0, 0, 0, 0, 2}
	e := echo{id: 7, seq: 513, data: []byte("odd")}
	p := ipv4{src: addr("192.0.2.1"), dst: addr("192.0.2.2"), ttl: 9, proto: protoICMP, payload: e.bytes()}
	f := gopacket.NewPacket(ethernet(dst, src, typeIPv4, p.bytes()), layers.LayerTypeEthernet, gopacket.Default)
	if f.ErrorLayer() != nil {
		t.Fatal(f.ErrorLayer().Error())
	}
	ip := f.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
	icmp := f.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
	if ip.SrcIP.String() != "192.0.2.1" || ip.DstIP.String() != "192.0.2.2" || ip.TTL != 9 || int(ip.Length) != 31 {
		t.Errorf("IPv4: %+v", ip)
	}
	if icmp.TypeCode.Type() != layers.ICMPv4TypeEchoRequest || icmp.Id != 7 || icmp.Seq != 513 ||
		string(icmp.Payload) != "odd" {
		t.Errorf("ICMP: %+v", icmp)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializePacket(b, gopacket.SerializeOptions{ComputeChecksums: true}, f); err != nil {
		t.Fatal(err)
	}
	ours := ethernet(dst, src, typeIPv4, p.bytes())
	if diff := cmp.Diff(ours, b.Bytes()[:len(ours)]); diff != "" { // it pads to 60 bytes
		t.Errorf("the other implementation computes other checksums: %s", diff)
	}

	a := arp{op: arpRequest, sender: src, senderIP: addr("192.0.2.1"), targetIP: addr("192.0.2.2")}
	q := gopacket.NewPacket(ethernet(broadcast, src, typeARP, a.bytes()), layers.LayerTypeEthernet, gopacket.Default)
	if l, ok := q.Layer(layers.LayerTypeARP).(*layers.ARP); !ok || l.Operation != 1 || l.ProtAddressSize != 4 ||
		!bytes.Equal(l.DstProtAddress, []byte{192, 0, 2, 2}) || !bytes.Equal(l.SourceHwAddress, src[:]) {
		t.Errorf("ARP: %v", q)
	}
}

func TestParsersGiveBackWhatWasWrittenAndRefuseTheRest(t *testing.T) {
	a := arp{op: arpReply, sender: plan.MAC{2, 1}, target: plan.MAC{2, 2}, senderIP: addr("192.0.2.1"),
		targetIP: addr("192.0.2.2")}
	if got, ok := parseARP(a.bytes()); !ok || got != a {
		t.Errorf("parseARP = %+v, %t, want %+v", got, ok, a)
	}
	e := echo{reply: true, id: 1, seq: 2, data: []byte{3}}
	if got, ok := parseEcho(e.bytes()); !ok || !got.reply || got.id != 1 || got.seq != 2 ||
		!bytes.Equal(got.data, e.data) {
		t.Errorf("parseEcho = %+v, %t", got, ok)
	}
	p := ipv4{src: addr("192.0.2.1"), dst: addr("192.0.2.2"), ttl: 1, proto: protoICMP, payload: e.bytes()}
	if got, ok := parseIPv4(append(p.bytes(), "trailer"...)); !ok || got.dst != p.dst ||
		!bytes.Equal(got.payload, p.payload) {
		t.Errorf("parseIPv4 = %+v, %t", got, ok)
	}
	for n := range p.bytes() {
		if _, ok := parseIPv4(p.bytes()[:n]); ok {
			t.Errorf("an IPv4 packet cut to %d bytes is taken", n)
		}
		broken := p.bytes()
		broken[n] ^= 0x10
		got, ok := parseIPv4(broken)
		if _, whole := parseEcho(got.payload); ok && whole {
			t.Errorf("a flipped bit in byte %d goes unseen", n)
		}
	}
	for n := range arpLength {
		if _, ok := parseARP(a.bytes()[:n]); ok {
			t.Errorf("an ARP message cut to %d bytes is taken", n)
		}
	}
}

// wired is a stack with one interface; the test has its far end.
func wired(t *testing.T) (*world, *stack, *device, *station) {
	t.Helper()
	w := &world{loop: &loop{limit: 1000}, byEnd: map[scenario.End]*device{}, stacks: map[string]*stack{}}
	c := w.lay(w.newDevice("guest", "eth0"), w.newDevice("test", "eth0"), adapterLatency, 1500)
	c.a.mac, c.b.mac = plan.MAC{2, 0, 0, 0, 0, 1}, plan.MAC{2, 0, 0, 0, 0, 2}
	s, far := w.stack("guest"), &station{}
	s.plug(c.a, []netip.Prefix{netip.MustParsePrefix("192.0.2.1/24")})
	c.a.node, c.b.node = s, far
	return w, s, c.b, far
}

func TestGuestAnswersForItselfAlone(t *testing.T) {
	w, s, d, far := wired(t)
	mine, other := s.interfaces[0].mac, plan.MAC{2, 9}
	ask := func(target string) []byte {
		return arp{op: arpRequest, sender: d.mac, senderIP: addr("192.0.2.2"), targetIP: addr(target)}.bytes()
	}
	request := func(to string) []byte {
		p := ipv4{src: addr("192.0.2.2"), dst: addr(to), ttl: 5, proto: protoICMP, payload: echo{id: 1}.bytes()}
		return p.bytes()
	}
	for name, c := range map[string]struct {
		frame   []byte
		answers int
	}{
		"ARP":               {ethernet(broadcast, d.mac, typeARP, ask("192.0.2.1")), 1},
		"ARP for another":   {ethernet(broadcast, d.mac, typeARP, ask("192.0.2.3")), 0},
		"ping":              {ethernet(mine, d.mac, typeIPv4, request("192.0.2.1")), 1},
		"frame of another":  {ethernet(other, d.mac, typeIPv4, request("192.0.2.1")), 0},
		"packet of another": {ethernet(mine, d.mac, typeIPv4, request("192.0.2.3")), 0},
		"tagged":            {ethernet(mine, d.mac, 0x8100, append([]byte{0, 5, 8, 0}, request("192.0.2.1")...)), 0},
		"runt":              {[]byte{1, 2, 3}, 0},
		"reply never asked": {ethernet(mine, d.mac, typeIPv4, ipv4{src: addr("192.0.2.2"), dst: addr("192.0.2.1"),
			ttl: 5, proto: protoICMP, payload: echo{reply: true}.bytes()}.bytes()), 0},
		"another IP protocol": {ethernet(mine, d.mac, typeIPv4, ipv4{src: addr("192.0.2.2"), dst: addr("192.0.2.1"),
			ttl: 5, proto: 17}.bytes()), 0},
	} {
		t.Run(name, func(t *testing.T) {
			// The far end is resolved, so that no ARP request delays an answer.
			s.interfaces[0].neighbours = map[netip.Addr]*neighbour{addr("192.0.2.2"): {mac: d.mac}}
			far.got = nil
			w.send(d, c.frame)
			if err := w.loop.run(time.Second); err != nil || len(far.got) != c.answers {
				t.Errorf("%s: %d answers (%v), want %d", name, len(far.got), err, c.answers)
			}
		})
	}
}

func TestNeighbourIsAskedForOnceASecondAndThenServed(t *testing.T) {
	w, s, d, far := wired(t)
	send := func(n int) {
		for range n {
			if !s.output(ipv4{src: addr("192.0.2.1"), dst: addr("192.0.2.2"), ttl: 5, proto: protoICMP,
				payload: echo{}.bytes()}) {
				t.Fatal("no route to a neighbour")
			}
		}
		if err := w.loop.run(arpPatience); err != nil {
			t.Fatal(err)
		}
	}
	send(2)
	if len(far.got) != 1 {
		t.Fatalf("%d frames for two packets to an unknown neighbour, want one question", len(far.got))
	}
	send(maxWaiting)
	if len(far.got) != 2 {
		t.Errorf("%d frames after a second without answer, want a second question", len(far.got))
	}
	far.got = nil
	answer := arp{op: arpReply, sender: d.mac, senderIP: addr("192.0.2.2"), target: s.interfaces[0].mac,
		targetIP: addr("192.0.2.1")}
	w.send(d, ethernet(s.interfaces[0].mac, d.mac, typeARP, answer.bytes()))
	send(0)
	if len(far.got) != maxWaiting {
		t.Errorf("%d packets were waiting, want %d", len(far.got), maxWaiting)
	}
	far.got = nil
	if send(1); len(far.got) != 1 {
		t.Errorf("%d frames to a known neighbour, want 1", len(far.got))
	}
	if s.output(ipv4{dst: addr("198.51.100.1")}) {
		t.Error("a packet without a route was sent")
	}
}

func TestRouterForwardsItsOwnFramesAndLowersTheTTL(t *testing.T) {
	w, s, d, _ := wired(t)
	out := w.lay(w.newDevice("guest", "eth1"), w.newDevice("far", "eth0"), adapterLatency, 1500)
	far := &station{}
	out.b.node = far
	s.plug(out.a, []netip.Prefix{netip.MustParsePrefix("198.51.100.254/24")})
	s.interfaces[1].neighbours[addr("198.51.100.1")] = &neighbour{mac: plan.MAC{2, 7}}
	s.forwards = true
	for _, c := range []struct {
		dst plan.MAC
		ttl uint8
		out int
	}{{s.interfaces[0].mac, 2, 1}, {s.interfaces[0].mac, 1, 0}, {broadcast, 9, 0}} {
		far.got = nil
		p := ipv4{src: addr("192.0.2.2"), dst: addr("198.51.100.1"), ttl: c.ttl, proto: protoICMP,
			payload: echo{}.bytes()}
		w.send(d, ethernet(c.dst, d.mac, typeIPv4, p.bytes()))
		if err := w.loop.run(time.Second); err != nil || len(far.got) != c.out {
			t.Errorf("frame for %s with TTL %d: %d forwarded (%v), want %d", c.dst, c.ttl, len(far.got), err, c.out)
			continue
		}
		if c.out == 1 {
			if got, ok := parseIPv4([]byte(far.got[0][etherHeader:])); !ok || got.ttl != c.ttl-1 {
				t.Errorf("forwarded %+v, %t, want TTL %d", got, ok, c.ttl-1)
			}
		}
	}
}
