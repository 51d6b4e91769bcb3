package tree

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v4"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// evil is what a guest, a neighbour or a file may be called: it moves the cursor, sets the title, rings, turns the
// direction, ends lines, and colours as the program itself does.
const evil = "x\x1b[2J\x1b]0;pwn\a\u009b31m\u202egnp\u2066\u200f\u2028\x7f" + cli.Red + "\r\n\U000e0041"

// clean fails where a character is left that acts on a terminal.
func clean(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if i := strings.IndexFunc(line, func(r rune) bool {
			return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\t'
		}); i >= 0 {
			t.Errorf("%s: %q", what, line)
			return
		}
	}
}

// evilStandIn is furnished with names that no agent lets through today.
func evilStandIn() *standIn {
	s := furnished()
	st := &s.state
	st.Switches[0].Name, st.PortGroups[0].Name, st.Uplinks[0].Device = evil, evil, evil
	for i := range st.Ports {
		p := &st.Ports[i]
		p.Device, p.Reason, p.Violation, p.PortGroup = evil, evil, evil, evil
	}
	s.macs[0].Port, s.stats[0].Drops[0].Reason = evil, evil
	s.events = []api.Events{{Events: []event.Event{{Kind: event.Applied, Switch: "lab", Port: evil, Text: evil}}}}
	value := plan.FieldValueOf([]plan.Members{{{Name: evil, Value: plan.FieldValueOf(evil)}}})
	s.applied = api.Applied{Changes: []api.Change{{Kind: api.Changed, Field: evil, Old: value, New: value,
		Object: api.ObjectRef{Kind: api.UplinkObject, Switch: evil, Name: evil}}},
		Effects: []api.Effect{{Text: evil}}, Warnings: []string{evil}}
	s.trace = diagnose.Report{Agree: true, Notes: []string{evil}, From: evil}
	return s
}

func TestNoControlCharacterReachesATerminal(t *testing.T) {
	commands := append(listings(), []string{"events", "--no-follow"}, []string{"apply", "-f", "-"},
		[]string{"apply", "-f", "-", "--dry-run"},
		[]string{"trace", "--from", "vm1/eth0"}, []string{"port", "block", "vm1/eth0"},
		[]string{"port", "connect", evil, "--port-group", "web"})
	for _, colour := range []bool{false, true} {
		for _, args := range commands {
			for _, format := range []string{"", "json", "yaml"} {
				c := newConsole(t, evilStandIn())
				c.colour, c.stdin = colour, "switches: [{name: lab}]\n"
				if format != "" {
					args = append(args[:len(args):len(args)], "-o", format)
				}
				out, errs, _ := c.run(args...)
				if colour {
					// The program's own; that others' are escaped also here, printable's tests say.
					out = strings.NewReplacer(cli.Red, "", cli.Green, "", cli.Yellow, "", cli.Plain, "").Replace(out)
				}
				clean(t, strings.Join(args, " "), out)
				clean(t, strings.Join(args, " ")+", errors", errs)
				var v any
				if format == "json" && json.Valid([]byte(out)) {
					err := json.Unmarshal([]byte(out), &v)
					if err != nil {
						t.Errorf("%v: %v", args, err)
					}
				}
				if err := yaml.Unmarshal([]byte(out), &v); format == "yaml" && err != nil {
					t.Errorf("%v: %v", args, err)
				}
				if format != "" {
					args = args[:len(args)-2]
				}
			}
		}
	}
}

// Values come back as they were, from both.
func TestEscapesKeepValues(t *testing.T) {
	c := newConsole(t, evilStandIn())
	for format, read := range map[string]func([]byte, any) error{"json": json.Unmarshal,
		"yaml": func(b []byte, v any) error { return yaml.Unmarshal(b, v) }} {
		t.Run(format, func(t *testing.T) {
			var ports []struct {
				Device string `json:"device" yaml:"device"`
			}
			if err := read([]byte(c.must("port", "list", "-o", format)), &ports); err != nil || len(ports) != 2 ||
				ports[0].Device != evil {
				t.Errorf("%s: %q %v", format, ports, err)
			}
		})
	}
}

func TestNoControlCharacterInErrors(t *testing.T) {
	s := furnished()
	s.err = errors.Join(errors.New(evil), api.NewError(api.Invalid, evil, evil))
	c := newConsole(t, s)
	c.stdin = "switches: [{name: lab}]\n"
	domain := `<domain><name>` + strings.NewReplacer("\x1b", "", "\a", "", "\x7f", "").Replace(evil) +
		`</name></domain>`
	for _, args := range [][]string{{"port", "list"}, {"port", "show", evil}, {"switch", "show", evil},
		{"mac", "show", evil}, {"stats", evil}, {evil}, {"port", evil},
		{"port", "list", "--" + evil}, {"port", "list", "-o", evil}, {"check", "-f", evil}, {"apply", "-f", evil},
		{"apply", "-f", "-"}, {"trace", "--from", evil},
		{"trace", "--from", "a", "--hex", evil}, {"trace", "--from", "a", "--pcap", evil},
		{"trace", "--from", "a", "--ip", evil}, {"capture", evil},
		{"capture", "--filter", evil}, {"events", evil}, {"port", "list", "--agent", evil},
		{"port", "move", evil, "--to", evil}, {"port", "disconnect", evil},
		{"libvirt-hook", evil, evil, evil, evil}, {"libvirt-hook", evil, "prepare", "begin", "-"},
		{"flows", "list", "--port", evil}, {"lab", "up", evil},
		{"lab", "run", evil}, {"uplink", "show", evil}, {"show", "effective", evil}, {"host-port", "adopt", evil},
		{"agent", "--name", evil}} {
		if args[0] == "libvirt-hook" {
			c.stdin = domain
		}
		out, errs, status := c.run(args...)
		if status == 0 && args[0] != "libvirt-hook" { // which leaves domains alone that name no port group
			t.Errorf("%q succeeds", args)
		}
		clean(t, strings.Join(args, " "), out)
		clean(t, strings.Join(args, " ")+", errors", errs)
	}
}
