package agent

import (
	"context"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/host/hostdev"
)

// An apply, also a dry run, warns of what sends past the switch on the devices of its uplinks and ports, and of nothing
// else.
func TestApplyWarnsOfDevicesThatSendPastTheSwitch(t *testing.T) {
	for _, dry := range []bool{false, true} {
		r := chainRig(t)
		warnings := func() []string {
			out, err := r.answer(func(ctx context.Context) (*api.Applied, error) {
				return r.files.Apply(ctx, api.Apply{File: "heddle.yaml", Content: base, DryRun: dry})
			})
			if err != nil {
				t.Fatal(err)
			}
			return slices.DeleteFunc(out.Warnings, func(w string) bool {
				return !strings.Contains(w, "past the switch")
			})
		}
		if got := warnings(); len(got) > 0 {
			t.Errorf("with nothing there: %q", got)
		}
		on := func(name, driver, lower, master string) hostdev.Past {
			p := hostdev.Past{Device: hostdev.Device{Name: name, Driver: driver}, Lower: lower}
			if master != "" {
				p.Master = hostdev.Master{Name: master, Driver: "bridge"}
			}
			return p
		}
		r.dev.past = map[string][]hostdev.Past{
			"eno1":      {on("mv0", "macvlan", "eno1", ""), on("v10", "vlan", "eno1", "br0")},
			"elsewhere": {on("mv1", "macvlan", "elsewhere", "")},
		}
		got := warnings()
		if len(got) != 2 || !strings.Contains(got[0], "macvlan mv0 (on top of device eno1) sends past the switch") ||
			!strings.Contains(got[1], "vlan v10 (on top of device eno1, in bridge br0)") ||
			!strings.Contains(got[1], "/u1: ") {
			t.Errorf("dry run %v: %q", dry, got)
		}
		r.dev.past["eno1"] = slices.Repeat(r.dev.past["eno1"], 100)
		if got := warnings(); len(got) != mostWarned+1 {
			t.Errorf("%d warnings", len(got))
		}
	}
}
