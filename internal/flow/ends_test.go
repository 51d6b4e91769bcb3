package flow

import (
	"testing"

	"heddle/internal/plan"
)

// TestS105_AFlowCrossesByTheTunnel: the way of a flow is that of its last frame, at a guest's port and at the tunnel.
func TestS105_AFlowCrossesByTheTunnel(t *testing.T) {
	const vm, uplink, tunnel = 1, 2, 3
	segments := &Overlay{7: {VNI: 5000}}
	at := Points{
		vm:     {ID: plan.PortID{Switch: "lab", Name: "vm1"}, Overlay: segments},
		uplink: {ID: plan.PortID{Switch: "lab", Name: "uplink1"}, Uplink: true},
		tunnel: {ID: plan.PortID{Switch: "lab", Name: "tunnel"}, Uplink: true, Overlay: segments},
		4:      {ID: plan.PortID{Switch: "other", Name: "tunnel"}}, // a port that has that name
	}
	a, b, all := plan.MAC{2, 1}, plan.MAC{2, 2}, plan.MAC{255, 255, 255, 255, 255, 255}
	leaves, arrives := Crossing{tunnel, 7, 5000, true, a, b}, Crossing{tunnel, 7, 5000, false, a, a}
	key := func(point, vlan uint16, d Direction, to plan.MAC) Key {
		return Key{Point: point, VLAN: vlan, Direction: d, SrcMAC: a, DstMAC: to}
	}
	for name, c := range map[string]struct {
		key     Key
		in, out uint16
		want    Crossing
		ok      bool
	}{
		"a guest's frames leave":        {key(vm, 7, Ingress, b), 0, tunnel, leaves, true},
		"the same at the tunnel":        {key(tunnel, 7, Egress, b), vm, 0, leaves, true},
		"frames for a guest arrive":     {key(vm, 7, Egress, b), tunnel, 0, arrives, true},
		"the same where they come in":   {key(tunnel, 7, Ingress, b), 0, vm, arrives, true},
		"frames for all arrive":         {key(tunnel, 7, Ingress, all), 0, 0, arrives, true},
		"frames for all leave":          {key(tunnel, 7, Egress, all), vm, 0, Crossing{}, false},
		"frames for several":            {key(vm, 7, Ingress, b), 0, 0, Crossing{}, false},
		"frames that stay on the host":  {key(vm, 7, Ingress, b), 0, vm, Crossing{}, false},
		"a VLAN":                        {key(uplink, 7, Egress, b), vm, 0, Crossing{}, false},
		"a segment that has gone":       {key(tunnel, 8, Egress, b), vm, 0, Crossing{}, false},
		"a port that is called tunnel":  {key(4, 7, Egress, b), vm, 0, Crossing{}, false},
		"a point that nobody knows any": {key(9, 7, Egress, b), vm, 0, Crossing{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := CrossingOf(at, &c.key, c.in, c.out); ok != c.ok || got != c.want {
				t.Errorf("%+v %v, want %+v %v", got, ok, c.want, c.ok)
			}
		})
	}
}
