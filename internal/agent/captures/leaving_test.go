package captures

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/api/lookscope"
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

// activate has the plan with the port in that port group become active, or fail to.
func activate(t *testing.T, cs *Captures, group string, done bool) {
	t.Helper()
	if err := cs.Activating(planOf(group)); err != nil {
		t.Fatal(err)
	}
	cs.Activated(done)
}

// A capture begins by the port groups that the controller judged, and not by those that the port is in meanwhile.
func TestS117_ACaptureIsOfThePortGroupsThatWereJudged(t *testing.T) {
	s := &dataplane.Selection{Ports: []plan.PortID{{Switch: "lab", Name: "vm"}}}
	for _, row := range []struct {
		name, judged, wanted, applied string
		begins                        bool
	}{
		{"the same", "web", "web", "web", true},
		{"any", "", "web", "web", true},
		{"it has moved meanwhile", "web", "db", "db", false},
		{"it moves, and the kernel does not have it yet", "db", "db", "web", false},
		{"it moves, and the controller does not know it yet", "web", "db", "web", false},
		{"any, and it moves", "", "db", "web", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := api.ByController(t.Context())
			if row.judged != "" {
				ctx = lookscope.With(ctx, []lookscope.Group{{Switch: "lab", PortGroup: row.judged}})
			}
			cs := New(Host{Applied: func() *plan.Plan { return planOf(row.applied) }})
			_, err := cs.mayWatch(ctx, planOf(row.wanted), s)
			if (err == nil) != row.begins || len(cs.watched) > 0 != row.begins {
				t.Errorf("%v, %d are watched", err, len(cs.watched))
			}
		})
	}
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
				activate(t, cs, group, true)
			}
			if w.over() != row.over {
				t.Fatalf("over %v", w.over())
			}
			if row.over && !strings.Contains(w.why(0).Error(), "port vm is in port group db now") {
				t.Error(w.why(0))
			}
			if cs.unwatch(w); len(cs.watched) > 0 {
				t.Error("it is watched still")
			}
		})
	}
}
