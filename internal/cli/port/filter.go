package port

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/known"
)

// portFilter selects and sorts the listed ports.
type portFilter struct {
	group, uplink, sort string
	states              []string
	vlan                int    // -1: any
	vni                 uint32 // 0: any
}

// portStates returns the states of a port, those that need attention first.
func portStates() []string {
	return []string{string(api.Down), string(api.Pending), string(api.Blocked), string(api.Waiting), string(api.Up)}
}

// portSorts returns the orders in which ports can be listed.
func portSorts() []string {
	return []string{"switch", "port", cli.PortGroup, "vlan", "state", "uplink", "problem"}
}

// portFilters adds the flags of a port filter.
func portFilters(c *cobra.Command) func(*api.State, []api.Port) ([]api.Port, error) {
	f := &portFilter{}
	flags := c.Flags()
	flags.StringVar(&f.group, cli.PortGroup, "", "only of this port group")
	flags.StringSliceVar(&f.states, "state", nil, "only in these states: "+cli.AnyOf(portStates()))
	vlanFlag(c, &f.vlan, "only ports that carry this VLAN, with --vni inside the segment")
	flags.Uint32Var(&f.vni, "vni", 0, "only ports in this overlay segment")
	flags.StringVar(&f.uplink, "uplink", "", "only ports whose frames leave by this uplink now")
	flags.StringVar(&f.sort, "sort", "", "order by "+cli.AnyOf(portSorts())+" (default: as the agent has them)")
	cli.CompleteWords(c, "state", portStates())
	cli.CompleteWords(c, "sort", portSorts())
	return func(s *api.State, list []api.Port) ([]api.Port, error) {
		sw := c.Flag("switch").Value.String()
		if err := f.check(c, s, sw); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(slices.Clone(list), func(p api.Port) bool { return !f.keeps(p) })
		f.order(list, time.Now())
		return list, nil
	}
}

// vlanFlag adds --vlan, which selects by a VLAN; -1 is any.
func vlanFlag(c *cobra.Command, vlan *int, usage string) {
	c.Flags().IntVar(vlan, "vlan", -1, usage+": 1–4094, or 0 for untagged frames")
	c.Flags().Lookup("vlan").DefValue = "any"
}

// vlanGiven returns an error if the value of --vlan is not a VLAN.
func vlanGiven(c *cobra.Command, vlan int) error {
	if c.Flags().Changed("vlan") && (vlan < 0 || vlan > 4094) {
		return cli.Usagef("--vlan %d: it is 1–4094, or 0 for untagged frames", vlan)
	}
	return nil
}

// check returns an error for a value that no port can have: an empty list would look as if everything were in order.
func (f *portFilter) check(c *cobra.Command, s *api.State, sw string) error {
	f.sort = cli.Spelt(f.sort)
	for _, state := range f.states {
		if !slices.Contains(portStates(), state) {
			return cli.Usagef("--state %q: use %s", state, cli.AnyOf(portStates()))
		}
	}
	if err := vlanGiven(c, f.vlan); err != nil {
		return err
	}
	if c.Flags().Changed("vni") && (f.vni < spec.MinVNI || f.vni > spec.MaxVNI) {
		return cli.Usagef("--vni %d: a VNI is %d–%d", f.vni, spec.MinVNI, spec.MaxVNI)
	}
	if f.sort != "" && !slices.Contains(portSorts(), f.sort) {
		return cli.Usagef("--sort %q: use %s", f.sort, cli.AnyOf(portSorts()))
	}
	if err := hasGroup(s, sw, f.group); err != nil {
		return err
	}
	return HasUplink(s, sw, f.uplink)
}

// hasGroup returns an error for a port group that the switch, "" for any, does not have; "" stands for all.
func hasGroup(s *api.State, sw, name string) error {
	n := known.Names{What: "port group"}
	for _, g := range s.PortGroups {
		if sw == "" || g.Switch == sw {
			n.All = append(n.All, g.Name)
		}
	}
	return missing(n, sw, name)
}

// HasUplink does the same for an uplink.
func HasUplink(s *api.State, sw, name string) error { return missing(cli.UplinksOf(s, sw), sw, name) }

// missing returns an error for a name of that switch, "" for any, that is none of these; "" stands for all of them.
func missing(n known.Names, sw, name string) error {
	if name == "" || slices.Contains(n.All, name) {
		return nil
	}
	if sw != "" {
		n.Owner = "switch " + known.Shown(sw)
	}
	return &cli.MissingError{Text: n.Missing(name)}
}

func (f *portFilter) keeps(p api.Port) bool {
	return (f.group == "" || p.PortGroup == f.group) &&
		(len(f.states) == 0 || slices.Contains(f.states, string(p.State))) &&
		(f.vlan < 0 || p.VNI == f.vni && carries(p.VLAN, uint16(f.vlan))) &&
		(f.vni == 0 || p.VNI == f.vni) &&
		(f.uplink == "" || slices.Contains(p.Uplinks, f.uplink))
}

// carries reports whether frames of that VLAN pass a port; 0 are untagged frames.
func carries(v plan.VLAN, id uint16) bool {
	switch v.Mode {
	case plan.VLANAccess:
		return v.ID == id
	case plan.VLANTrunk:
		return v.Set.Has(id)
	}
	return id == 0
}

// order sorts the ports; equal ports keep their order.
func (f *portFilter) order(list []api.Port, now time.Time) {
	var less func(a, b api.Port) int
	switch f.sort {
	case "switch":
		less = func(a, b api.Port) int { return strings.Compare(a.Switch, b.Switch) }
	case "port":
		less = func(a, b api.Port) int { return strings.Compare(a.Name, b.Name) }
	case cli.PortGroup:
		less = func(a, b api.Port) int { return strings.Compare(a.PortGroup, b.PortGroup) }
	case "vlan":
		less = func(a, b api.Port) int {
			return cmp.Or(cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.VLAN.Mode, b.VLAN.Mode),
				cmp.Compare(a.VLAN.ID, b.VLAN.ID))
		}
	case "state":
		at := func(p api.Port) int { return slices.Index(portStates(), string(p.State)) }
		less = func(a, b api.Port) int { return cmp.Compare(at(a), at(b)) }
	case "uplink":
		less = func(a, b api.Port) int { return slices.Compare(a.Uplinks, b.Uplinks) }
	case "problem": // those that have one first
		less = func(a, b api.Port) int {
			x, y := portProblem(a, now), portProblem(b, now)
			return cmp.Or(cmp.Compare(min(len(y), 1), min(len(x), 1)), strings.Compare(x, y))
		}
	default:
		return
	}
	slices.SortStableFunc(list, less)
}
