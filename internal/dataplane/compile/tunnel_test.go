package compile

import (
	"net/netip"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// The programs look for the file's word about a MAC unless the file says nothing of any MAC (S84).
func TestS84_TheFilesWordIsLookedForWhereThereIsOne(t *testing.T) {
	p := overlayPlan(OverlaySegment{VNI: 7})
	sw := p.Switches[0]
	sw.Tunnel.Peers = []plan.TunnelPeer{{Address: netip.MustParseAddr("192.0.2.2")}}
	s := NewSlots()
	if _, err := s.Assign(p); err != nil {
		t.Fatal(err)
	}
	tables := func() (abi.Tunnel, int) {
		d, n := bound(p), EndpointNumbers{}
		d.Reach[sw.Name] = overlay.Of(sw)
		if err := n.Assign(d, s, nil); err != nil {
			t.Fatal(err)
		}
		all := Tunnels(d, s, n)
		return all.Tunnels[s.Ports[sw.Tunnel.ID]], len(all.Locations)
	}
	if tunnel, listed := tables(); tunnel.Rules&abi.TunnelUnlisted == 0 || listed != 0 {
		t.Errorf("nothing is listed: rules %#x, %d locations", tunnel.Rules, listed)
	}
	sw.Tunnel.Peers[0].MACs = []plan.TunnelMAC{{VNI: 7, MAC: plan.MAC{2}}}
	if tunnel, listed := tables(); tunnel.Rules&abi.TunnelUnlisted != 0 || listed != 1 {
		t.Errorf("a MAC is listed: rules %#x, %d locations", tunnel.Rules, listed)
	}
}
