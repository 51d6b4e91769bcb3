package host

import (
	"context"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
	"heddle/internal/test/testkit/cable"
)

// A loop of the physical network is named at the uplink while it lasts: frames of guests come back again and again.
func TestS169_AStormOutsideIsAProblem(t *testing.T) {
	h := newHost(t)
	wire := h.wired(1)
	h.start("--config", h.file("heddle.yaml", `
switches:
- name: lab
  uplinks: [{name: uplink1, device: up1}]
  portGroups: [{name: web}]
`))
	h.await("the uplink is up", func() bool { return h.uplink("uplink1").State == api.Up })
	end := cable.Open(t, wire, "far1")
	frame := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0x77, 1, 0x88, 0xb6}, make([]byte, 46)...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // the loop: some thousand frames a second, until it is opened
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			for range 500 {
				end.Send(frame)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	defer func() { cancel(); <-ended }()
	h.await("the uplink says that there is a storm", func() bool {
		return h.uplink("uplink1").ReasonCode == problem.StormOutside
	})
	u := h.uplink("uplink1")
	if u.State != api.Up || !strings.HasPrefix(u.Reason, "the physical network has a storm: ") {
		t.Errorf("the uplink is %s: %q", u.State, u.Reason)
	}
	out, _, status := h.heddle("status")
	if status != 1 || strings.Contains(out, "all is well") || !strings.Contains(out, "storm") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if out, _, status = h.heddle("advise"); status != 1 || !strings.Contains(out, "storm") {
		t.Errorf("advise %d:\n%s", status, out)
	}
	cancel()
	h.await("the storm is over", func() bool { return h.uplink("uplink1").Reason == "" })
	out = h.must("events", "--last", "-1", "--no-follow")
	for _, want := range []string{"the physical network has a storm", "the storm of the physical network is over"} {
		if !strings.Contains(out, want) {
			t.Errorf("no event %q:\n%s", want, out)
		}
	}
}
