package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
)

// TestFaultsOfThePortInTheWordsOfTheCommandLine: a user who wrote --port-group does not read ports[vm3/eth0].portGroup.
func TestFaultsOfThePortInTheWordsOfTheCommandLine(t *testing.T) {
	s := furnished()
	c := newConsole(t, s)
	connect := "port connect vm3/eth0 --port-group wbe --device d0 --mac 02:00:00:00:07:00 --active u1,u9 " +
		"--mac-limit 9999 "
	for _, v := range []struct{ command, line, want string }{
		{connect, "ports[vm3/eth0].portGroup: wbe: switch lab has no such port group; did you mean web?",
			"heddle: --port-group wbe: switch lab has no such port group; did you mean web?"},
		{connect, "ports[vm3/eth0].switch: the switch the port belongs to is needed",
			"heddle: --switch: the switch the port belongs to is needed"},
		{connect, "ports[vm3/eth0].mac: 02:00:00:00:07:00: port a has this MAC",
			"heddle: --mac 02:00:00:00:07:00: port a has this MAC"},
		{connect, "ports[vm3/eth0].teaming.active[1]: u9: switch lab has no uplink u9",
			"heddle: --active u9: switch lab has no uplink u9"},
		{connect, "ports[vm3/eth0].security.macLearning.limit: 9999: 0–4096", "heddle: --mac-limit 9999: 0–4096"},
		{connect, "ports[vm3/eth0].name: vm3/eth0: an uplink has this name",
			"heddle: port vm3/eth0: name: vm3/eth0: an uplink has this name"},
		{connect, "ports[other].device: d0: port a has it", "heddle: ports[other].device: d0: port a has it"},
		{connect, "heddle.yaml:3:4: ports[vm3/eth0].mac: 1: no", "heddle.yaml:3:4: ports[vm3/eth0].mac: 1: no"},
		{"port move vm3/eth0 --port-group wbe", "ports[vm3/eth0].portGroup: wbe: no such",
			"heddle: --port-group wbe: no such"},
		{"port block vm3/eth0", "ports[vm3/eth0].blocked: the port group does not allow it",
			"heddle: port vm3/eth0: blocked: the port group does not allow it"},
	} {
		t.Run(v.line, func(t *testing.T) {
			s.err = api.NewError(api.NotFound, v.line)
			if strings.Contains(v.line, ".yaml:") {
				s.err = api.NewError(api.Invalid, v.line)
			}
			_, errs, status := c.run(strings.Fields(v.command)...)
			if want := cli.ExitStatus(s.err); errs != v.want+"\n" || status != want {
				t.Errorf("status %d, want %d\ngot  %swant %s", status, want, errs, v.want)
			}
		})
	}
}

// TestOnlyPlacesInFilesStandBeforeAnError: a line of an error that does not begin with a position in a file begins with
// the program's name.
func TestOnlyPlacesInFilesStandBeforeAnError(t *testing.T) {
	s := furnished()
	s.err = api.NewError(api.Invalid, "heddle.yaml:1:2: one", "heddle.yaml: two", "02:00:00:00:07:00 is three",
		"<stdin>:3:4: four")
	_, errs, _ := newConsole(t, s).run("port", "block", "p")
	want := "heddle.yaml:1:2: one\nheddle: heddle.yaml: two\nheddle: 02:00:00:00:07:00 is three\n<stdin>:3:4: four\n"
	if errs != want {
		t.Errorf("got\n%swant\n%s", errs, want)
	}
}

// TestWithoutAnAgentTheSwitchGoesOn: if an agent's pins exist, its switch forwards without it, and the command says so.
func TestWithoutAnAgentTheSwitchGoesOn(t *testing.T) {
	const forwards = "heddle: the switch goes on forwarding"
	c := newConsole(t, furnished())
	c.dir = t.TempDir()
	for _, command := range []string{"port list", "events", "flows list", "stats"} {
		if _, errs, status := c.run(strings.Fields(command)...); status != cli.ExitFailure ||
			!strings.Contains(errs, `start one with "heddle agent"`) || strings.Contains(errs, forwards) {
			t.Errorf("%s without pins: status %d, %s", command, status, errs)
		}
	}
	pins := instance.Paths{Run: c.dir}.Pins("test") + "/links"
	if err := os.MkdirAll(pins, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, errs, _ := c.run("port", "list"); strings.Contains(errs, forwards) {
		t.Errorf("with an empty directory: %s", errs)
	}
	if err := os.WriteFile(filepath.Join(pins, "2"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"port list", "events", "flows list", "stats"} {
		if _, errs, status := c.run(strings.Fields(command)...); status != cli.ExitFailure ||
			!strings.Contains(errs, forwards) {
			t.Errorf("%s with pins: status %d, %s", command, status, errs)
		}
	}
	if _, errs, _ := c.run("port", "list", "--agent", "other"); strings.Contains(errs, forwards) {
		t.Errorf("another agent: %s", errs)
	}
}

// TestAChangeOfAPortSaysWhatWasDone: in one line, and as JSON the agent's answer.
func TestAChangeOfAPortSaysWhatWasDone(t *testing.T) {
	s := furnished()
	s.state.Ports = append(s.state.Ports, api.Port{Switch: "lab", Name: "vm9", PortGroup: "db", Device: "tap9",
		VLAN: plan.VLAN{Mode: plan.VLANAccess, ID: 20}, State: api.Pending, Reason: "there is no device tap9"})
	c := newConsole(t, s)
	const about = "switch lab, port group db, VLAN access 20, device tap9, pending (there is no device tap9)\n"
	for command, want := range map[string]string{
		"port block vm1/eth0":                 "port vm1/eth0 is blocked\n",
		"port unblock vm1/eth0":               "port vm1/eth0 is unblocked\n",
		"port move vm1/eth0 --port-group db":  "port vm1/eth0 is in port group db\n",
		"port connect vm9 --port-group db":    "port vm9 is connected: " + about,
		"port connect vm10 --port-group db":   "port vm10 is connected\n", // the stand-in no longer has it
		"port connect vm9 --pg db -o json":    "{\n",
		"port activate vm9":                   "port vm9 waits for no migration: " + about,
		"port activate vm9 -o json":           "{\n",
		"port disconnect vm9":                 "port vm9 is disconnected; it was in port group db of switch lab\n",
		"port disconnect --device tap9":       "port vm9 is disconnected; it was in port group db of switch lab\n",
		"port disconnect vm9 -o json":         "{\n",
		"port block vm1/eth0 -o json":         "{\n",
		"port move vm1/eth0 --pg db -o json ": "{\n",
	} {
		t.Run(command, func(t *testing.T) {
			out := c.must(strings.Fields(command)...)
			if out != want && (want != "{\n" || !strings.HasPrefix(out, want)) {
				t.Errorf("got %q, want %q", out, want)
			}
		})
	}
}
