package trace

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/diagnose"
	"heddle/internal/plan"
)

// silenced makes vm2 wait for its guest, because of that.
func silenced(left bool, why string) func(*Host) {
	return func(h *Host) {
		f := h.Facts[id("vm2")]
		f.Wait, f.Left = 1, left
		h.Facts[id("vm2")] = f
		h.Silent = map[plan.PortID]Silence{id("vm2"): {Why: why, Since: time.Date(2026, 11, 23, 12, 0, 1, 0,
			time.Local)}}
	}
}

func TestS99_TraceSaysWhoIsActiveAndWhy(t *testing.T) {
	text := config("uplinks: [{name: u1, device: p1}]", "{name: web}", "vm1 web", "vm2 web")
	for _, c := range []struct {
		left, arrived    bool
		host, from, want string
	}{
		{true, false, "", "u1", "port vm2 is silent since 12:00:01: its QEMU has stopped it"},
		{true, false, "h2", "u1", "port vm2 is silent since 12:00:01: its QEMU has stopped it; it goes to host h2, " +
			"which has not said yet"},
		{true, true, "h2", "u1", "port vm2 is silent since 12:00:01: its QEMU has stopped it; it runs on host h2"},
		{false, false, "h1", "vm1", "port vm2 is silent since 12:00:01: its QEMU has stopped it; it comes from host " +
			"h1"},
	} {
		h := host(t, text)
		silenced(c.left, "its QEMU has stopped it")(h)
		s := h.Silent[id("vm2")]
		s.Host, s.Arrived = c.host, c.arrived
		h.Silent[id("vm2")] = s
		vm2, src := mac(2), mac(9)
		q := diagnose.Request{From: c.from, To: "vm2", Frame: &diagnose.Fields{DstMAC: &vm2, SrcMAC: &src}}
		if c.from == "vm1" {
			q.Frame.SrcMAC = nil
		}
		r := run(t, h, q)
		if !strings.Contains(r.Answer.Text, c.want) || r.Answer.Verdict != diagnose.No {
			t.Errorf("left %v: %q, want %q", c.left, r.Answer.Text, c.want)
		}
		h.Awake = map[plan.PortID]uint32{id("vm2"): 1} // its frame has ended the wait
		if r := run(t, h, q); r.Answer.Verdict != diagnose.Yes {
			t.Errorf("when its guest has sent: %q", r.Answer.Text)
		}
	}
}
