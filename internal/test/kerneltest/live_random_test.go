package kerneltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"heddle/internal/binding"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/test/difftest"
	"heddle/internal/test/testkit"
)

// The statements that ask for the time look one second back and more. A case is over before that, so that its clock
// stands still for the model.
const shortCase = 900 * time.Millisecond

// TestS94_RandomFramesOnRealDevicesDoWhatTheModelSays plays the differential test's cases where dry runs can't look:
// tags beside the frame, clones, redirects, veths and taps.
func TestS94_RandomFramesOnRealDevicesDoWhatTheModelSays(t *testing.T) {
	testkit.Root(t)
	// A slow machine compares fewer frames of a case, and then takes more cases.
	const least = 200
	frames, cases := 0, 0
	for seed, began := uint64(1), time.Now(); cases < 6 || frames < least && time.Since(began) < patience; seed++ {
		c := difftest.Generate(seed, 160)
		if n := len(c.State.Members); n < 4 || n > 12 {
			continue
		}
		cases++
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { frames += playLive(t, c) })
	}
	if !t.Failed() && frames < least {
		t.Errorf("%d frames compared: the machine was too slow for this to mean anything", frames)
	}
	t.Logf("%d frames in %d cases", frames, cases)
}

// playLive returns how many frames were compared.
func playLive(t *testing.T, c *difftest.Case) (frames int) {
	h := &host{t: t, ns: quietNS(t, "host"), dir: bpffs(t), ends: map[string]*end{}}
	t.Cleanup(h.close)
	for i, m := range c.State.Members {
		device := fmt.Sprint("d", i)
		if m.Number != 0 && i%3 == 2 {
			h.ends[label(m.ID)] = h.plugTap(device)
		} else {
			h.ends[label(m.ID)] = h.plugVeth(device, plan.MAC{2, 0xff, 0, 0, 1, byte(i)},
				plan.MAC{2, 0xff, 0, 0, 2, byte(i)})
		}
		h.jumbo(device, h.ends[label(m.ID)])
	}
	h.open()
	p, f := h.state(&c.State)
	want := model.New(p, f, 0)
	start := time.Now()
	for _, s := range c.Steps {
		switch {
		case s.Change != nil:
			p, f = h.state(s.Change)
			want.SetPlan(p, f, 0)
		case s.Sweep:
			if _, err := h.k.Sweep(); err != nil {
				t.Fatal(err)
			}
			want.Sweep(0)
		case h.canSend(s.At, s.Frame):
			r := want.Frame(s.At, s.Frame, 0)
			got, _ := h.carry(label(s.At), s.Frame)
			if time.Since(start) > shortCase { // the kernel may have gone by another second than the model
				return frames
			}
			if d := cmp.Diff(linesOf(r, s.Frame), got); d != "" {
				t.Fatalf("%s emits %x (-want +got):\n%s", s.At, s.Frame, d)
			}
			frames++
		}
		table := h.table()
		if time.Since(start) > shortCase {
			return frames
		}
		if d := cmp.Diff(modelTable(want), table); d != "" {
			t.Fatalf("learned MACs after %s emits %x (-want +got):\n%s", s.At, s.Frame, d)
		}
	}
	return frames
}

// jumbo lets both ends of a device carry what the generator makes; the MTU the switch goes by is in the case's facts.
func (h *host) jumbo(device string, e *end) {
	h.t.Helper()
	h.in(h.ns, func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(l, 16000)
	})
	if e.tap {
		return
	}
	h.in(e.ns, func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(l, 16000)
	})
}

// state puts a state of the case in force.
func (h *host) state(s *difftest.State) (*plan.Plan, plan.Facts) {
	h.t.Helper()
	p, f, err := s.Resolve()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			// its rates go by milliseconds, which the model's clock does not count here
			port.Policy.StormControl = plan.StormControl{}
		}
	}
	h.d = binding.Desired{Plan: p, Facts: f, Attachments: map[plan.PortID]binding.Attachment{}}
	for id := range f {
		e := h.ends[label(id)]
		h.d.Attachments[id] = binding.Attachment{Ifindex: uint32(e.index), PeerRedirect: !e.tap}
	}
	h.reapply()
	return p, f
}

// canSend leaves out what has no device, and what the kernel discards before any program sees it.
func (h *host) canSend(at plan.PortID, f []byte) bool {
	if _, connected := h.d.Facts[at]; !connected || h.d.Plan.Port(at) == nil && h.d.Plan.Uplink(at) == nil {
		return false
	}
	tagged := len(f) >= 14 && (f[12] == 0x81 && f[13] == 0 || f[12] == 0x88 && f[13] == 0xa8)
	return len(f) >= 14 && (!tagged || len(f) >= 20)
}

// linesOf writes the model's result like what carry gives. Of the host's stack the counters alone tell, so that its
// copies are written with the bytes that were sent; the dry runs compare the bytes it gets.
func linesOf(r model.Result, sent []byte) []string {
	lines := []string{disposition(r.Reason.String(), r.Delivered)}
	for _, c := range r.Copies {
		if c.HostStack {
			lines = append(lines, fmt.Sprintf("host gets %x", sent))
		} else {
			lines = append(lines, fmt.Sprintf("%s gets %x", label(c.To), c.Frame))
		}
	}
	for _, x := range r.Refused {
		if x.Port != (plan.PortID{}) { // no-uplink is counted at no receiver
			lines = append(lines, fmt.Sprintf("%s refused: %s", label(x.Port), x.Reason))
		}
	}
	slices.Sort(lines)
	return lines
}

func (h *host) table() []string {
	h.t.Helper()
	macs, err := h.k.MACs()
	if err != nil {
		h.t.Fatal(err)
	}
	lines := []string{}
	for _, m := range macs {
		lines = append(lines, fmt.Sprint(m.Switch, m.VLAN, m.AD, m.MAC, m.Port))
	}
	slices.Sort(lines)
	return lines
}

func modelTable(want *model.Host) []string {
	lines := []string{}
	for _, m := range want.MACs() {
		lines = append(lines, fmt.Sprint(m.Switch, m.VLAN, m.AD, m.MAC, m.Port))
	}
	slices.Sort(lines)
	return lines
}

// label names a port or uplink; on switch "s" by its name alone.
func label(id plan.PortID) string { return strings.TrimPrefix(id.String(), "s/") }
