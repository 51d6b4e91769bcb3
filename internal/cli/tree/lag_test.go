package tree

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/network"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// bundled returns a stand-in with a LAG of two members, one of them not used, and a separate uplink.
func bundled() *standIn {
	partner := &api.LACPInfo{System: "02:00:00:00:00:99", Key: 7}
	actor := api.LACPInfo{System: "02:00:00:00:00:01"}
	return &standIn{state: api.State{
		Switches: []api.Switch{{Name: "lab"}},
		Uplinks: []api.Uplink{
			{Switch: "lab", Name: "uplink1", Device: "eno1", State: api.Up, Speed: 25e9, MTU: 9000,
				MAC: "02:00:00:00:00:f1", VLANs: plan.AllVLANs(),
				LAG: &api.LAGMember{Name: "lag1", Used: true, Actor: actor, Partner: partner},
				LLDP: &api.LLDP{Neighbours: []api.Neighbour{{Chassis: "c", SystemName: "leaf1", Port: "Eth1/7"},
					{Chassis: "d", Port: "p"}}}},
			{Switch: "lab", Name: "uplink2", Device: "eno2", State: api.Out, Speed: 25e9,
				Reason: "lacp: no partner is heard", ReasonCode: problem.LACPNoPartner,
				LAG: &api.LAGMember{Name: "lag1", Reason: "lacp: no partner is heard",
					ReasonCode: problem.LACPNoPartner, Actor: actor}},
			{Switch: "lab", Name: "uplink3", Device: "eno3", State: api.Up, Speed: 1e8, LLDP: &api.LLDP{}},
		},
		Ports: []api.Port{{Switch: "lab", Name: "a", Uplinks: []string{"uplink1", "uplink3"}},
			{Switch: "lab", Name: "b", Uplinks: []string{"uplink1"}},
			{Switch: "dmz", Name: "c", Uplinks: []string{"uplink1"}}, {Switch: "lab", Name: "d"}},
	}}
}

func TestUplinkList_ShowsSpeedLAGPortsNeighbourAndProblem(t *testing.T) {
	c := newConsole(t, bundled())
	want := `SWITCH  UPLINK   DEVICE  STATE     SPEED  LAG   PORTS  NEIGHBOUR                PROBLEM
lab     uplink1  eno1    up      25 Gb/s  lag1      2  leaf1 Eth1/7 and 1 more  -
lab     uplink2  eno2    out     25 Gb/s  lag1      0  -                        lacp-no-partner
lab     uplink3  eno3    up     100 Mb/s  -         1  -                        -
`
	if d := cmp.Diff(want, c.must("uplink", "list")); d != "" {
		t.Error(d)
	}
	wide := strings.Split(c.must("uplink", "list", "-o", "wide"), "\n")
	for i, tail := range []string{"MTU MAC VLANS PROBLEM", "9000 02:00:00:00:00:f1 0-4094 -",
		"- - - lacp: no partner is heard"} {
		if got := strings.Join(strings.Fields(wide[i]), " "); !strings.HasSuffix(got, tail) {
			t.Errorf("wide, line %d: %s, want … %s", i, got, tail)
		}
	}
	if out := c.must("uplink", "show", "uplink1"); !strings.Contains(out, "25 Gb/s\n") {
		t.Errorf("show has no speed:\n%s", out)
	}
}

func TestLAGList(t *testing.T) {
	c := newConsole(t, bundled())
	want := `SWITCH  LAG   STATE     MEMBERS          USED      SPEED  PORTS  PARTNER                  PROBLEM
lab     lag1  degraded  uplink1,uplink2  1 of 2  25 Gb/s      2  02:00:00:00:00:99 key 7  uplink2 lacp-no-partner
`
	if d := cmp.Diff(want, c.must("lag", "list")); d != "" {
		t.Error(d)
	}
	var list []network.LAG
	if err := json.Unmarshal([]byte(c.must("lags", "ls", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].State != "degraded" || list[0].Speed != 25e9 || len(list[0].Members) != 2 {
		t.Errorf("%+v", list)
	}
}

func TestLAGShow(t *testing.T) {
	c := newConsole(t, bundled())
	out := c.must("lag", "show", "lag1")
	for _, want := range []string{"degraded\n", "1 of 2\n", "02:00:00:00:00:99 key 7\n",
		"uplink1, device eno1, up, used, at leaf1 Eth1/7 and 1 more\n",
		"uplink2, device eno2, out, not used: no partner is heard"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if _, errs, status := c.run("lag", "show", "lag2"); status != cli.ExitFailure ||
		!strings.Contains(errs, "there is no LAG lag2; there is lag1") {
		t.Errorf("status %d: %s", status, errs)
	}
}
