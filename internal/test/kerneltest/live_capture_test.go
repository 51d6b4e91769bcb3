package kerneltest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// everything is a selection of every frame at every stage.
func everything() dataplane.Selection {
	return dataplane.Selection{Stages: []int{abi.CaptureAdmit, abi.CaptureDeliver, abi.CaptureDrop}, Snap: abi.MaxSnap}
}

// capture starts one that ends with the test.
func (h *host) capture(s dataplane.Selection) *dataplane.Capture {
	h.t.Helper()
	c, err := h.k.Captures().Start(s, func(f func() error) error { return f() })
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			h.t.Error(err)
		}
	})
	return c
}

// taken are the frames in a capture's ring, one line each: stage, port, the sender of a copy, reason, segment, bytes.
func (h *host) taken(c *dataplane.Capture) []string {
	h.t.Helper()
	lines := []string{}
	for {
		f, err := c.Next(time.Now().Add(50 * time.Millisecond))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return lines
		}
		if err != nil {
			h.t.Fatal(err)
		}
		name := func(slot uint16) string {
			id, err := h.k.Captures().Name(slot)
			if err != nil {
				h.t.Fatal(err)
			}
			return id.Name
		}
		line := []string{map[uint8]string{abi.CaptureAdmit: "admit", abi.CaptureDeliver: "deliver",
			abi.CaptureDrop: "drop"}[f.Stage], name(f.Slot)}
		if f.Flags&abi.CaptureCopy != 0 {
			line = append(line, "from "+name(f.Other))
		}
		if f.Flags&abi.CaptureToHost != 0 {
			line = append(line, "to-host")
		}
		if f.Flags&abi.CaptureFromHost != 0 {
			line = append(line, "from-host")
		}
		if f.Reason != 0 {
			line = append(line, abi.Reason(f.Reason).String())
		}
		if int(f.Captured) != len(f.Frame) || f.Length < f.Captured {
			h.t.Errorf("%d bytes of %d captured, %d given", f.Captured, f.Length, len(f.Frame))
		}
		lines = append(lines, strings.Join(line, " ")+fmt.Sprintf(" segment %d: %x", f.Segment&0x1fff, f.Frame))
	}
}

func (h *host) expectTaken(c *dataplane.Capture, want ...string) {
	h.t.Helper()
	got := h.taken(c)
	slices.Sort(got)
	want = append([]string{}, want...)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		h.t.Errorf("captured (-want +got):\n%s", d)
	}
}

func line(format, frame string) string { return fmt.Sprintf("%s: %x", format, wire(frame)) }

func TestCaptureShowsEveryStageOfAFrame(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  portGroups:
  - {name: none}
  - {name: ten, vlan: {access: 10}}
  - {name: trunk, security: {forgedTransmits: accept}, vlan: {trunk: ["10-20"]}}
`, "vm1 ten", "tap2 ten", "vm3 trunk", "vm5 none")
	all := h.capture(everything())
	emit := func(at, frame string, want []outcome, taken ...string) {
		t.Helper()
		h.emit(at, frame, want...)
		h.expectTaken(all, taken...)
	}
	emit("vm1", "tap2 vm1 0800 [1500]", []outcome{to("tap2")},
		line("admit vm1 segment 10", "tap2 vm1 0800 [1500]"), line("deliver tap2 from vm1 segment 10",
			"tap2 vm1 0800 [1500]"))
	emit("vm1", "all vm1 0806", []outcome{to("tap2"), to("vm3 u1", "all vm1 8100 000a 0806")},
		line("admit vm1 segment 10", "all vm1 0806"), line("deliver tap2 from vm1 segment 10", "all vm1 0806"),
		line("deliver vm3 from vm1 segment 10", "all vm1 8100 000a 0806"), line("deliver u1 from vm1 segment 10",
			"all vm1 8100 000a 0806"))
	emit("vm3", "vm1 vm3 8100 600a 0800", []outcome{to("vm1", "vm1 vm3 0800")},
		line("admit vm3 segment 10", "vm1 vm3 8100 600a 0800"), line("deliver vm1 from vm3 segment 10", "vm1 vm3 0800"))
	emit("vm3", "vm1 vm3 8100 000a 8100 00c8 0800", []outcome{to("vm1", "vm1 vm3 8100 00c8 0800")},
		line("admit vm3 segment 10", "vm1 vm3 8100 000a 8100 00c8 0800"), line("deliver vm1 from vm3 segment 10",
			"vm1 vm3 8100 00c8 0800"))
	emit("u1", "all ext1 8100 000a 0806", []outcome{to("vm1 tap2", "all ext1 0806"), to("vm3 host")},
		line("admit u1 segment 10", "all ext1 8100 000a 0806"), line("deliver vm1 from u1 segment 10", "all ext1 0806"),
		line("deliver tap2 from u1 segment 10", "all ext1 0806"), line("deliver vm3 from u1 segment 10",
			"all ext1 8100 000a 0806"),
		line("deliver u1 from u1 to-host segment 10", "all ext1 8100 000a 0806"))
	h.takenDrops(all, emit)
}

// takenDrops sends one frame for each reason that a frame alone can give.
func (h *host) takenDrops(all *dataplane.Capture, emit func(at, frame string, want []outcome, taken ...string)) {
	for _, c := range []struct{ at, frame, reason, segment string }{
		{"vm1", "tap2 vm5 0800", "forged-transmit", "10"},
		{"vm1", "tap2 vm1 8100 000a 0800", "guest-tagged", "0"},
		{"vm3", "vm1 vm3 8100 0019 0800", "vlan-not-allowed", "25"},
		{"vm1", "tap2 01005e000001 0800", "source-group", "10"},
		{"vm1", "tap2 000000000000 0800", "source-zero", "10"},
		{"vm1", "vm1 vm1 0800", "own-destination", "10"},
		{"vm1", "0180c2000000 vm1 0800", "guest-bpdu", "10"},
		{"u1", "ext1 nest1 8100 000a 0800", "unknown-unicast", "10"},
		{"tap2", "vm1 tap2 0800 [1501]", "mtu-exceeded", "10"},
	} {
		emit(c.at, c.frame, []outcome{dropped(c.reason)},
			line("admit "+c.at+" segment "+c.segment, c.frame), line("drop "+c.at+" "+c.reason+" segment "+c.segment,
				c.frame))
	}
	f := h.d.Facts[port("tap2")]
	f.Up = false
	h.d.Facts[port("tap2")] = f
	h.reapply()
	emit("vm1", "tap2 vm1 0800", []outcome{refused("tap2", "receiver-down"), dropped("receiver-down")},
		line("admit vm1 segment 10", "tap2 vm1 0800"),
		line("drop tap2 from vm1 receiver-down segment 10", "tap2 vm1 0800"), line("drop vm1 receiver-down segment 10",
			"tap2 vm1 0800"))
}

func TestCaptureSelectsByPortSegmentStageReasonAndFilter(t *testing.T) {
	h := newHost(t, liveVLANs, "vm1 ten", "tap2 ten", "vm3 trunk", "vm5 none")
	start := func(edit func(*dataplane.Selection)) *dataplane.Capture {
		s := everything()
		edit(&s)
		return h.capture(s)
	}
	byPort := start(func(s *dataplane.Selection) { s.Ports = []plan.PortID{port("vm1")} })
	bySegment := start(func(s *dataplane.Selection) { s.Switch, s.Segments = "s", []dataplane.Segment{{VLAN: 11}, {}} })
	byReason := start(func(s *dataplane.Selection) {
		s.Stages, s.Reasons = []int{abi.CaptureDrop}, []abi.Reason{abi.ReasonGuestTagged}
	})
	// ether[12:2] == 0x8100, as tcpdump -ddd compiles it: the tag is beside the frame in the kernel
	tagged := start(func(s *dataplane.Selection) {
		s.Filter = []abi.FilterInstruction{{Code: 0x28, K: 12}, {Code: 0x15, JumpFalse: 1, K: 0x8100},
			{Code: 0x06, K: 262144}, {Code: 0x06}}
	})
	nothing := start(func(s *dataplane.Selection) { s.Filter = []abi.FilterInstruction{{Code: 0x06}} })
	short := start(func(s *dataplane.Selection) {
		s.Snap, s.Stages, s.Ports = 20, []int{abi.CaptureDeliver}, []plan.PortID{port("vm3")}
	})
	h.emit("vm1", "vm3 vm1 0800 [100]", to("vm3", "vm3 vm1 8100 000a 0800 [100]"))
	h.emit("vm3", "nest1 vm3 8100 000b 0800", to("u1"))
	h.emit("vm1", "tap2 vm1 8100 000a 0800", dropped("guest-tagged"))

	h.expectTaken(byPort, line("admit vm1 segment 10", "vm3 vm1 0800 [100]"),
		line("admit vm1 segment 0", "tap2 vm1 8100 000a 0800"),
		line("drop vm1 guest-tagged segment 0", "tap2 vm1 8100 000a 0800"))
	h.expectTaken(bySegment, line("admit vm3 segment 11", "nest1 vm3 8100 000b 0800"),
		line("deliver u1 from vm3 segment 11", "nest1 vm3 8100 000b 0800"))
	h.expectTaken(byReason, line("drop vm1 guest-tagged segment 0", "tap2 vm1 8100 000a 0800"))
	h.expectTaken(tagged, line("deliver vm3 from vm1 segment 10", "vm3 vm1 8100 000a 0800 [100]"),
		line("admit vm3 segment 11", "nest1 vm3 8100 000b 0800"),
		line("deliver u1 from vm3 segment 11", "nest1 vm3 8100 000b 0800"),
		line("admit vm1 segment 0", "tap2 vm1 8100 000a 0800"),
		line("drop vm1 guest-tagged segment 0", "tap2 vm1 8100 000a 0800"))
	h.expectTaken(nothing)
	h.expectTaken(short, fmt.Sprintf("deliver vm3 from vm1 segment 10: %x", wire("vm3 vm1 8100 000a 0800 [100]")[:20]))
}

func TestCaptureShowsTheHostsPart(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1, vlans: ["0", "10-20"]}]
  portGroups:
  - {name: web}
  - {name: ten, vlan: {access: 10}}
  - {name: shut, blocked: true}
`, "vm1 web", "vm2 ten", "vm5 shut")
	h.hostTraffic(true)
	all := h.capture(everything())
	h.emitHost("vm1 dev1 0800", 0, to("vm1"))
	h.expectTaken(all, line("admit u1 from-host segment 0", "vm1 dev1 0800"),
		line("deliver vm1 from u1 from-host segment 0", "vm1 dev1 0800"))
	h.emitHost("all dev1 q10 0806", 0, to("u1"), to("vm2", "all dev1 0806"))
	h.expectTaken(all, line("admit u1 from-host segment 10", "all dev1 q10 0806"),
		line("deliver vm2 from u1 from-host segment 10", "all dev1 0806"),
		line("deliver u1 from u1 from-host segment 10", "all dev1 q10 0806"))
	h.emitHost("vm5 dev1 0800", 0, refused("vm5", "receiver-blocked"))
	h.expectTaken(all, line("admit u1 from-host segment 0", "vm5 dev1 0800"),
		line("drop vm5 from u1 from-host receiver-blocked segment 0", "vm5 dev1 0800"),
		line("drop u1 from-host receiver-blocked segment 0", "vm5 dev1 0800"))
	h.emit("vm2", "dev1 vm2 0800", to("host"))
	h.expectTaken(all, line("admit vm2 segment 10", "dev1 vm2 0800"), line("deliver u1 from vm2 to-host segment 10",
		"dev1 vm2 q10 0800"))
}
