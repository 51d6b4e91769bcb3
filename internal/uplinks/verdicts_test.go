package uplinks

import (
	"testing"

	"heddle/internal/plan"
)

func TestVerdicts_AnUplinkIsOutWhileAnyoneSaysSo(t *testing.T) {
	v, u := Verdicts{}, plan.PortID{Switch: "s", Name: "u1"}
	steps := []struct {
		by, why string
		isNew   bool
		want    string
	}{
		{"lacp", "", false, ""},
		{"lacp", "no partner", true, "no partner"},
		{"lacp", "no partner", false, "no partner"},
		{"beacon", "three beacons lost", true, "three beacons lost"},
		{"beacon", "", true, "no partner"},
		{"lacp", "", true, ""},
	}
	for _, s := range steps {
		if got := v.Set(u, s.by, s.why); got != s.isNew || v.Why(u) != s.want {
			t.Errorf("%s says %q: new %v, out %q; want %v, %q", s.by, s.why, got, v.Why(u), s.isNew, s.want)
		}
	}
}
