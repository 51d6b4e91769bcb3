package fleet

import (
	"net/netip"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// TestS85_ControllersSayWhoHasAnAddress: what a guest says of its address is told to the other hosts of the segment,
// stays known on its own host when the controllers say the same, and is taken back when its port goes.
func TestS85_ControllersSayWhoHasAnAddress(t *testing.T) {
	testkit.Long(t, "TestS85_AHostShowsWhoHasAnAddress has addresses without controllers")
	t.Parallel()
	f := newOverlayFleet(t, 2, segmentText)
	ip, mac := netip.MustParseAddr("10.0.0.3"), fleetMAC(0, 3)
	all := [6]byte{255, 255, 255, 255, 255, 255}
	f.guests["p-web@0"].Send(arpFrame(all, mac, 1, mac, ip, [6]byte{}, ip))
	f.hosts[1].Await("the other host is told who has the address", func() bool {
		return f.hosts[1].told(t)[mac] == 1
	})
	for n := range 3 { // each takes another reading of what was heard
		more := netip.AddrFrom4([4]byte{10, 0, 0, byte(30 + n)})
		f.guests["p-web@0"].Send(arpFrame(all, mac, 1, mac, more, [6]byte{}, more))
		f.hosts[1].Await("the other host is told of one more, and knows the others", func() bool {
			return f.hosts[1].told(t)[mac] == 2+n
		})
	}
	var web api.SegmentDetail
	f.controller.JSON(&web, "segment", "show", "web")
	shown := false
	for _, l := range web.Locations {
		shown = shown || l.Key == ip.String() && l.Owner == plan.MAC(mac).String() && l.Host == "esx0"
	}
	if !shown {
		t.Errorf("the controllers show %+v", web.Locations)
	}
	var known api.Neighbours
	f.controller.JSON(&known, "segment", "neighbours", "web", "--host", "esx1", "--address", ip.String())
	if n := known.Neighbours; len(n) != 1 || n[0].Address != ip.String() || n[0].Endpoint == "" ||
		n[0].Whose != api.OwnerTold && n[0].Whose != api.OwnerAtEndpoint {
		t.Errorf("the other host shows %+v", n)
	}
	var everywhere []struct {
		Host string `json:"host"`
		api.Neighbours
	}
	f.controller.JSON(&everywhere, "segment", "neighbours", "--address", ip.String())
	if n := everywhere; len(n) != 2 || n[0].Host != "esx0" || len(n[0].Neighbours.Neighbours) != 1 ||
		n[0].Neighbours.Neighbours[0].Port != "p-web" {
		t.Errorf("the hosts show %+v", everywhere)
	}
	f.hosts[0].must("port", "disconnect", "p-web")
	f.hosts[1].Await("it is taken back", func() bool { return f.hosts[1].told(t)[mac] == 0 })
}

// told is how many addresses each MAC has, as controllers say.
func (h *host) told(t *testing.T) map[[6]byte]int {
	t.Helper()
	m := h.overlayTable("told_bindings")
	if m == nil {
		return nil
	}
	defer m.Close()
	all := map[[6]byte]int{}
	var key abi.BindingKey
	var b abi.ToldBinding
	each := m.Iterate()
	for each.Next(&key, &b) {
		all[b.MAC]++
	}
	if err := each.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
