package tree

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
)

// advices are hosts that find the same, one of them something more.
func advices() map[string]*standIn {
	mtu := func(sign string) api.Finding {
		return api.Finding{Rule: "mtu", Level: api.FindingNote, Switch: "dvs", Uplink: "uplink1", Now: true, Sign: sign,
			Why: "Large frames are lost.", Change: "Raise it.", Command: "heddle uplink list"}
	}
	one := api.Advice{Rules: 22, Ports: 3, Uplinks: 1, SinceSeconds: 600, Findings: []api.Finding{mtu("1500 bytes")}}
	two := api.Advice{Rules: 22, Ports: 4, Uplinks: 2, SinceSeconds: 600, Older: 1, More: map[string]int{"mtu": 2},
		Findings: []api.Finding{{Rule: "forged-transmits", Level: api.FindingWrong, Switch: "dvs", Port: "vm1/eth0",
			Now: true, Sign: "5 frames", Why: "They are lost.", Change: "Let it.",
			Command: "heddle port show vm1/eth0"},
			mtu("1400 bytes")}}
	return map[string]*standIn{"esx1": {advice: one}, "esx2": {advice: two}}
}

// The findings of all hosts are shown together: those that are alike once, with what each host has measured.
func TestAdvise_OfAllHosts(t *testing.T) {
	f := newFleetStand(t, advices())
	f.says(1, `wrong  forged-transmits: port vm1/eth0 of switch dvs on host esx2
  measured: 5 frames
  so:       They are lost.
  change:   Let it.
  command:  heddle port show vm1/eth0

note  mtu: uplink uplink1 of switch dvs on hosts esx1, esx2
  measured: esx1: 1500 bytes
  measured: esx2: 1400 bytes
  so:       Large frames are lost.
  change:   Raise it.
  command:  heddle uplink list

and 2 more of mtu

3 findings. Checked 22 rules on 7 ports and 3 uplinks of 2 hosts.
The commands are those of the hosts that are named.
The counters are those since each port was connected.
1 older finding was not seen in the last 10m; heddle advise --all shows it.
`, "", "advise")
	one, _, status := f.run("advise", "--host", "esx1")
	if status != 0 || one == "" {
		t.Errorf("of one host: status %d, %s", status, one)
	}
}

// In JSON each finding has its host; hosts that do not answer are named, and are no success.
func TestAdvise_OfAllHostsAsJSON(t *testing.T) {
	hosts := advices()
	delete(hosts, "esx2")
	hosts["esx3"] = nil
	f := newFleetStand(t, hosts)
	out, errs, status := f.run("advise", "-o", "json")
	var got struct {
		Hosts, Ports int
		Away         []string
		Findings     []struct{ Host, Rule, Sign string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Hosts != 1 || got.Ports != 3 || !slices.Equal(got.Away, []string{"esx3"}) || len(got.Findings) != 1 ||
		got.Findings[0].Host != "esx1" || got.Findings[0].Sign != "1500 bytes" {
		t.Errorf("%s", out)
	}
	if status != 1 || errs == "" {
		t.Errorf("status %d, %q", status, errs)
	}
}

// Nothing was found, and a part of the cluster was not asked: that is not said to be well.
func TestAdvise_OfAPartOfTheClusterIsNoWordAboutTheRest(t *testing.T) {
	well := func() map[string]*standIn { return map[string]*standIn{"esx1": {advice: api.Advice{Rules: 22}}} }
	for name, make := range map[string]func(*fleetStand){
		"a host":       func(f *fleetStand) { f.hosts["esx3"] = nil },
		"a controller": func(f *fleetStand) { f.unreachable = []string{"ctl2"} },
		"no majority":  func(f *fleetStand) { f.stale = "the controllers have no majority, so that this may be old" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleetStand(t, well())
			make(f)
			out, errs, status := f.run("advise")
			if status != 1 || strings.Contains(out, "No problems found") || !strings.Contains(out+errs,
				map[string]string{"a host": "host esx3", "a controller": "ctl2", "no majority": "no majority"}[name]) {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
	out, _, status := newFleetStand(t, well()).run("advise")
	if status != 0 || !strings.HasPrefix(out, "No problems found") {
		t.Errorf("of all: status %d\n%s", status, out)
	}
}
