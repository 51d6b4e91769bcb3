package fleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
	"heddle/internal/uplinks/lacp"
)

// noLoops fails when a port was blocked on a host of the site. Rounds of probes have ended by then.
func (s *site) noLoops(t *testing.T) {
	t.Helper()
	time.Sleep(500 * time.Millisecond) // longer than a round lasts
	for _, h := range []*host{s.a, s.b} {
		if list := h.othersBlocked(""); len(list) > 0 || len(h.loopEvents()) > 0 {
			t.Errorf("blocked: %v, events %v", list, h.loopEvents())
		}
	}
}

// pace is the time between two of the frames that are tried: there are several signs within a second.
const pace = 25 * time.Millisecond

// probed calls send at that pace, so often and until a probe comes to the guest: there were signs, and they were
// answered. It gives the number of the last call.
func probed(t *testing.T, e *cable.End, times int, send func(i int)) (last int) {
	t.Helper()
	deadline := time.Now().Add(realhost.Patience)
	for found := false; last < times || !found; last++ {
		if time.Now().After(deadline) {
			t.Fatalf("no probe came after %d rounds of signs", last)
		}
		send(last)
		time.Sleep(pace)
		found = e.Hears(isProbe) || found
	}
	return last - 1
}

func isProbe(frame []byte) bool { return bytes.Contains(frame, []byte("HdLp")) }

// A guest whose bond speaks LACP sends from one address by two ports, and hears by each what it sent by the other.
func TestS110_LACPOfAGuestIsNoLoop(t *testing.T) {
	testkit.Long(t, "TestS110_NoFalseAlarms has what is no loop as well")
	s := newSite(t, true)
	pdu := lacp.PDU{Actor: lacp.Info{System: lacp.System{Priority: 1, MAC: [6]byte{2, 0, 0, 0, 7, 7}}, Key: 1,
		State: lacp.Activity | lacp.Aggregation}}
	second := s.a.Plug("p-q2", [6]byte{2, 0, 0, 0, 1, 9})
	s.a.must("port", "connect", "q2", "--switch", "lab", "--port-group", "open", "--device", "p-q2", "--mac",
		"02:00:00:00:01:09")
	s.a.Up("q2")
	ends := []*cable.End{s.q[s.a], second}
	frame := func(i int) []byte {
		pdu.Actor.Port.Number = uint16(i + 1)
		head := slices.Concat(lacp.Destination[:], []byte{2, 0, 0, 0, 7, 7})
		return append(binary.BigEndian.AppendUint16(head, lacp.EtherType), pdu.Encode()...)
	}
	probed(t, second, 60, func(i int) { ends[i%2].Send(frame(i)) })
	second.Send(frame(61))
	s.q[s.a].Expect(frame(61), "the policy lets LACP pass")
	s.noLoops(t)
}

// What a network sends back, and what a guest sends back by the adapter that it received on, goes round nowhere.
func TestS110_ReflectedFramesAreNoLoop(t *testing.T) {
	testkit.Long(t, "TestS110_NoFalseAlarms has what is no loop as well")
	s := newSite(t, true)
	network := cable.Open(t, s.network, "network")
	n := probed(t, s.q[s.a], 60, func(i int) {
		f := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprintf("comes back %d", i))
		s.vm[s.a].Send(f)
		network.Send(f)
		s.q[s.a].Send(f) // of a guest that may send from any address
		s.q[s.b].Send(f)
	})
	last := cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprintf("comes back %d", n))
	s.vm[s.b].Expect(last, "they were all sent")
	s.noLoops(t)
}

// An address that moves between two hosts, back and forth, as a live migration has it, or one that its hosts cannot
// agree on.
func TestS110_AnAddressThatMovesBetweenHostsIsNoLoop(t *testing.T) {
	testkit.Long(t, "TestS110_NoFalseAlarms has what is no loop as well")
	s := newSite(t, true)
	moving := [6]byte{2, 0, 0, 0, 8, 8}
	hosts := []*host{s.a, s.b}
	for i := range 60 {
		h := hosts[i%2]
		// as QEMU announces a guest that has come
		s.q[h].Send(cable.Frame(cable.Broadcast(), moving, 0, fmt.Sprintf("here I am %d", i)))
		s.q[h].Send(cable.Frame(cable.MAC(byte(2-i%2)), moving, 0, fmt.Sprintf("and speak %d", i)))
		s.vm[h].Send(cable.Frame(cable.Broadcast(), cable.MAC(byte(2-i%2)), 0, fmt.Sprintf("of the other host's "+
			"guest %d", i)))
		time.Sleep(pace)
	}
	s.vm[s.a].Expect(cable.Frame(cable.MAC(1), moving, 0, "and speak 59"), "the last host is the one that it is at")
	s.noLoops(t)
}
