package cli

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
)

// Tables of a cluster fit a terminal of 100 columns whatever is in them, and no number is cut.
func TestTablesOfAClusterFit100Columns(t *testing.T) {
	const name = "esx-0012.rack-17.datacentre-2.customer-acme.example"
	long := strings.Repeat("a reason of some words ", 9)
	host := api.FleetHost{Name: name, State: api.HostOutOfSync, Agent: "0.1.0-20261123201530-abcdef012345 go1.26",
		Revision: 123456789012, Ports: 1234, Since: time.Now(), Controller: name, Problems: []string{long},
		Labels: map[string]string{"rack": name, "site": name}}
	static := api.StaticPort{Port: "1234567890", Switch: "production", PortGroup: name, State: "out-of-sync",
		Host: name, Name: name, VM: "0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f", Adapter: "net0", Conflict: long,
		Label: name}
	entry := api.AuditEntry{At: time.Now(), Who: name, From: "[2001:db8:1:2:3:4:5:6]:54321", Call: "ApplyDefinition",
		Objects: []string{name, long}, Result: "refused", Error: long, Times: 123456, Controller: name}
	other := entry
	other.Controller = "controller2"
	line := hostLine{host: name}
	line.Switch, line.Port, line.PortGroup = "production", name, name
	line.Counts.PacketsIn, line.Counts.BytesIn, line.Counts.PacketsOut = 123456789012, 123456789012345, 123456789012
	line.Counts.BytesOut, line.Counts.InDropped, line.Counts.Filtered = 123456789012345, 1234567, 1234567
	line.Rates = &stats.Rates{PacketsIn: 12345678, BytesIn: 1234567890, InDropped: 12345}
	for what, print := range map[string]func(d Deps, w io.Writer) error{
		"the audit log": func(d Deps, w io.Writer) error {
			return printAudit(d, w, &api.Audit{Entries: []api.AuditEntry{entry, other}})
		},
		"tokens": func(_ Deps, w io.Writer) error {
			return tokenTable([]api.AccessToken{{ID: "x5wrzq2k", Name: name, Role: "operator", Expires: time.Now(),
				By: name}}, time.Now()).write(w)
		},
		"hosts": func(_ Deps, w io.Writer) error {
			return hostTable(&api.FleetHosts{Hosts: []api.FleetHost{host}}).write(w)
		},
		"hosts of several controllers": func(_ Deps, w io.Writer) error {
			return hostTable(&api.FleetHosts{Hosts: []api.FleetHost{host}, Controllers: 3}).write(w)
		},
		"static ports": func(_ Deps, w io.Writer) error {
			return staticTable([]api.StaticPort{static}, false).write(w)
		},
		"counters": func(d Deps, w io.Writer) error {
			return statsTable(w, d, []hostLine{line, line}, stats.Port, true)
		},
		"rates": func(d Deps, w io.Writer) error {
			return ratesTable(w, d, []hostLine{line, line}, stats.Port, true)
		},
	} {
		t.Run(what, func(t *testing.T) {
			var out bytes.Buffer
			w := screen{&out, tableWidth}
			if err := print(Deps{Stdout: w, Stderr: io.Discard}, w); err != nil {
				t.Fatal(err)
			}
			for l := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(l, "\n")); n > tableWidth {
					t.Errorf("%d columns: %s", n, l)
				}
			}
			if cut := regexp.MustCompile(`(^|\s)[0-9.]+…`).FindString(out.String()); cut != "" {
				t.Errorf("a number is cut: %q\n%s", cut, out.String())
			}
		})
	}
}
