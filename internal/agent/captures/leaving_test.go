package captures

import (
	"strings"
	"testing"

	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// planOf has port vm of switch lab in that port group; "" for no port.
func planOf(group string) *plan.Plan {
	sw := &plan.Switch{Name: "lab"}
	if group != "" {
		sw.Ports = []*plan.Port{{ID: plan.PortID{Switch: "lab", Name: "vm"}, PortGroup: group}}
	}
	return &plan.Plan{Switches: []*plan.Switch{sw}}
}

// A capture goes on while its ports are where they were, also without them for a while, and is over as soon as one is
// in another port group.
func TestS117_ACaptureIsOverWhenItsPortIsInAnotherPortGroup(t *testing.T) {
	s := &dataplane.Selection{Ports: []plan.PortID{{Switch: "lab", Name: "vm"}, {Switch: "lab", Name: "u1"}}}
	for _, row := range []struct {
		name  string
		plans []string
		over  bool
	}{
		{"the same", []string{"web", "web"}, false},
		{"disconnected", []string{""}, false},
		{"connected again", []string{"", "web"}, false},
		{"another port group", []string{"db"}, true},
		{"back again", []string{"db", "web"}, true},
		{"connected again elsewhere", []string{"", "db"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			cs := New(Host{})
			w := cs.watch(planOf("web"), s)
			for _, group := range row.plans {
				cs.Planned(planOf(group))
			}
			if w.over() != row.over {
				t.Fatalf("over %v", w.over())
			}
			if row.over && !strings.Contains(w.why().Error(), "port vm is in port group db now") {
				t.Error(w.why())
			}
			if cs.unwatch(w); len(cs.watched) > 0 {
				t.Error("it is watched still")
			}
		})
	}
}
