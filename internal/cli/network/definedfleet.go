package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
)

// Setting is a setting of a switch or port group, as text.
type Setting struct {
	Field string `json:"field"`
	Value string `json:"value"`
	// From is the level that sets it; "" where the object does.
	From string `json:"from,omitempty"`
}

// FleetObject is a switch or a port group as all hosts have it.
type FleetObject struct {
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup,omitempty"`
	// Revision is that of the definition which declares it; 0 where the hosts' own files do.
	Revision int64 `json:"revision"`
	// Settings are those of most of the hosts that have the newest definition active.
	Settings []Setting       `json:"settings"`
	Hosts    []FleetObjectOn `json:"hosts"`
}

// FleetObjectOn is the same object on one host.
type FleetObjectOn struct {
	Host    string `json:"host"`
	Ports   int    `json:"ports"`
	PortsUp int    `json:"portsUp"`
	// Uplinks of a switch, with their states.
	Uplinks   []string `json:"uplinks,omitempty"`
	UplinksUp int      `json:"uplinksUp,omitempty"`
	// Differs are the settings that are others than those of most hosts.
	Differs []Setting `json:"differs"`

	settings []Setting
}

// switchEverywhere shows a switch as all hosts have it.
func switchEverywhere(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, name string) error {
	return objectEverywhere(d, c, t, o, FleetObject{Switch: name}, func(s *api.State) (on FleetObjectOn, _ string,
		err error) {
		sw, err := switchOf(s, name)
		if err != nil {
			return on, "", err
		}
		on = FleetObjectOn{Ports: sw.Ports, PortsUp: sw.PortsUp, Uplinks: uplinkStates(s, sw.Name),
			UplinksUp: sw.UplinksUp}
		rows := append([][2]string{{"kind", string(sw.Kind)}, {"mtu", strconv.Itoa(sw.MTU)},
			{"port groups", strconv.Itoa(sw.PortGroups)}}, switchChecks(sw)...)
		for _, r := range rows {
			on.settings = append(on.settings, Setting{Field: r[0], Value: r[1]})
		}
		return on, sw.Name, nil
	})
}

// portGroupEverywhere shows a port group as all hosts have it.
func portGroupEverywhere(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, name, sw string) error {
	return objectEverywhere(d, c, t, o, FleetObject{Switch: sw, PortGroup: name}, func(s *api.State) (on FleetObjectOn,
		_ string, err error) {
		g, err := portGroupOf(s, name, sw)
		if err != nil {
			return on, "", err
		}
		on = FleetObjectOn{Ports: g.Ports, PortsUp: g.PortsUp, settings: []Setting{
			{Field: "overlay segment", Value: cli.Dash(VNIText(g.VNI))},
			{Field: "a port may set", Value: strings.Join(g.Overrides, ", ")},
			{Field: "reset at disconnect", Value: strconv.FormatBool(g.Reset)}}}
		for _, r := range g.Policy {
			on.settings = append(on.settings, Setting{r.Policy, r.Value.String(), r.From.String()})
		}
		return on, g.Switch, nil
	})
}

// objectEverywhere asks all hosts for an object and shows where they agree, and where not. on is how a host has it,
// with the switch that it is of.
func objectEverywhere(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, obj FleetObject,
	on func(*api.State) (FleetObjectOn, string, error)) error {
	list, away, err := cli.AskHosts(c, t, func(t *cli.Target) (one FleetObjectOn, err error) {
		s, err := t.State(c)
		if err != nil {
			return one, err
		}
		one, one.Host, err = on(s)
		return one, err
	})
	if err != nil {
		return away.With(d, err)
	}
	for _, s := range list {
		one := s.Answer
		if obj.Switch == "" {
			obj.Switch = one.Host
		}
		if one.Host != obj.Switch { // the host has one of that name of another switch
			return cli.Usagef("several switches have %q: say which with --switch", obj.PortGroup)
		}
		one.Host = s.Host
		obj.Hosts = append(obj.Hosts, one)
	}
	if err := obj.compare(c, t); err != nil {
		return err
	}
	err = o.Print(d, obj, func(w io.Writer) error { return obj.write(w) })
	return errors.Join(err, away.Report(d))
}

// compare finds what most hosts have, and how the others differ. Hosts that have the newest definition active count
// where there are any.
func (f *FleetObject) compare(c *cobra.Command, t *cli.Target) error {
	fleet, err := t.Fleet()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
	defer cancel()
	hosts, err := fleet.Hosts(ctx)
	if err != nil {
		return err
	}
	definition, err := fleet.Definition(ctx)
	if err != nil {
		return err
	}
	f.Revision = f.definedBy(definition)
	newest := map[string]bool{}
	for _, h := range hosts.Hosts {
		newest[h.Name] = h.State == api.HostUp || h.State == api.HostWarning || h.State == api.HostDown
	}
	judges := slices.DeleteFunc(slices.Clone(f.Hosts), func(on FleetObjectOn) bool { return !newest[on.Host] })
	if len(judges) == 0 {
		judges = f.Hosts
	}
	f.Settings = usual(judges)
	for i := range f.Hosts {
		f.Hosts[i].Differs = differences(f.Settings, f.Hosts[i].settings)
	}
	return nil
}

// definedBy is the revision of the definition where that has the object, else 0.
func (f *FleetObject) definedBy(def *api.Definition) int64 {
	parsed, err := spec.ParseDefinition("the definition", []byte(def.Content))
	if err != nil {
		return 0
	}
	for _, sw := range parsed.Switches {
		if sw.Name == f.Switch && (f.PortGroup == "" || slices.ContainsFunc(sw.PortGroups, func(g spec.PortGroup) bool {
			return g.Name == f.PortGroup
		})) {
			return def.Revision
		}
	}
	return 0
}

// usual is the value of each setting that most hosts have, in the order of the first host; of equally many the first.
func usual(hosts []FleetObjectOn) []Setting {
	out := []Setting{}
	count := map[Setting]int{}
	at := map[string]int{}
	for _, h := range hosts {
		for _, s := range h.settings {
			count[s]++
			i, known := at[s.Field]
			switch {
			case !known:
				at[s.Field] = len(out)
				out = append(out, s)
			case count[s] > count[out[i]]:
				out[i] = s
			}
		}
	}
	return out
}

// differences are the settings of a host that are not the usual ones; a setting that it lacks has no value.
func differences(usual, own []Setting) []Setting {
	out, has := []Setting{}, map[string]bool{}
	for _, s := range own {
		has[s.Field] = true
		if !slices.Contains(usual, s) {
			out = append(out, s)
		}
	}
	for _, s := range usual {
		if !has[s.Field] {
			out = append(out, Setting{Field: s.Field})
		}
	}
	return out
}

// write shows the object: what hosts agree on, then each host.
func (f *FleetObject) write(w io.Writer) error {
	ports, up := 0, 0
	for _, h := range f.Hosts {
		ports, up = ports+h.Ports, up+h.PortsUp
	}
	declared := "the hosts' own files"
	if f.Revision > 0 {
		declared = fmt.Sprintf("the definition, revision %d", f.Revision)
	}
	rows := [][2]string{{"switch", f.Switch}, {"declared in", declared}, {"hosts", strconv.Itoa(len(f.Hosts))},
		{"ports up", cli.OutOf(up, ports)}}
	if f.PortGroup != "" {
		rows = append([][2]string{{"port group", f.PortGroup}}, rows...)
	} else {
		for _, s := range f.Settings {
			rows = append(rows, [2]string{s.Field, s.Value})
		}
	}
	if err := cli.Properties(w, rows); err != nil {
		return err
	}
	if f.PortGroup != "" {
		tab := &cli.Table{Head: []string{"POLICY", "VALUE", "FROM"}, Keep: map[int]bool{0: true}}
		for _, s := range f.Settings {
			tab.Add(s.Field, cli.Dash(s.Value), cli.Dash(s.From))
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := tab.Write(w); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return f.table().Write(w)
}

// table has a line for each host.
func (f *FleetObject) table() *cli.Table {
	head := []string{"HOST", "PORTS UP", "UPLINKS", "DIFFERS"}
	tab := &cli.Table{Head: head, Keep: cli.Columns(head, "PORTS UP"), Names: cli.Columns(head, "HOST")}
	for _, h := range f.Hosts {
		var differs []string
		for _, s := range h.Differs {
			text := s.Field + ": " + cli.Dash(s.Value)
			if s.From != "" {
				text += " (" + s.From + ")"
			}
			differs = append(differs, text)
		}
		tab.Add(h.Host, cli.OutOf(h.PortsUp, h.Ports), cli.Dash(strings.Join(h.Uplinks, ", ")),
			cli.Dash(strings.Join(differs, "; ")))
	}
	if f.PortGroup != "" {
		cli.LeaveOut("UPLINKS")(tab)
	}
	return tab
}
