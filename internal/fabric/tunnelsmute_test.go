package fabric

import (
	"net/netip"
	"testing"
)

// An endpoint whose host's agent answers no probes of tunnels is not called unreachable: nothing is known of it.
func TestS109_AnAgentThatDoesNotKnowProbesOfTunnels(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	lost := func(own, peer netip.Addr, mute bool) Tunnel {
		return Tunnel{Switch: "s", Host: own.String(), Name: "h" + own.String(), Own: own, Peer: peer,
			PeerName: "h" + peer.String(), MTU: 1500, Port: 4789, Mute: mute, Result: Result{State: Lost}}
	}
	v := &Verdict{}
	v.AddTunnels([]Tunnel{lost(a, c, true), lost(b, c, true), {Switch: "s", Own: a, Peer: b,
		Result: Result{State: Passes}}})
	if len(v.Findings) != 1 || v.Findings[0].Code != DoesNotKnow || !v.Findings[0].Note ||
		v.Findings[0].Text != "nothing is known of the tunnels of switch s to h10.0.0.3 (10.0.0.3): the agent there "+
			"does not know probes of tunnels" {
		t.Errorf("%+v", v.Findings)
	}
	if v.Tunnels != 3 || v.TunnelsPassing != 1 || v.TunnelsWaiting != 2 {
		t.Errorf("%+v", v)
	}
	v = &Verdict{}
	v.AddTunnels([]Tunnel{lost(a, c, false), lost(b, c, false), {Switch: "s", Own: a, Peer: b,
		Result: Result{State: Passes}}})
	if len(v.Findings) != 1 || v.Findings[0].Code != Unreachable || v.TunnelsWaiting != 0 {
		t.Errorf("of an agent that knows: %+v", v)
	}
}
