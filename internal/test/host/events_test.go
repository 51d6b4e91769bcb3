package host

import (
	"encoding/json"
	"net"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/uplinks/wire"
)

const learningGroups = `
switches:
  - name: lab
    portGroups:
      - name: nested
        vlan: {access: 100}
        security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 1}}
      - {name: plain, vlan: {access: 100}}
ports:
  - {name: a, switch: lab, portGroup: nested, device: porta, mac: "02:00:00:00:01:01"}
  - {name: b, switch: lab, portGroup: nested, device: portb, mac: "02:00:00:00:01:02"}
  - {name: c, switch: lab, portGroup: plain, device: portc, mac: "02:00:00:00:01:03"}
`

// sendFrom has the guest send a broadcast frame from that source.
func sendFrom(t *testing.T, vm *netns.NS, source byte) {
	t.Helper()
	err := vm.Do(func() error {
		dev, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		c, err := wire.Open(uint32(dev.Index), wire.Listen{})
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Send([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 5, source, 0x88, 0xb5})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// told are all events that the agent has kept.
func (h *host) told() []event.Event {
	h.t.Helper()
	var out []event.Event
	d := json.NewDecoder(strings.NewReader(h.must("events", "--no-follow", "--last", "-1", "-o", "json")))
	for d.More() {
		var e event.Event
		if err := d.Decode(&e); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func (h *host) awaitEvent(kind event.Kind, port, text string) {
	h.t.Helper()
	h.await(string(kind)+" of "+port+": "+text, func() bool {
		for _, e := range h.told() {
			if e.Kind == kind && e.Port == port && strings.Contains(e.Text, text) {
				return true
			}
		}
		return false
	})
}

func TestEvents_TellLearnedMovedLimitAndViolation(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", learningGroups))
	a := h.guest("porta", "02:00:00:00:01:01", "192.0.2.11/24")
	b := h.guest("portb", "02:00:00:00:01:02", "192.0.2.12/24")
	c := h.guest("portc", "02:00:00:00:01:03", "192.0.2.13/24")
	for _, p := range []string{"a", "b", "c"} {
		h.awaitPort(p, api.Up)
		h.awaitEvent(event.Connected, p, "device port"+p+" serves port "+p)
		h.awaitEvent(event.Link, p, "port "+p+" is up")
	}
	sendFrom(t, a, 1)
	h.awaitEvent(event.Learned, "a", "02:00:00:00:05:01 learned in VLAN 100 on port a") // S12
	sendFrom(t, a, 2)
	h.awaitEvent(event.LimitReached, "a", "02:00:00:00:05:02 in VLAN 100 is not learned") // S15
	sendFrom(t, b, 1)
	h.awaitEvent(event.Moved, "b", "moved from port a to port b") // S20
	sendFrom(t, c, 9)
	h.awaitEvent(event.Violation, "c", "02:00:00:00:05:09 that its policy refuses: forged-transmit") // S1

	// The next agent reports what happened while no agent ran.
	h.kill(syscall.SIGKILL)
	if _, errs, status := h.heddle("port", "list"); status != 1 || !strings.Contains(errs, "no agent is running") ||
		!strings.Contains(errs, "the switch goes on forwarding") {
		t.Errorf("without an agent: status %d, %s", status, errs)
	}
	sendFrom(t, a, 3)
	h.start("--config", h.dir+"/heddle.yaml")
	h.awaitEvent(event.Learned, "a", "02:00:00:00:05:03")
	h.must("port", "block", "a")
	h.awaitEvent(event.Blocked, "a", "port a is blocked") // S41
	h.must("apply", "-f", h.file("heddle.yaml", strings.Replace(learningGroups, "access: 100}\n", "access: 101}\n", 1)))
	h.awaitEvent(event.Applied, "", "1 change")
	h.ip("link del portc")
	h.awaitEvent(event.Disconnected, "c", "device portc no longer serves port c")
}
