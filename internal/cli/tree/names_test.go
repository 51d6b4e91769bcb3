package tree

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/observe/event"
)

// TestNamesThatNothingHas: for a name that does not exist, every command lists the existing names, prints no table and
// has exit status 1.
func TestNamesThatNothingHas(t *testing.T) {
	s := furnished()
	s.state.Ports[1].Switch, s.state.Ports[1].Name = "lab", "vm2/eth0"
	s.state.PortGroups = append(s.state.PortGroups, api.PortGroup{Switch: "lab", Name: "db"})
	s.hostPorts = []api.HostPort{{Name: "vmk0", Switch: "lab"}}
	c := newConsole(t, s)
	for command, want := range map[string]string{
		"port show vm1/eht0":               "there is no port vm1/eht0; did you mean vm1/eth0?",
		"port show vm9":                    "there is no port vm9; there are vm1/eth0, vm2/eth0",
		"port show tap0":                   "there is no port tap0; tap0 is the device of vm1/eth0",
		"port show uplink1":                "there is no port uplink1; uplink1 is an uplink",
		"show effective vm9":               "there is no port vm9; there are vm1/eth0, vm2/eth0",
		"uplink show eno1":                 "there is no uplink eno1; eno1 is the device of uplink1",
		"uplink show x --switch lab":       "switch lab has no uplink x; it has uplink1",
		"uplink show uplink1 --switch lob": "there is no switch lob; did you mean lab?",
		"switch show foo":                  "there is no switch foo; there is lab",
		"port-group show wbe":              "there is no port group wbe; did you mean web?",
		"port-group show x --switch lab":   "switch lab has no port group x; it has db, web",
		"port-group show web --switch foo": "there is no switch foo; there is lab",
		"host-port show vmk":               "there is no host port vmk; there is vmk0",
		"stats vm9":                        "there is no port or uplink vm9; there is vm1/eth0",
		"stats eno1 --rates":               "there is no port or uplink eno1; eno1 is the device of uplink1",
		"stats --switch foo":               "there is no switch foo; there is lab",
		"port list --switch foo":           "there is no switch foo; there is lab",
		"port list --switch foo -o json":   "there is no switch foo; there is lab",
		"uplink list --switch foo":         "there is no switch foo; there is lab",
		"port-group list --switch foo":     "there is no switch foo; there is lab",
		"mac list --switch foo":            "there is no switch foo; there is lab",
		"mac list --port foo":              "there is no port or uplink foo; there are uplink1, vm1/eth0, vm2/eth0",
		"events --no-follow --port foo":    "there is no port or uplink foo; there are uplink1, vm1/eth0, vm2/eth0",
		"events --no-follow --port eno1":   "there is no port or uplink eno1; eno1 is the device of uplink1",
	} {
		t.Run(command, func(t *testing.T) {
			out, errs, status := c.run(strings.Fields(command)...)
			if status != cli.ExitFailure || out != "" || errs != "heddle: "+want+"\n" {
				t.Errorf("status %d, stdout %q\ngot  %swant heddle: %s", status, out, errs, want)
			}
		})
	}
}

// TestEvents_OfAPortThatIsGone: the name of a removed port is known while events about it are kept.
func TestEvents_OfAPortThatIsGone(t *testing.T) {
	s := furnished()
	s.events = []api.Events{{Events: []event.Event{{Seq: 1, Kind: event.Disconnected, Switch: "lab", Port: "old/eth0",
		Text: "port old/eth0 was disconnected"}}}}
	if out := newConsole(t, s).must("events", "--no-follow", "--port", "old/eth0"); !strings.Contains(out,
		"was disconnected") {
		t.Errorf("got %q", out)
	}
}

// TestAnEmptyListIsAList: a switch without uplinks has an empty list, also in JSON.
func TestAnEmptyListIsAList(t *testing.T) {
	s := furnished()
	s.state.Uplinks = nil
	if out := newConsole(t, s).must("uplink", "list", "--switch", "lab", "-o", "json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("an empty list is %q", out)
	}
}
