package host

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/observe/event"
)

// TestS178_ACutOffSwitchIsToldOfAtOnceButAtAStart: with a start, the event comes 2 s after it at the earliest; a switch
// that loses its uplink later is told of in the same moment as the uplink.
func TestS178_ACutOffSwitchIsToldOfAtOnceButAtAStart(t *testing.T) {
	h := newHost(t)
	h.ip("link add eno1 type veth peer name wire")
	h.ip("link set wire up")
	config := h.file("heddle.yaml", "switches: [{name: lan, uplinks: [{name: u1, device: eno1}], portGroups: "+
		"[{name: office}]}]\n")
	cutOff := func() (list []event.Event) {
		for _, e := range h.told() {
			if e.Kind == event.Isolated && e.To == "down" {
				list = append(list, e)
			}
		}
		return list
	}
	begun := time.Now()
	h.start("--config", config)
	h.await("the uplink is up", func() bool { return strings.Contains(h.must("uplink", "list"), " up ") })
	atStart := len(cutOff())
	for _, e := range cutOff() { // on a machine so busy that the start takes as long
		if e.Time.Sub(begun) < 2*time.Second {
			t.Errorf("told %v after the start: %+v", e.Time.Sub(begun), e)
		}
	}
	down := time.Now()
	h.ip("link set wire down")
	h.await("a switch that loses its uplink is told of", func() bool { return len(cutOff()) == atStart+1 })
	if e := cutOff()[atStart]; e.Time.Before(down) || !strings.Contains(e.Text, "u1 (eno1)") {
		t.Errorf("%+v", e)
	}
	h.kill(syscall.SIGKILL)
	begun = time.Now()
	h.start()
	h.await("a switch that stays without an uplink is told of", func() bool { return len(cutOff()) == 1 })
	if e := cutOff()[0]; e.Time.Sub(begun) < 2*time.Second {
		t.Errorf("told %v after the start: %+v", e.Time.Sub(begun), e)
	}
	if !slices.ContainsFunc(strings.Split(h.log.String(), "\n"), func(line string) bool {
		return strings.Contains(line, "cut off from the physical network") && strings.Contains(line, "lan")
	}) {
		t.Errorf("the log does not say it:\n%s", h.log)
	}
}
