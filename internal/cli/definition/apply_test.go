package definition

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// What a change of the definition does is shown by object and field, with the hosts and ports that it concerns.
func TestDefinitionApply_ShowsWhatChangesAndWhere(t *testing.T) {
	out := &api.Defined{Revision: 7, Changes: []string{"portGroup dvs/web changed"}, Hosts: []string{"a", "b"},
		Objects: []api.DefinedObject{{Kind: "portGroup", Name: "dvs/web", Change: "changed", Fields: []api.DefinedField{
			{Field: "vlan.access", Old: "10", New: "30"}, {Field: "security.macChanges", New: `"accept"`},
			{Field: "teaming.active", Old: `["` + strings.Repeat("x", 80) + `"]`}}}},
		Kept: []string{"portGroup dvs/db has later, which this controller does not know and leaves as it is"},
		Affected: []api.AffectedGroup{{Switch: "dvs", PortGroup: "web", Hosts: 2, Ports: 3,
			Some: []string{"a/vm1", "b/vm2"}}},
		AtRisk:  []api.HostProblem{{Host: "b", Problems: []string{"vmk0 has addresses of the host's own"}}},
		Unknown: []api.HostProblem{{Host: "a", Problems: []string{"portGroup dvs/web: security.later"}}},
		Waiting: []api.HostProblem{{Host: "a", Problems: []string{"it is away"}}}}
	for _, c := range []struct {
		what string
		dry  bool
		end  string
	}{{"a dry run", true, "nothing was changed (dry run)\n"}, {"a change", false, "revision 7\n"}} {
		t.Run(c.what, func(t *testing.T) {
			var b strings.Builder
			if err := printDefined(cli.Deps{}, &b, out, c.dry); err != nil {
				t.Fatal(err)
			}
			want := "portGroup dvs/web changed\n  vlan.access: 10 → 30\n  security.macChanges: none → accept\n" +
				"  teaming.active: [\"" + strings.Repeat("x", 58) + "… → none\n" +
				"kept: portGroup dvs/db has later, which this controller does not know and leaves as it is\n" +
				"2 hosts concerned: a, b\n3 ports of dvs/web on 2 hosts: a/vm1, b/vm2 and 1 more\n" +
				"at risk on b: vmk0 has addresses of the host's own\n" +
				"unknown on a: portGroup dvs/web: security.later\n" + c.end + "not active on a: it is away\n"
			if got := b.String(); got != want {
				t.Errorf("it prints\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// On a terminal a line says for which hosts a change waits, and names some of many.
func TestDefinitionApply_NamesTheHostsThatItWaitsFor(t *testing.T) {
	list := &api.FleetHosts{Hosts: []api.FleetHost{{Name: "up", State: api.HostUp}}}
	if got := pendingLine(list); got != "" {
		t.Errorf("nobody is waited for: %q", got)
	}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		list.Hosts = append(list.Hosts, api.FleetHost{Name: name, State: api.HostPending})
	}
	if got, want := pendingLine(list), "waiting for 5 of 6 hosts: a, b, c, d and 1 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
