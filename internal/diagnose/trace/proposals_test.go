package trace

import (
	"slices"
	"strings"
	"testing"

	"heddle/internal/diagnose"
	"heddle/internal/spec"
)

// Proposed returns what traces propose for every reason: the commands, and the configuration file that they name. A
// package that imports the program runs them.
func Proposed(t *testing.T) (commands []string, file string) {
	t.Helper()
	for _, f := range faults() {
		h := host(t, f.config)
		if f.change != nil {
			f.change(h)
		}
		q := diagnose.Request{From: f.from, Frame: f.frame}
		if q.From == "" {
			q.From = "vm1"
		}
		if f.bytes != nil {
			q.Frames = [][]byte{f.bytes}
		}
		for _, c := range run(t, h, q).Frames[0].Causes {
			commands = append(commands, c.Command)
		}
	}
	for _, x := range otherVLANs() {
		commands = append(commands, x.cause(t).Command)
	}
	return commands, "lab.yaml"
}

// otherVLAN is a port, db 1, in another VLAN than the port that tries to reach it, in different states.
type otherVLAN struct {
	what    string
	change  func(*Host)
	groups  string // in addition
	edit    string
	command string
}

const portDB = "db 1"

func otherVLANs() []otherVLAN {
	runTime := func(h *Host) { h.RunTime[portDB] = spec.Port{Name: portDB, PortGroup: "db"} }
	moved := func(from string) func(*Host) {
		return func(h *Host) { h.ByCommand[portDB] = ByCommand{PortGroup: from} }
	}
	return []otherVLAN{
		{what: "in the file", edit: "port db 1: portGroup: web", command: apply},
		{what: "connected by command", change: runTime, command: "heddle port move 'db 1' --port-group web"},
		{what: "moved by command, and the file is right", change: moved("front end"),
			groups:  "{name: front end, vlan: {access: 10}}",
			command: "heddle port move 'db 1' --port-group 'front end'"},
		{what: "moved by command, and the file is wrong, too", change: moved("old"),
			groups: "{name: old, vlan: {access: 30}}", command: "heddle port move 'db 1' --port-group web"},
	}
}

// cause returns why a frame of vm1, which is in VLAN 10, does not reach the port.
func (x otherVLAN) cause(t *testing.T) diagnose.Cause {
	t.Helper()
	text := config("", "{name: db, vlan: {access: 20}}\n{name: web, vlan: {access: 10}}\n"+x.groups, "vm1 web")
	text += "- {name: db 1, switch: lab, portGroup: db, device: dev-db, mac: '02:00:00:00:00:09'}\n"
	h := host(t, text)
	if x.change != nil {
		x.change(h)
	}
	causes := run(t, h, diagnose.Request{From: "vm1", To: portDB}).Talk.Causes
	i := slices.IndexFunc(causes, func(c diagnose.Cause) bool { return c.Reason == otherSegment && c.Port == portDB })
	if i < 0 {
		t.Fatalf("%+v", causes)
	}
	return causes[i]
}

// A setting of the file is changed in the file: after a command the port would differ from the file.
func TestAPortInTheWrongVLANIsPutRightWhereItWasPutWrong(t *testing.T) {
	for _, x := range otherVLANs() {
		t.Run(x.what, func(t *testing.T) {
			c, edit := x.cause(t), ""
			if c.Edit != nil {
				edit = c.Edit.Object() + ": " + c.Edit.Set
			}
			if edit != x.edit || c.Command != x.command ||
				!strings.HasPrefix(c.Change, "Put the port into a port group of that VLAN") {
				t.Errorf("edit %q, command %q, %q; want %q, %q", edit, c.Command, c.Change, x.edit, x.command)
			}
		})
	}
}

func TestNamesInEditsAreYAML(t *testing.T) {
	for name, want := range map[string]string{"web": "web", "front end": "front end", "10": `"10"`,
		"a: b": `"a: b"`, "null": `"null"`, "1e3": `"1e3"`, "a:b": "a:b", "Zürich": "Zürich"} {
		t.Run(name, func(t *testing.T) {
			if got := yamlName(name); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// Two switches may have uplinks of one name: then a command must name the switch.
func TestACommandAboutAnUplinkSaysItsSwitchWhereItMust(t *testing.T) {
	h := host(t, "switches:\n- {name: lab, uplinks: [{name: u1, device: p1}, {name: u2, device: p2}], "+
		"portGroups: [{name: web}]}\n- {name: other, uplinks: [{name: u1, device: p3}], portGroups: [{name: web}]}\n"+
		"ports: []\n")
	tr := newTracer(h)
	for name, want := range map[string]string{"u1": "heddle uplink show u1 --switch lab",
		"u2": "heddle uplink show u2"} {
		t.Run(name, func(t *testing.T) {
			if got := tr.command(id(name), "uplink show"); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
