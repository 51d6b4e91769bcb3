package fabric

import "testing"

// A host whose tunnel reaches nobody knows that by itself; one that reaches some host, or does not know yet, says
// nothing, and what controllers have said of the same switch is not said twice.
func TestS109_AHostKnowsThatItsTunnelReachesNobody(t *testing.T) {
	to := func(n int, s State, mute bool) Tunnel {
		return Tunnel{Switch: "dvs", Host: "h", Name: "esx1", Own: address(1), Peer: address(n), Port: 4789, MTU: 1500,
			Result: Result{State: s}, Mute: mute}
	}
	for name, c := range map[string]struct {
		list []Tunnel
		want int
	}{
		"nobody":           {[]Tunnel{to(2, Lost, false), to(3, Lost, false)}, 1},
		"one":              {[]Tunnel{to(2, Lost, false), to(3, Passes, false)}, 0},
		"not known yet":    {[]Tunnel{to(2, Lost, false), to(3, Unknown, false)}, 0},
		"no others":        {nil, 0},
		"they do not know": {[]Tunnel{to(2, Lost, true)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found := Nobody(c.list)
			if len(found) != c.want {
				t.Fatalf("%+v", found)
			}
			if c.want > 0 && (found[0].Code != Unreachable || found[0].Note || len(Added(found, found)) != 1 ||
				len(Added(nil, found)) != 1) {
				t.Errorf("%+v", found)
			}
		})
	}
}
