package cluster

import (
	"testing"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// withSwitch is a report, or a change of one, with a switch.
func withSwitch[R *controllerv1.HostReport | *controllerv1.HostReportChange](r R, isolated string) R {
	list := []*controllerv1.HostSwitch{{Name: "s", Isolated: isolated}}
	switch r := any(r).(type) {
	case *controllerv1.HostReport:
		r.Switches = list
	case *controllerv1.HostReportChange:
		r.Switches = list
	}
	return r
}

// What a host has is sent once: the controller knows the rest.
func TestReported_SaysWhatIsAnother(t *testing.T) {
	port := func(name, state string) *controllerv1.HostPort {
		return &controllerv1.HostPort{Switch: "s", Name: name, State: state}
	}
	report := func(warning string, ports ...*controllerv1.HostPort) *controllerv1.HostReport {
		r := &controllerv1.HostReport{Ports: ports}
		if warning != "" {
			r.Warnings = []string{warning}
		}
		return r
	}
	k, err := reportedBy(report("", port("a", "up"), port("b", "up")))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name string
		now  *controllerv1.HostReport
		want *controllerv1.HostReportChange
	}{
		{"the same", report("", port("a", "up"), port("b", "up")), nil},
		{"in another order", report("", port("b", "up"), port("a", "up")), nil},
		{"a state", report("", port("a", "down"), port("b", "up")),
			&controllerv1.HostReportChange{Put: []*controllerv1.HostPort{port("a", "down")}}},
		{"a warning", report("w", port("a", "down"), port("b", "up")),
			&controllerv1.HostReportChange{Warnings: []string{"w"}}},
		{"one goes, one comes", report("w", port("a", "down"), port("c", "up")), &controllerv1.HostReportChange{
			Put: []*controllerv1.HostPort{port("c", "up")}, Warnings: []string{"w"},
			Removed: []*controllerv1.HostPortKey{{Switch: "s", Name: "b"}}}},
		{"a switch", withSwitch(report("w", port("a", "down"), port("c", "up")), "cut off"), withSwitch(
			&controllerv1.HostReportChange{Warnings: []string{"w"}}, "cut off")},
		{"the same switch", withSwitch(report("w", port("a", "down"), port("c", "up")), "cut off"), nil},
		{"none", report("w", port("a", "down"), port("c", "up")),
			&controllerv1.HostReportChange{Warnings: []string{"w"}}},
		{"the same again", report("w", port("a", "down"), port("c", "up")), nil},
		{"nothing left", report(""), &controllerv1.HostReportChange{
			Removed: []*controllerv1.HostPortKey{{Switch: "s", Name: "a"}, {Switch: "s", Name: "c"}}}},
	} {
		t.Run(step.name, func(t *testing.T) {
			got, err := k.change(step.now)
			if err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(got, step.want) || (got == nil) != (step.want == nil) {
				t.Errorf("%v, want %v", got, step.want)
			}
		})
	}
}
