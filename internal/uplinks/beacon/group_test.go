package beacon

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

const groups = `
switches:
- name: s
  uplinks: [{name: u1}, {name: u2}, {name: u3}, {name: u4, vlans: ["20"]}, {name: u5}, {name: u6}, {name: u7}]
  lags: [{name: lag, uplinks: [u7]}]
  defaults: {teaming: {failureDetection: beacon}}
  portGroups:
  - {name: a, vlan: {access: 30}, teaming: {active: [u1, u2], standby: [u3]}}
  - {name: b, vlan: {trunk: ["0", "10-11"]}, teaming: {active: [u3, u4]}}
  - {name: apart, vlan: {none: true}, teaming: {active: [u5, u6]}}
  - {name: alone, teaming: {active: [u5], standby: []}}
  - {name: bundle, teaming: {active: [lag], standby: [u6]}}
  - {name: link, vlan: {access: 40}, teaming: {active: [u2, u5], failureDetection: link}}
  - {name: ad, vlan: {trunk: ["50"], outer: 802.1ad}, teaming: {active: [u5, u6]}}
  - {name: wide, vlan: {trunk: ["1-4094"]}, teaming: {active: [u1, u2]}}
ports:
%s`

func groupsOf(t *testing.T, ports ...string) (got []string) {
	t.Helper()
	var list strings.Builder
	for _, p := range ports {
		fmt.Fprintf(&list, "- {name: p-%s, switch: s, portGroup: %s}\n", p, p)
	}
	cfg, err := spec.Parse("t.yaml", fmt.Appendf(nil, groups, list.String()))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range Groups(p.Switches[0]) {
		s := ""
		for _, m := range g.Members {
			s += m.ID.Name + " "
		}
		got = append(got, s+fmt.Sprint(g.VLANs))
	}
	return got
}

func TestS51_GroupsAreUplinksThatTeamsHaveInCommon(t *testing.T) {
	for _, c := range []struct {
		ports []string
		want  []string
	}{
		{[]string{"a"}, []string{"u1 u2 u3 [30]"}},
		{[]string{"a", "b"}, []string{"u1 u2 u3 u4 [0 30 10 11]"}},
		{[]string{"a", "apart"}, []string{"u1 u2 u3 [30]", "u5 u6 [0]"}},
		{[]string{"alone"}, nil},
		{[]string{"bundle"}, nil},
		{[]string{"link"}, nil},
		{[]string{"ad"}, nil},
		{nil, nil},
	} {
		if got := groupsOf(t, c.ports...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %q, want %q", c.ports, got, c.want)
		}
	}
	wide := groupsOf(t, "wide", "a")
	if len(wide) != 1 || !strings.HasPrefix(wide[0], "u1 u2 u3 [30 1 2 ") || len(strings.Fields(wide[0])) != 3+
		MaxVLANs {
		t.Errorf("a wide trunk: %q", wide)
	}
}
