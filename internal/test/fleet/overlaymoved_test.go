package fleet

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/abi"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// TestS84_WithoutControllersFramesFollowAGuestThatMoved: a guest that says nothing goes to another host while no
// controller answers. That host announces it in the segment, and a third one's frames follow. When the controller is
// back, its word counts.
func TestS84_WithoutControllersFramesFollowAGuestThatMoved(t *testing.T) {
	testkit.Long(t, "TestS100_S105_APortMovesOnAnOverlaySegment has a guest that moves")
	t.Parallel()
	f := newOverlayFleet(t, 3, segmentText)
	mac := fleetMAC(9, 9)
	here := func(n int) string { return fmt.Sprintf("p-vm@%d", n) }
	move := func(n int) {
		f.guests[here(n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("vm%d", n), "p-vm", mac)
		f.hosts[n].must("port", "connect", "p-vm", "--switch", "dvs", "--port-group", "web", "--device", "p-vm")
	}
	move(0)
	third := f.hosts[2]
	was := fleetMAC(0, 3)
	third.Await("the third host is told of the guest", func() bool {
		all := third.located()
		at, known := all[mac]
		return known && at.Endpoint == all[was].Endpoint
	})
	f.controller.End(syscall.SIGKILL)
	third.Await("the third host has no controller", func() bool { return third.learns() })

	frame := cable.Frame(mac, fleetMAC(2, 3), 0, "to the guest, wherever it is")
	if err := f.hosts[0].Do(func() error {
		l, err := netlink.LinkByName("p-vm")
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	}); err != nil {
		t.Fatal(err)
	}
	f.guests["p-web@2"].Send(frame)
	move(1)
	begin := time.Now()
	for !f.guests[here(1)].Await(frame, 20*time.Millisecond) {
		if time.Now().After(begin.Add(realhost.Patience)) {
			t.Fatal("frames do not follow the guest")
		}
		f.guests["p-web@2"].Send(frame)
	}
	t.Logf("frames come to the guest %v after its port is connected", time.Since(begin))
	all := third.located()
	if at, other := all[mac], all[fleetMAC(1, 3)]; at.Source != abi.LocationLearned || at.Endpoint != other.Endpoint {
		t.Errorf("the guest is located at %+v, its host's other guest at %+v", at, other)
	}

	f.controller.Start()
	third.Await("the controllers' word counts", func() bool {
		all := third.located()
		return all[mac].Source == abi.LocationAnnounced && all[mac].Endpoint == all[fleetMAC(1, 3)].Endpoint
	})
	third.Await("the host no longer learns from other hosts' frames", func() bool { return !third.learns() })
}

// learns reports whether the host learns from other hosts' frames where MACs are.
func (h *host) learns() bool {
	h.T.Helper()
	m := h.overlayTable("tunnels")
	defer m.Close()
	var slot uint32
	var tunnel abi.Tunnel
	if err := m.NextKey(nil, &slot); err != nil {
		h.T.Fatal(err)
	}
	if err := m.Lookup(slot, &tunnel); err != nil {
		h.T.Fatal(err)
	}
	return tunnel.Rules&abi.TunnelLearns != 0
}
