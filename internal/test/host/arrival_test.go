package host

import (
	"encoding/binary"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit/cable"
)

// isQuery tells an IGMP query from an MLD query to a port; both false for other frames.
func isQuery(f []byte) (igmp, mld bool) {
	at := 12
	if len(f) > 18 && binary.BigEndian.Uint16(f[at:]) == 0x8100 {
		at += 4
	}
	body := f[min(at+2, len(f)):]
	switch {
	case len(body) < 46:
		return false, false
	case binary.BigEndian.Uint16(f[at:]) == 0x0800:
		return body[9] == 2 && body[24] == 0x11, false
	case binary.BigEndian.Uint16(f[at:]) == 0x86dd && len(body) >= 76:
		return false, body[6] == 0 && body[48] == 130
	}
	return false, false
}

// A port whose guest is to arrive is silent on the wire until the guest's first frame, and is announced then in each of
// its VLANs, five times; the guest is asked for its multicast groups, twice in each.
func TestS50_S99_AGuestThatArrivesIsAnnouncedOnTheWire(t *testing.T) {
	h := newHost(t)
	wire := h.wired(2)
	h.start("--config", h.file("heddle.yaml", announcedTeam))
	other, guest := h.guest("port1", "02:00:00:00:01:01", "192.0.2.1/24"), h.guest("portx", "02:00:00:00:01:0a",
		"192.0.2.10/24")
	// They send nothing by themselves: a guest's first frame ends the wait.
	run(t, other, "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1")
	run(t, guest, "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1")
	h.awaitPort("vm1", api.Up)
	far, owner := cable.Open(t, wire, "far1"), cable.Open(t, guest, "eth0")
	h.must("port", "connect", "vmx", "--incoming", "--switch", "lab", "--port-group", "some", "--device", "portx",
		"--mac", "02:00:00:00:01:0a")
	h.awaitPort("vmx", api.Waiting)
	first := cable.Frame(cable.Broadcast(), [6]byte{2, 0, 0, 0, 1, 10}, 10, "it runs")
	is := func(f []byte) bool { return len(f) >= 12 && string(f[6:12]) == string(first[6:12]) }
	marker := cable.Frame(cable.Broadcast(), [6]byte{2, 0, 0, 0, 1, 1}, 0, "nothing before this")
	cable.Open(t, other, "eth0").Send(marker)
	for _, f := range far.Until(marker) {
		if is(f) {
			t.Errorf("a port that waits is heard: %x", f)
		}
	}

	owner.Send(first)
	counts := map[string]int{}
	far.Gather("the guest's frame, and its MAC in both VLANs, five times", func(all [][]byte) bool {
		if f := all[len(all)-1]; is(f) {
			counts[rarp(f)]++
		}
		return counts["10 010a"] >= 5 && counts["11 010a"] >= 5 && counts[""] >= 1
	})
	if len(counts) != 3 || counts[""] != 1 {
		t.Errorf("of the guest came %v", counts)
	}
	igmp, mld := 0, 0
	owner.Gather("two queries of each kind in both VLANs", func(all [][]byte) bool {
		four, six := isQuery(all[len(all)-1])
		if four {
			igmp++
		}
		if six {
			mld++
		}
		return igmp >= 4 && mld >= 4
	})
	h.await("everything is announced", func() bool { return h.announcing() == 0 })
	cable.Open(t, other, "eth0").Send(marker)
	for _, f := range far.Until(marker) {
		if is(f) {
			t.Errorf("announced too often: %x", f)
		}
	}
}
