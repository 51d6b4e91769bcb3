package tree

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

func TestStats_ColoursWhatWasLost(t *testing.T) {
	s := furnished()
	s.stats = append(s.stats, api.Stats{Switch: "lab", Name: "uplink1", Uplink: true,
		Counters: []api.Counter{{Name: "packetsOutDropped", Value: 9}},
		Refused:  []api.ReasonNo{{Reason: "reverse-path", Value: 9}},
		Device:   &api.DeviceLosses{Device: "eno1", RxDropped: 4, TxDropped: 5}})
	c := newConsole(t, s)
	bare := c.must("stats")
	c.colour = true
	list := c.must("stats")
	if strings.NewReplacer(cli.Yellow, "", cli.Plain, "").Replace(list) != bare {
		t.Errorf("colours move the columns:\n%q", list)
	}
	for _, want := range []string{cli.Yellow + "       7" + cli.Plain, cli.Yellow + "   5" + cli.Plain} {
		if !strings.Contains(list, want) {
			t.Errorf("no %q in\n%q", want, list)
		}
	}
	if n := strings.Count(list, cli.Yellow); n != 2 {
		t.Errorf("%d cells are coloured, also such as are left out by design:\n%q", n, list)
	}
	one := c.must("stats", "vm1/eth0")
	if !strings.Contains(one, "dropped, forged-transmit  "+cli.Yellow+"    7"+cli.Plain) || strings.Count(one,
		cli.Yellow) != 1 {
		t.Errorf("one port:\n%q", one)
	}
	uplink := c.must("stats", "uplink1")
	if strings.Count(uplink, cli.Yellow) != 1 || !strings.Contains(uplink, "tx dropped") {
		t.Errorf("the uplink:\n%q", uplink)
	}
}

func TestPortShow_SaysHowManyMACsAreLearned(t *testing.T) {
	s := furnished()
	learns := []plan.Row{{Policy: "security.macLearning.enabled", Value: plan.FieldValueOf(true)},
		{Policy: "security.macLearning.limit", Value: plan.FieldValueOf(1)}}
	c := newConsole(t, s)
	if out := c.must("port", "show", "vm1/eth0"); !strings.Contains(out, "learned macs") {
		t.Errorf("a port that learned before says nothing of it:\n%s", out)
	}
	s.state.Ports[0].Effective = learns
	if out := c.must("port", "show", "vm1/eth0"); !strings.Contains(out, "1 of 1") {
		t.Errorf("no limit:\n%s", out)
	}
	var shown struct {
		Name    string `json:"name"`
		Learned *struct{ Held, Limit int }
	}
	if err := json.Unmarshal([]byte(c.must("port", "show", "vm1/eth0", "-o", "json")), &shown); err != nil ||
		shown.Name != "vm1/eth0" || shown.Learned == nil || shown.Learned.Held != 1 || shown.Learned.Limit != 1 {
		t.Errorf("%v: %+v", err, shown)
	}
	c.colour = true
	if out := c.must("port", "show", "vm1/eth0"); !strings.Contains(out, cli.Yellow+"1 of 1"+cli.Plain) {
		t.Errorf("a full table is not coloured:\n%q", out)
	}
}

func TestCheckAndDryRun_NotePoliciesThatAreSeldomMeant(t *testing.T) {
	const file = "switches: [{name: lab, kind: distributed, portGroups: [{name: web, security: {macLearning: " +
		"{enabled: true}}}]}]\n"
	path := filepath.Join(t.TempDir(), "heddle.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := furnished()
	s.applied = api.Applied{DryRun: true, Notes: []string{"seldom meant"}}
	c := newConsole(t, s)
	_, errs, status := c.run("check", "-f", path)
	if status != cli.ExitOK || !strings.HasPrefix(errs,
		"heddle: note: "+path+":1:56: switches[lab].portGroups[web]: MAC "+
			"learning is on and forged transmits are rejected") {
		t.Errorf("status %d: %s", status, errs)
	}
	if _, errs, _ := c.run("apply", "--dry-run", "-f", path); !strings.Contains(errs, "heddle: note: seldom meant\n") {
		t.Errorf("dry run: %s", errs)
	}
}

// A check asks an agent that runs what it hears, and does without where none does.
func TestCheck_NotesAVLANThatThePhysicalSwitchDoesNotAnnounce(t *testing.T) {
	const file = "switches: [{name: lab, uplinks: [{name: uplink1, device: eno1}], " +
		"portGroups: [{name: web, vlan: {access: 20}}, {name: db, vlan: {access: 10}}]}]\n"
	path := filepath.Join(t.TempDir(), "heddle.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	s := furnished()
	s.state.Uplinks = []api.Uplink{{Switch: "other", Name: "u7", Device: "eno1", LLDP: &api.LLDP{
		Neighbours: []api.Neighbour{{SystemName: "tor1", Port: "eth7", VLANs: []api.NeighbourVLAN{{ID: 10}}}}}}}
	c := newConsole(t, s)
	_, errs, status := c.run("check", "-f", path)
	want :=
		"heddle: note: switch lab, port group web: VLAN 20 is not among those that port eth7 of tor1 announces by " +
			"LLDP at uplink1: 10\n"
	if status != cli.ExitOK || errs != want {
		t.Errorf("status %d: %q, want %q", status, errs, want)
	}
	if _, errs, status := c.run("check", "-f", path, "--agent", "absent"); status != cli.ExitOK || errs != "" {
		t.Errorf("without an agent: status %d: %q", status, errs)
	}
}
