package compile

import (
	"strings"
	"testing"

	"heddle/internal/binding"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// A port of an overlay segment never ends up in a VLAN of the switch instead, whether or not its switch has a tunnel.
func TestOverlayIsRefusedAsAWhole(t *testing.T) {
	port := func(vni uint32) *plan.Port {
		return &plan.Port{ID: plan.PortID{Switch: "lab", Name: "vm1/eth0"}, PortGroup: "web", VNI: vni,
			Policy: &plan.Effective{}}
	}
	for _, c := range []struct {
		name string
		sw   plan.Switch
		want string
	}{
		{"tunnel", plan.Switch{Name: "lab", Kind: spec.Distributed, Tunnel: &plan.Tunnel{}}, "switch lab has a tunnel"},
		{"port without a tunnel", plan.Switch{Name: "lab", Kind: spec.Distributed, Ports: []*plan.Port{port(5000)}},
			"in VNI 5000"},
		{"neither", plan.Switch{Name: "lab", Kind: spec.Distributed, Ports: []*plan.Port{port(0)}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &plan.Plan{Switches: []*plan.Switch{&c.sw}}
			s := NewSlots()
			if _, err := s.Assign(p); err != nil {
				t.Fatal(err)
			}
			_, err := Tables(binding.Desired{Plan: p}, s, 1000)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("the error is %v, not one with %q", err, c.want)
			}
		})
	}
}
