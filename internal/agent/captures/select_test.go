package captures

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

func twoSwitches() *plan.Plan {
	id := func(sw, name string) plan.PortID { return plan.PortID{Switch: sw, Name: name} }
	return &plan.Plan{Switches: []*plan.Switch{
		{Name: "lab", Uplinks: []*plan.Uplink{{ID: id("lab", "uplink1")}},
			Ports: []*plan.Port{{ID: id("lab", "vm1/eth0"), Policy: &plan.Effective{}},
				{ID: id("lab", "both"), Policy: &plan.Effective{}}}},
		{Name: "dmz", Uplinks: []*plan.Uplink{{ID: id("dmz", "uplink1")}},
			Ports: []*plan.Port{{ID: id("dmz", "vm2/eth0"), Policy: &plan.Effective{}},
				{ID: id("dmz", "both"), Policy: &plan.Effective{}}}},
	}}
}

func TestSelectionIsWhatWasAskedFor(t *testing.T) {
	all := []int{abi.CaptureAdmit, abi.CaptureDeliver, abi.CaptureDrop}
	lab := func(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }
	for name, c := range map[string]struct {
		ask  api.Capture
		want dataplane.Selection
	}{
		"everything": {api.Capture{}, dataplane.Selection{Stages: all, Snap: abi.MaxSnap}},
		"a port": {api.Capture{Ports: []string{"vm1/eth0"}, Snap: 96},
			dataplane.Selection{Ports: []plan.PortID{lab("vm1/eth0")}, Stages: all, Snap: 96}},
		"an uplink of one of two switches": {api.Capture{Switch: "lab", Uplinks: []string{"uplink1"},
			Ports: []string{"both"}},
			dataplane.Selection{Ports: []plan.PortID{lab("both"), lab("uplink1")}, Stages: all, Snap: abi.MaxSnap}},
		"segments of the port's switch": {api.Capture{Ports: []string{"vm1/eth0"},
			Segments: []string{"10-12", "untagged", "ad:7"}},
			dataplane.Selection{Ports: []plan.PortID{lab("vm1/eth0")}, Switch: "lab",
				Segments: []dataplane.Segment{{VLAN: 10}, {VLAN: 11}, {VLAN: 12}, {}, {VLAN: 7, AD: true}}, Stages: all,
				Snap: abi.MaxSnap}},
		"stages": {api.Capture{Stages: []string{"deliver", "admit"}},
			dataplane.Selection{Stages: []int{abi.CaptureDeliver, abi.CaptureAdmit}, Snap: abi.MaxSnap}},
		"a reason": {api.Capture{Reasons: []string{"mac-limit"}},
			dataplane.Selection{Stages: []int{abi.CaptureDrop}, Reasons: []abi.Reason{abi.ReasonMACLimit},
				Snap: abi.MaxSnap}},
		"a filter": {api.Capture{Filter: []api.FilterInstruction{{Code: 6, K: 1}}},
			dataplane.Selection{Stages: all, Filter: []abi.FilterInstruction{{Code: 6, K: 1}}, Snap: abi.MaxSnap}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := selection(twoSwitches(), c.ask)
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("%s: %v (-want +got)\n%s", name, err, d)
			}
		})
	}
}

func TestFaultsOfASelectionAreNamedAllAtOnce(t *testing.T) {
	for _, c := range []struct {
		ask  api.Capture
		want []string
	}{
		{api.Capture{Ports: []string{"vm1/eht0"}},
			[]string{`there is no port or uplink vm1/eht0; did you mean vm1/eth0?`}},
		{api.Capture{Uplinks: []string{"vm1/eth0"}}, []string{`there is no uplink vm1/eth0; vm1/eth0 is a port`}},
		{api.Capture{Ports: []string{"both"}}, []string{`both is in 2 switches: say which with --switch`}},
		{api.Capture{Switch: "lap"}, []string{`there is no switch lap; did you mean lab?`}},
		{api.Capture{Segments: []string{"10"}}, []string{"there are 2: say which with --switch"}},
		{api.Capture{Ports: []string{"vm1/eth0", "vm2/eth0"}, Segments: []string{"10"}},
			[]string{"one switch at a time"}},
		{api.Capture{Switch: "lab", Segments: []string{"4095", "9-8", "x", "ad:"}},
			[]string{`VLAN "4095"`, `VLAN "9-8"`, `VLAN "x"`, `VLAN "ad:"`}},
		{api.Capture{Stages: []string{"delivr"}, Reasons: []string{"mac-limits", "none"}},
			[]string{`there is no stage delivr; did you mean deliver?`,
				`there is no reason mac-limits; did you mean mac-limit?`, `there is no reason none`}},
		{api.Capture{Stages: []string{"admit"}, Reasons: []string{"mac-limit"}},
			[]string{"only what is dropped has a reason"}},
		{api.Capture{Snap: -1, Filter: []api.FilterInstruction{{Code: 5, K: 9}}},
			[]string{"instruction 0 of the filter jumps beyond its end", "snap length -1"}},
	} {
		_, err := selection(twoSwitches(), c.ask)
		var fault *api.Error
		kind := api.Invalid
		if len(c.ask.Stages) == 0 && strings.HasPrefix(c.want[0], "there is no ") { // a name that does not exist
			kind = api.NotFound
		}
		if !errors.As(err, &fault) || fault.Kind != kind || len(fault.Lines) != len(c.want) {
			t.Errorf("%+v: %v", c.ask, err)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(fault.Lines[i], w) {
				t.Errorf("%q lacks %q", fault.Lines[i], w)
			}
		}
	}
}
