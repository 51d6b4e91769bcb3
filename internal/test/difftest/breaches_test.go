package difftest

import (
	"testing"

	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// breaches gives f every way in which a copy can break out, each with an outcome that does so.
func breaches(t *testing.T, f func(name string, at plan.PortID, frame []byte, o Outcome, g *Isolation)) {
	t.Helper()
	c := &spec.Config{Switches: []spec.Switch{
		{Name: "s", Uplinks: []spec.Uplink{{Name: "u1"}, {Name: "u2"}, {Name: "u3", VLANs: []string{"20"}},
			{Name: "u4", Blocked: true}, {Name: "u5"}, {Name: "u6"}, {Name: "u7"}},
			LAGs:       []spec.LAG{{Name: "lag", Uplinks: []string{"u5"}}},
			PortGroups: []spec.PortGroup{{Name: "g", Overrides: spec.Overrides{VLAN: true, Teaming: true}}}},
		{Name: "other", PortGroups: []spec.PortGroup{{Name: "g"}}},
	}}
	port := func(name, sw string, p spec.Policy) {
		c.Ports = append(c.Ports, spec.Port{Name: name, Switch: sw, PortGroup: "g", Policy: p})
	}
	yes, active := true, []string{"u1", "u3", "u4"}
	in := func(v int) *spec.VLAN { return &spec.VLAN{Access: v} }
	port("a", "s", spec.Policy{VLAN: in(10), Teaming: spec.Teaming{Active: &active}})
	port("b", "s", spec.Policy{VLAN: in(20)})
	port("trunk", "s", spec.Policy{VLAN: &spec.VLAN{Trunk: []string{"10", "20"}}})
	port("blocked", "s", spec.Policy{VLAN: in(10), Blocked: &yes})
	port("looped", "s", spec.Policy{VLAN: in(10)})
	port("none", "s", spec.Policy{})
	port("out", "s", spec.Policy{VLAN: in(10), Teaming: spec.Teaming{Active: &[]string{"u6", "u7"}}})
	port("x", "other", spec.Policy{})
	p, err := plan.Resolve(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts := plan.Facts{}
	for _, u := range []string{"u1", "u2", "u3", "u4", "u5", "u6"} {
		facts[plan.PortID{Switch: "s", Name: u}] = plan.Fact{Up: true}
	}
	facts[plan.PortID{Switch: "s", Name: "u6"}] = plan.Fact{Up: true,
		Out: &problem.Problem{Code: problem.LACPNotInSync}}
	facts[plan.PortID{Switch: "s", Name: "looped"}] = plan.Fact{Up: true,
		LoopBlocked: &problem.Problem{Code: problem.LoopProbed}}
	g := NewIsolation(p, facts)
	plain := append(make([]byte, 12), 8, 0, 1, 2, 3, 4)
	tagged := func(v byte) []byte { return append(append(make([]byte, 12), 0x81, 0, 0, v), plain[12:]...) }
	for _, b := range []struct {
		name, from string
		in         []byte
		sw, to     string
		host       bool
		out        []byte
	}{
		{"another VLAN", "a", plain, "s", "b", false, plain},
		{"untagged segment", "a", plain, "s", "none", false, plain},
		{"trunk with the wrong tag", "a", plain, "s", "trunk", false, tagged(20)},
		{"trunk without a tag", "a", plain, "s", "trunk", false, plain},
		{"blocked port", "a", plain, "s", "blocked", false, plain},
		{"from a blocked port", "blocked", plain, "s", "a", false, plain},
		{"port that a loop goes through", "a", plain, "s", "looped", false, plain},
		{"from a port that a loop goes through", "looped", plain, "s", "a", false, plain},
		{"another switch", "none", plain, "other", "x", false, plain},
		{"the sender", "a", plain, "s", "a", false, plain},
		{"uplink out of the team", "a", plain, "s", "u2", false, tagged(10)},
		{"uplink that does not carry the VLAN", "a", plain, "s", "u3", false, tagged(10)},
		{"blocked uplink", "a", plain, "s", "u4", false, tagged(10)},
		{"uplink without the tag", "a", plain, "s", "u1", false, plain},
		{"a member of a LAG out of the team", "a", plain, "s", "u5", false, tagged(10)},
		{"uplink that is out", "out", plain, "s", "u6", false, tagged(10)},
		{"uplink that is down", "out", plain, "s", "u7", false, tagged(10)},
		{"uplink to uplink", "u1", tagged(10), "s", "u2", false, tagged(10)},
		{"uplink range on the way in", "u3", tagged(10), "s", "a", false, plain},
		{"from a blocked uplink", "u4", tagged(10), "s", "a", false, plain},
		{"port to the host's stack", "a", plain, "s", "u1", true, plain},
		{"access port that hops", "a", tagged(20), "s", "b", false, plain},
		{"nobody", "a", plain, "s", "zz", false, plain},
	} {
		o := Outcome{Delivered: true,
			Copies: []model.Copy{{To: plan.PortID{Switch: b.sw, Name: b.to}, HostStack: b.host, Frame: b.out}}}
		f(b.name, plan.PortID{Switch: "s", Name: b.from}, b.in, o, g)
	}
}
