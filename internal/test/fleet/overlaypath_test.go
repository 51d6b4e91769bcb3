package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/test/testkit/cable"
)

// TestS156_ThePathsMTUIsTold: the way to the other host takes less than this host's own device. A guest whose packet
// does not fit gets the ICMP error with what fits, the tunnel names the endpoint, and both end with the narrow way.
func TestS156_ThePathsMTUIsTold(t *testing.T) {
	t.Parallel()
	r := newOverlayRig(t, false, "web")
	h, end := r.hosts[0], r.guests[0][0]
	fits, long := longTo(cable.MAC(11), cable.MAC(1), 1450), longTo(cable.MAC(11), cable.MAC(1), 1451)
	r.once(cable.MAC(1), "before")
	r.guests[1][0].Send(cable.Frame(cable.Broadcast(), cable.MAC(11), 0, "where the other guest is"))
	end.Send(long)
	r.guests[1][0].Expect(long, "a packet that fits the devices")
	way := []string{"ip", "route", "add", r.addr[1] + "/32", "via", r.network(1, false) + "1", "mtu", "1500"}
	r.command(h.NS, way...)
	says := fmt.Sprintf("packets of up to 1500 bytes reach the endpoint %s of host other, 50 less than the 1550",
		r.addr[1])
	h.Await("S156: the tunnel says that the way is narrow", func() bool {
		return strings.Contains(h.must("uplink", "list", "-o", "json"), says)
	})
	end.Send(long)
	if !end.Hears(func(f []byte) bool { return isFragmentationNeeded(f, 1450) }) {
		t.Error("S156: the guest is not told what fits")
	}
	end.Send(fits)
	r.guests[1][0].Expect(fits, "S156: what fits arrives")
	if h.Refused("tunnel", "tunnel-mtu") != 1 {
		t.Errorf("%d frames are counted as too long", h.Refused("tunnel", "tunnel-mtu"))
	}
	way[2] = "del"
	r.command(h.NS, way...)
	h.Await("S156: the way is wide again", func() bool {
		return !strings.Contains(h.must("uplink", "list", "-o", "json"), "low-mtu")
	})
	end.Send(long)
	r.guests[1][0].Expect(long, "the way is wide again")
}

// longTo is a packet of IPv4 of that length, which must not be fragmented.
func longTo(to, from [6]byte, length int) []byte {
	head := slices.Concat(to[:], from[:], []byte{8, 0, 0x45, 0, byte(length >> 8), byte(length), 0, 1, 0x40, 0, 64,
		17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 11, 0x12, 0x34, 0x12, 0x34, byte((length - 20) >> 8), byte(length - 20), 0, 0})
	return append(head, make([]byte, length+14-len(head))...)
}

// isFragmentationNeeded: the frame is the ICMP error of IPv4 that tells an MTU.
func isFragmentationNeeded(f []byte, mtu int) bool {
	return len(f) > 42 && f[12] == 8 && f[13] == 0 && f[23] == 1 && f[34] == 3 && f[35] == 4 &&
		int(f[40])<<8|int(f[41]) == mtu
}

// TestS157_AHostThatLeavesKeepsItsOverlay: after the host has left its cluster, its guest and that of another host go
// on talking, and its configuration has the other hosts' endpoints as peers.
func TestS157_AHostThatLeavesKeepsItsOverlay(t *testing.T) {
	t.Parallel()
	f := newOverlayFleet(t, 2, segmentText)
	one, other := f.guests["p-web@0"], f.guests["p-web@1"]
	talk := func(when string) {
		t.Helper()
		for _, to := range [][6]byte{fleetMAC(1, 3), cable.Broadcast()} {
			out := cable.Frame(to, fleetMAC(0, 3), 0, "from the host that leaves, "+when)
			one.Send(out)
			other.Expect(out, "S157: "+when)
		}
		back := cable.Frame(fleetMAC(0, 3), fleetMAC(1, 3), 0, "to the host that leaves, "+when)
		other.Send(back)
		one.Expect(back, "S157: "+when)
	}
	talk("as a member")
	f.hosts[0].must("host", "leave")
	talk("after it has left")
	if text := f.hosts[0].must("config", "show"); !strings.Contains(text, "peers:") ||
		!strings.Contains(text, "name: esx1") {
		t.Errorf("S157: the host's configuration is\n%s", text)
	}
	if l, known := f.hosts[0].located()[fleetMAC(1, 3)]; known && l.Source != abi.LocationLearned {
		t.Errorf("S157: the controllers' word is still in the kernel: %+v", l)
	}
}
