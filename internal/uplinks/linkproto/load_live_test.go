package linkproto_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// A port moves off a loaded uplink, its MAC is announced on the other, and it stays there when the agent restarts. The
// uplinks count as 10 Mb/s, and windows are short.
//
//	vmk0 (number 1) ┐      ╔═ w0 ═╗
//	vmk1 (number 2) ┼─ lab ╣      ╠═ br0 ─ station
//	vmk2 (number 3) ┘      ╚═ w1 ═╝
func TestS47_S48_APortMovesOffALoadedUplinkAndThenStays(t *testing.T) {
	testkit.Long(t, "waits until loads are known")
	testkit.Tool(t, "ip")
	t.Setenv("HEDDLE_LOAD_WINDOW", "2s")
	t.Setenv("HEDDLE_LOAD_SPEED", "1e7")
	h := newHost(t, "load")
	network := testkit.NS(t, "net")
	wires(t, h.ns, network, 2)
	run(t, network, "ip link add br0 up address 02:00:00:00:00:20 type bridge")
	for i := range 2 {
		run(t, network, fmt.Sprintf("ip link set w%d master br0", i))
	}
	config := `switches:
  - name: lab
    uplinks: [{name: up0, device: w0}, {name: up1, device: w1}]
    portGroups:
      - {name: hosts, teaming: {policy: load-based}}
ports:
`
	for i := range 3 {
		config += fmt.Sprintf("  - {name: vmk%d, switch: lab, portGroup: hosts, role: host, mac: "+
			"\"02:00:00:00:00:1%d\", addresses: [192.0.%d.1/24]}\n", i, i, i)
		run(t, network, fmt.Sprintf("ip addr add 192.0.%d.2/24 dev br0", i))
	}
	h.start(config)
	h.await("two ports use up1", func() bool {
		return h.by("vmk0") == "up1" && h.by("vmk1") == "up0" &&
			h.by("vmk2") == "up1"
	})
	announced := rarps(t, network, "w0")
	for _, port := range []string{"vmk0", "vmk2"} {
		h.flood(port, net.HardwareAddr{2, 0, 0, 0, 0, 0x20})
	}
	h.await("one of them moves to up0", func() bool { return h.by("vmk0") == "up0" || h.by("vmk2") == "up0" })
	moved, mac := "vmk0", plan.MAC{2, 0, 0, 0, 0, 0x10}
	if h.by("vmk2") == "up0" {
		moved, mac = "vmk2", plan.MAC{2, 0, 0, 0, 0, 0x12}
	}
	for got, late := (plan.MAC{}), time.After(patience); got != mac; { // vmk1 is announced there as well
		select {
		case got = <-announced:
		case <-late:
			t.Fatalf("%s moved and is not announced", moved)
		}
	}
	// Each uplink now has one of the two, some 42 %: nothing moves in the windows to come (S48).
	from := h.sent("up0")
	h.await("several windows of that load", func() bool { return h.sent("up0")-from > 2_500_000 })
	if n := h.moves(); n != 1 {
		t.Errorf("ports moved %d times for load", n)
	}
	h.end(syscall.SIGKILL)
	h.start("")
	if by := h.by(moved); by != "up0" {
		t.Errorf("after a restart %s uses %s", moved, by)
	}
}

// by returns the uplink that a port uses.
func (h *host) by(port string) string {
	h.t.Helper()
	s, err := h.State(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Name == port && len(p.Uplinks) == 1 {
			return p.Uplinks[0]
		}
	}
	return ""
}

// sent returns how many bytes of unicast were delivered to an uplink.
func (h *host) sent(uplink string) uint64 {
	h.t.Helper()
	all, err := h.Stats(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range all {
		for _, c := range s.Counters {
			if s.Name == uplink && c.Name == "bytesOutUnicast" {
				return c.Value
			}
		}
	}
	h.t.Fatalf("uplink %s has no counter bytesOutUnicast", uplink)
	return 0
}

// moves returns how often ports have changed their uplink for load.
func (h *host) moves() (n int) {
	h.t.Helper()
	err := h.Events(h.t.Context(), api.Follow{Last: 1000, NoFollow: true}, func(e api.Events) error {
		for _, x := range e.Events {
			if x.Kind == event.Failover && strings.HasSuffix(x.Text, ": load") {
				n += x.Ports
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

// flood makes a port send 4.2 Mb/s to a station until the test ends. A sender that was delayed catches up, so that
// windows have the same load on a busy machine: two such ports exceed the 75 % of 10 Mb/s at which one is moved, and
// one is far below.
func (h *host) flood(port string, to net.HardwareAddr) {
	h.t.Helper()
	const size, rate = 1342, 4.2e6 / 8 / 1342
	f, err := traffic.StartFlood(traffic.Endpoint{NS: h.ns}, traffic.Flood{Kind: traffic.WellBehaved, Device: port,
		To: to, MinSize: size, MaxSize: size, Rate: rate})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			h.t.Error(err)
		}
	})
}

// rarps returns the MACs that RARP announces on a device from now on. The device is in a bridge, which takes frames
// before a socket for one type sees them; a socket for all types sees them first.
func rarps(t *testing.T, ns *netns.NS, device string) <-chan plan.MAC {
	t.Helper()
	end := cable.Open(t, ns, device)
	ctx, stop := context.WithCancel(context.Background())
	heard := make(chan plan.MAC, 64)
	ended := make(chan error, 1)
	go func() {
		ended <- end.Watch(ctx, func(f []byte) {
			if !bytes.HasPrefix(f[12:], []byte{0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3}) {
				// a reverse request for Ethernet and IPv4
				return
			}
			select {
			case heard <- plan.MAC(f[6:12]):
			default:
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return heard
}
