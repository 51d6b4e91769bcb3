package fleet

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// seenFrame is a captured frame with the names of its ports; its data are its own.
type seenFrame struct {
	api.CaptureFrame
	port, from string
}

// captureOf is a capture under way on a host.
type captureOf struct {
	h      *host
	id     uint64
	ended  chan error
	mu     sync.Mutex
	seen   []seenFrame
	counts api.CaptureCounts
}

// captures begins a capture, and returns when it has begun.
func (h *host) captures(q api.Capture) *captureOf {
	h.T.Helper()
	c := &captureOf{h: h, ended: make(chan error, 1)}
	names, began := map[uint16]string{}, make(chan uint64, 1)
	go func() {
		c.ended <- h.Capture(context.Background(), q, func(e api.CaptureEvent) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case e.Started != nil:
				began <- e.Started.ID
			case e.Port != nil:
				names[e.Port.Number] = e.Port.Name
			case e.Counts != nil:
				c.counts = *e.Counts
			case e.Frame != nil:
				f := seenFrame{*e.Frame, names[e.Frame.Port], names[e.Frame.Other]}
				f.Data = bytes.Clone(f.Data)
				c.seen = append(c.seen, f)
			}
			return nil
		})
	}()
	select {
	case c.id = <-began:
	case err := <-c.ended:
		h.T.Fatalf("the capture did not begin: %v", err)
	}
	return c
}

// end ends the capture, and returns everything that it has captured.
func (c *captureOf) end() []seenFrame {
	c.h.T.Helper()
	if err := c.h.EndCapture(c.h.T.Context(), api.EndCapture{ID: c.id}); err != nil {
		c.h.T.Error(err)
	}
	if err := <-c.ended; err != nil {
		c.h.T.Error(err)
	}
	if c.counts.Lost != 0 || c.counts.Ended != api.CaptureAsked {
		c.h.T.Errorf("at the end of the capture: %+v", c.counts)
	}
	return c.seen
}

// story is what a capture says of a frame, without its data.
func (f seenFrame) story() string {
	words := []string{f.port, string(f.Stage)}
	if f.Reason != "" {
		words = append(words, f.Reason)
	}
	if f.Copy {
		words = append(words, "of "+f.from)
	}
	if f.Made {
		words = append(words, "made")
	}
	if f.FromHost {
		words = append(words, "from the host")
	}
	for _, a := range []netip.Addr{f.Remote, f.Local} {
		if a.IsValid() {
			words = append(words, a.String())
		}
	}
	return strings.Join(append(words, f.Segment.String()), " ")
}

// of returns the stories of the frames with these bytes, sorted; all are whole.
func (c *captureOf) of(frame []byte) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.seen {
		if bytes.Equal(f.Data, frame) && int(f.Length) == len(frame) {
			list = append(list, f.story())
		}
	}
	slices.Sort(list)
	return list
}

// tells waits until exactly this is said of the frame.
func (c *captureOf) tells(why string, frame []byte, want ...string) {
	c.h.T.Helper()
	slices.Sort(want)
	c.h.Await("a capture shows "+why, func() bool { return len(c.of(frame)) >= len(want) })
	if got := c.of(frame); !slices.Equal(got, want) {
		c.h.T.Errorf("%s:\n%s\nwant\n%s", why, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestS84_CapturesShowFramesInTheTunnel: of a frame that leaves, each copy with its ends of the tunnel; what arrives
// with the end it comes from; what the tunnel drops, for its reason; what it answers itself. Each frame whole, as it is
// inside its VNI.
func TestS84_CapturesShowFramesInTheTunnel(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("IPv6=%v", v6), func(t *testing.T) {
			if v6 {
				testkit.Long(t, "the same over IPv4 stays")
			}
			t.Parallel()
			r := newOverlayRig(t, v6, "db")
			c := r.hosts[0].captures(api.Capture{Ports: []string{"tunnel"}})
			r.copiesShown(c)
			r.arrivalsShown(c)
			r.answersShown(c)
			r.errorsShown(c, v6)
			c.end()
			r.selected()
		})
	}
}

// copiesShown: one for each endpoint; of a guest in a VLAN inside, with that tag.
func (r *overlayRig) copiesShown(c *captureOf) {
	r.t.Helper()
	all := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "to all")
	r.guests[0][0].Send(all)
	r.kernel.Expect(all, "to all")
	c.tells("each copy", all,
		fmt.Sprintf("tunnel deliver of one %s %s vni:5000", r.addr[1], r.addr[0]),
		fmt.Sprintf("tunnel deliver of one %s %s vni:5000", r.addr[2], r.addr[0]))
	r.guests[0][1].Send(cable.Frame(cable.Broadcast(), cable.MAC(2), 0, "in VLAN 10"))
	c.tells("the copy in a VLAN inside", cable.Frame(cable.Broadcast(), cable.MAC(2), 10, "in VLAN 10"),
		fmt.Sprintf("tunnel deliver of two %s %s vni:5000/10", r.addr[1], r.addr[0]),
		fmt.Sprintf("tunnel deliver of two %s %s vni:5000/10", r.addr[2], r.addr[0]))
}

// arrivalsShown: frames that enter, and those that are refused.
func (r *overlayRig) arrivalsShown(c *captureOf) {
	r.t.Helper()
	own := r.addr[0]
	for _, a := range []struct {
		why, from, segment, reason string
		vni                        uint32
		vlan                       uint16
	}{
		{"what arrives", r.addr[2], "vni:5000", "", 5000, 0},
		{"what arrives in a VLAN inside", r.addr[2], "vni:5000/10", "", 5000, 10},
		{"a stranger's", r.addr[3], "vni:5000", "tunnel-unknown-endpoint", 5000, 0},
		{"another VNI", r.addr[2], "vni:7000", "tunnel-unknown-vni", 7000, 0},
		{"another VLAN inside", r.addr[2], "vni:5000/11", "tunnel-unknown-vni", 5000, 11},
	} {
		f := cable.Frame(cable.Broadcast(), cable.MAC(66), a.vlan, a.why)
		from := r.third
		if a.from == r.addr[3] {
			from = r.router
		}
		r.vxlan(from, a.from, own, a.vni, f)
		want := []string{fmt.Sprintf("tunnel admit %s %s %s", a.from, own, a.segment)}
		if a.reason != "" {
			want = append(want, fmt.Sprintf("tunnel drop %s %s %s %s", a.reason, a.from, own, a.segment))
		}
		c.tells(a.why, f, want...)
	}
}

// answersShown: the question that the host answers itself, and the answer.
func (r *overlayRig) answersShown(c *captureOf) {
	r.t.Helper()
	n := &neighbourRig{r, false}
	asker, owner := n.at(1), n.at(11)
	n.everywhere(r.guests[1][0], n.announces(owner, owner.ip), "an announcement")
	n.introduces(0)
	ask, answer := n.asks(asker, false, owner.ip), n.answers(asker, owner.mac, owner.ip)
	r.guests[0][0].Send(ask)
	r.guests[0][0].Expect(answer, "the answer")
	c.tells("a question that the host answers", ask, "tunnel drop neighbour-answered of one vni:5000")
	c.tells("the host's answer", answer, "tunnel admit made vni:5000")
}

// errorsShown: a packet that does not fit, and the ICMP error that its sender gets.
func (r *overlayRig) errorsShown(c *captureOf, v6 bool) {
	r.t.Helper()
	r.command(r.hosts[0].NS, "ip", "link", "set", "u0", "mtu", "1500")
	room := 1450
	if v6 {
		room = 1430
	}
	r.smallUnderlay(r.hosts[0], room-4) // some guests have a tag inside
	long := cable.Frame(cable.MAC(11), cable.MAC(1), 0, "")[:12]
	long = append(long, 8, 0, 0x45, 0, byte((room+1)>>8), byte(room+1), 0, 1, 0x40, 0, 64, 17, 0, 0,
		192, 168, 9, 1, 192, 168, 9, 11)
	long = append(long, make([]byte, 14+room+1-len(long))...)
	errorAbout := func(id byte) func([]byte) bool { // the packet in the error has that identification
		return func(f []byte) bool {
			return len(f) > 47 && f[12] == 8 && f[13] == 0 && f[23] == 1 && f[47] == id
		}
	}
	early := bytes.Clone(long)
	early[19] = 2
	r.hosts[0].Await("the tunnel refuses what does not fit", func() bool {
		r.guests[0][0].Send(early)
		return r.guests[0][0].Hears(errorAbout(2))
	})
	r.guests[0][0].Send(long)
	got := r.guests[0][0].Gather("an ICMP error", func(all [][]byte) bool { return errorAbout(1)(all[len(all)-1]) })
	c.tells("a packet that does not fit", long, fmt.Sprintf("tunnel drop tunnel-mtu of one %s vni:5000", r.addr[1]))
	c.tells("the error", got[len(got)-1], "tunnel admit made vni:5000")
}

// selected: captures of a VNI, and of a VLAN inside one.
func (r *overlayRig) selected() {
	r.t.Helper()
	h := r.hosts[0]
	every := h.captures(api.Capture{Segments: []string{"vni:5000"}})
	tagged := h.captures(api.Capture{Segments: []string{"vni:5000/10"}, Ports: []string{"tunnel"}})
	plain := h.captures(api.Capture{Segments: []string{"vni:5000/untagged"}, Stages: []string{"deliver"}})
	one := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "selected, untagged")
	two := cable.Frame(cable.Broadcast(), cable.MAC(2), 0, "selected, in VLAN 10")
	inside := cable.Frame(cable.Broadcast(), cable.MAC(2), 10, "selected, in VLAN 10")
	r.guests[0][0].Send(one)
	r.guests[0][1].Send(two)
	copies := func(port, segment string) (list []string) {
		for _, a := range r.addr[1:3] {
			list = append(list, fmt.Sprintf("tunnel deliver of %s %s %s %s", port, a, r.addr[0], segment))
		}
		return list
	}
	tagged.tells("a VLAN inside", inside, copies("two", "vni:5000/10")...)
	plain.tells("untagged in the VNI", one, copies("one", "vni:5000")...)
	every.tells("the VNI at the port", one, append(copies("one", "vni:5000"), "one admit vni:5000")...)
	every.tells("the VNI in a VLAN at the tunnel", inside, copies("two", "vni:5000/10")...)
	every.tells("the VNI in a VLAN at the port", two, "two admit vni:5000/10")
	every.end()
	for _, f := range append(tagged.end(), plain.end()...) {
		if want := plan.SegmentOf(10, false).In(5000); f.Segment != want && f.Segment.VNI != 5000 {
			r.t.Errorf("captured although not selected: %s", f.story())
		}
	}
	for _, c := range []struct{ word, want string }{
		{"vni:7000", "switch lab has no port in VNI 7000; it has some in 5000"},
		{"vni:0", "it is a number from 1 to 16777214"}, {"vni:16777215", "it is a number from 1 to 16777214"},
		{"vni:5000/ad:10", "it is a number from 1 to 16777214"}, {"vni:5000/4095", "it is a number"},
		{"vni:", "it is a number"}, {"vni:5000/vni:1", "it is a number"},
	} {
		err := h.Capture(r.t.Context(), api.Capture{Segments: []string{c.word}},
			func(api.CaptureEvent) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			r.t.Errorf("%s: %v, want %q", c.word, err, c.want)
		}
	}
}

// TestS84_CapturesAtATunnelLoseNoFrame: captures begin and end under numbered traffic through the tunnel, and die with
// the agent; each frame arrives.
func TestS84_CapturesAtATunnelLoseNoFrame(t *testing.T) {
	testkit.Long(t, "streams while captures begin, end and die; TestS84_CapturesShowFramesInTheTunnel has captures "+
		"at a tunnel")
	t.Parallel()
	r := newOverlayRig(t, false, "db")
	h := r.hosts[0]
	out := cable.StartEvery(t, r.guests[0][0], r.guests[1][0], cable.MAC(1), cable.MAC(11),
		10*time.Millisecond)
	back := cable.StartEvery(t, r.guests[1][1], r.guests[0][1], cable.MAC(12), cable.MAC(2),
		10*time.Millisecond)
	for range 5 {
		c := h.captures(api.Capture{Ports: []string{"tunnel"}})
		h.Await("the capture sees both ways", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			has := func(stage api.CaptureStage) bool {
				return slices.ContainsFunc(c.seen, func(f seenFrame) bool { return f.Stage == stage })
			}
			return has(api.StageAdmit) && has(api.StageDeliver)
		})
		c.end()
	}
	c := h.captures(api.Capture{Ports: []string{"tunnel"}})
	h.End(syscall.SIGKILL)
	if err := <-c.ended; err == nil {
		t.Error("the agent died, and its capture says nothing")
	}
	h.StartWith(h.Launch)
	again := h.captures(api.Capture{Ports: []string{"tunnel"}})
	h.Await("the next agent captures", func() bool {
		again.mu.Lock()
		defer again.mu.Unlock()
		return len(again.seen) > 0
	})
	again.end()
	for name, s := range map[string]*cable.Stream{"out": out, "back": back} {
		if sent, came := s.Stop(); sent != came || sent == 0 {
			t.Errorf("%s: %d of %d numbered frames came", name, came, sent)
		}
	}
}
