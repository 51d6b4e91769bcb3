package part

import (
	"errors"
	"strings"
	"testing"

	"heddle/internal/agent/active"
	"heddle/internal/agent/cluster"
	"heddle/internal/overlay"
)

// talkative is the part of a feature that has the hooks of features.
type talkative struct{ kept }

func (w talkative) LeftCluster()          { w.say("left") }
func (w talkative) Settled(*active.Value) { w.say("settled") }
func (w talkative) Talks() []cluster.Talk { return []cluster.Talk{{About: w.name}} }
func (w talkative) Answer() string        { return w.name }
func (w talkative) Prefer(_ string, r overlay.Reach) overlay.Reach {
	w.say("prefer")
	return r
}

// A feature is called where it says, without a line in the core: between parts of the core, and behind another feature.
func TestAFeatureIsCalledBehindThePartThatItNames(t *testing.T) {
	var log []string
	var table Table
	makes := func(name string) func(Deps) (Part, error) {
		return func(Deps) (Part, error) { return talkative{kept{name, &log}}, nil }
	}
	table.Add("lacp", whole{kept{"lacp", &log}})
	table.Add("membership", whole{kept{"membership", &log}})
	if err := table.Extend([]Feature{{"firewall", "flows", makes("firewall")},
		{"router", "firewall", makes("router")}}, Deps{}); err != nil {
		t.Fatal(err)
	}
	table.Add("path-mtu", whole{kept{"path-mtu", &log}}) // the core's own keep their places
	table.Add("locations", kept{"locations", &log})
	if got := strings.Join(table.Names(), " "); got != "lacp path-mtu firewall router membership locations" {
		t.Errorf("the order is %s", got)
	}
	talks := table.Talks()
	if len(talks) != 2 || talks[0].About != "firewall" || talks[1].About != "router" {
		t.Errorf("talks: %+v", talks)
	}
	table.LeftCluster()
	table.Prefer("lab", overlay.Reach{})
	if got := strings.Join(log, ", "); got != "firewall left, router left, firewall prefer, router prefer" {
		t.Errorf("called: %s", got)
	}
	if a, has := Find[interface{ Answer() string }](&table); !has || a.Answer() != "firewall" {
		t.Errorf("who answers: %v, %v", a, has)
	}
	if _, has := Find[interface{ Unheard() }](&table); has {
		t.Error("somebody answers what nobody has")
	}
}

// A feature that has no place is refused when the agent starts, and so is one that cannot be made.
func TestAFeatureWithoutAPlaceIsRefused(t *testing.T) {
	var log []string
	fine := func(Deps) (Part, error) { return kept{"x", &log}, nil }
	for _, c := range []struct{ name, after, want string }{
		{"firewall", "nobody", "after nobody, and there is no such part"},
		{"flows", "lacp", "has the name of another part"},
		{"", "lacp", "start : no room"},
	} {
		var table Table
		makes := fine
		if c.name == "" {
			makes = func(Deps) (Part, error) { return nil, errors.New("no room") }
		}
		t.Run(c.want, func(t *testing.T) {
			err := table.Extend([]Feature{{c.name, c.after, makes}}, Deps{})
			if err == nil || !strings.Contains(err.Error(), c.want) || len(table.Names()) != 0 {
				t.Errorf("%s after %s: %v", c.name, c.after, err)
			}
		})
	}
}
