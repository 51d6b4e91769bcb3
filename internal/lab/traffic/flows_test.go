package traffic

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestPacketsOfOneSenderTakeTurnsOverPorts: so many ports as flows, each with as many packets, give or take the turn.
func TestPacketsOfOneSenderTakeTurnsOverPorts(t *testing.T) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	to := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	const flows = 8
	load := short(KindUDP)
	load.Flows, load.Rate, load.Duration = flows, 1000, 200*time.Millisecond
	if _, err := Send(t.Context(), Endpoint{}, load, to); err != nil {
		t.Fatal(err)
	}
	packets := map[netip.AddrPort]int{}
	buf := make([]byte, 100)
	for end := 0; end < EndMarks; { // all of them are in the buffer, and the marks are the last
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := parseHeader(buf[:n]); ok && p.mark == markEnd {
			end++
			continue
		}
		packets[from]++
	}
	if len(packets) != flows {
		t.Fatalf("%d ports, want %d: %v", len(packets), flows, packets)
	}
	least, most := 1<<30, 0
	for _, n := range packets {
		least, most = min(least, n), max(most, n)
	}
	if most-least > 1 {
		t.Errorf("ports do not take turns: %v", packets)
	}
}

func TestFlowsOfPacketsAreLimited(t *testing.T) {
	for _, flows := range []int{-1, maxPacketFlows + 1} {
		load := short(KindUDP)
		load.Flows = flows
		_, err := Send(t.Context(), Endpoint{}, load, netip.MustParseAddrPort("127.0.0.1:9"))
		if err == nil || !strings.Contains(err.Error(), "want 1–1024") {
			t.Errorf("%d flows: %v", flows, err)
		}
	}
}
