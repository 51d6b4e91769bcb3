package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

func NewSegment(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("segment", "Overlay segments, and who is where in them",
		"  heddle segment list\n  heddle segment show 5000\n  heddle segment show web --mac 02:00:00:00:02:01\n"+
			"  heddle segment neighbours 5000 --contested")
	c.Long = "An overlay segment is what the port groups with one VNI share. The controllers know from the hosts " +
		"which MACs are behind whose ports, and tell each host that has ports in the segment."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newSegmentList(d, t), newSegmentShow(d, t), newSegmentNeighbours(d))
	return c
}

func newSegmentList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "list", Short: "List the overlay segments",
		Long: "List the overlay segments of the definition, and others that hosts have ports in. CONTESTED is how " +
			"many MACs several hosts say they have.",
		Example: "  heddle segment list\n  heddle segment list -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) ([]api.Segment, error) {
				return cli.NeverNil(f.Segments(ctx))
			}, func(w io.Writer, list []api.Segment) error { return segmentTable(list).Write(w) })
		},
	}
	o.Flag(c)
	return c
}

func segmentTable(list []api.Segment) *cli.Table {
	head := []string{"VNI", "SWITCH", "PORT GROUPS", "HOSTS", "MACS", "ADDRESSES", "CONTESTED"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "VNI", "HOSTS", "MACS", "ADDRESSES", "CONTESTED"),
		Names: cli.Columns(head, "SWITCH", "PORT GROUPS")}
	for _, s := range list {
		tab.Add(amount(s.VNI), cli.Dash(s.Switch), cli.Dash(strings.Join(s.PortGroups, ", ")), amount(s.Hosts),
			amount(s.MACs),
			amount(s.Addresses), amount(s.Contested))
	}
	return tab
}

func amount(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func newSegmentShow(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o, q := &cli.Output{}, api.SegmentQuery{}
	c := &cobra.Command{
		Use: "show VNI|PORT-GROUP", Short: "Show an overlay segment: its hosts, and who is where",
		Long: "Show an overlay segment, by its VNI or by one of its port groups: the hosts that have ports in it, " +
			"with their endpoints, and behind which host's ports each MAC is. A MAC's source is port where it is " +
			"the port's own, and learned where a frame came from it. VLAN is that inside the VNI, 0 for untagged " +
			"frames, any for the own MAC of a trunk port; the column is there if some MAC is in a tagged VLAN.",
		Example: "  heddle segment show 5000\n  heddle segment show dvs/web --host h2\n" +
			"  heddle segment show web --mac 02:00:00:00:02:01",
		Args: cli.Exactly("VNI or PORT-GROUP"),
		RunE: func(c *cobra.Command, args []string) error {
			if q.Limit < 1 || q.Limit > mostInSegment {
				return cli.Usagef("--limit %d: it is 1–%d", q.Limit, mostInSegment)
			}
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) (_ *api.SegmentDetail, err error) {
				if q.VNI, err = vniOf(ctx, f, args[0]); err != nil {
					return nil, err
				}
				s, err := f.Segment(ctx, q)
				if err != nil {
					return nil, err
				}
				return s, nobodyIn(s, q)
			}, printSegment)
		},
	}
	c.Flags().StringVar(&q.Key, "mac", "", "only this MAC or IP address")
	c.Flags().StringVar(&q.Host, "host", "", "only what is behind the ports of this host")
	c.Flags().Uint32Var(&q.Limit, "limit", 1000, fmt.Sprintf("how many MACs to show, 1 to %d", mostInSegment))
	o.Flag(c)
	return c
}

// mostInSegment is how many MACs a controller tells at most.
const mostInSegment = 10000

// nobodyIn is the error of a search in a segment that finds nobody.
func nobodyIn(s *api.SegmentDetail, q api.SegmentQuery) error {
	hosts := make([]string, 0, len(s.Members))
	for _, m := range s.Members {
		hosts = append(hosts, m.Host)
	}
	switch {
	case q.Host != "" && !slices.Contains(hosts, q.Host):
		return &cli.MissingError{Text: fmt.Sprintf("host %s has no port in VNI %d; there are %s",
			printable.Text(q.Host), q.VNI,
			cmp.Or(strings.Join(hosts, ", "), "none"))}
	case q.Key != "" && len(s.Locations) == 0:
		where := ""
		if q.Host != "" {
			where = " on host " + printable.Text(q.Host)
		}
		return &cli.MissingError{Text: fmt.Sprintf("nobody%s is known to have %s in VNI %d: it has not been heard, "+
			"or is in "+
			"another segment", where, printable.Text(q.Key), q.VNI)}
	}
	return nil
}

// vniOf is the VNI that an argument names: a number, or a port group as NAME or SWITCH/NAME.
func vniOf(ctx context.Context, f *api.Fleet, arg string) (uint32, error) {
	if vni, is, err := numberOfVNI(arg); is {
		return vni, err
	}
	list, err := f.Segments(ctx)
	if err != nil {
		return 0, err
	}
	return vniNamed(list, arg)
}

// numberOfVNI reads a VNI; is says that the argument is a number, and no name.
func numberOfVNI(arg string) (vni uint32, is bool, err error) {
	if strings.Trim(arg, "0123456789") != "" || arg == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(arg, 10, 32)
	if err != nil || n < spec.MinVNI || n > spec.MaxVNI {
		return 0, true, cli.Usagef("%s: a VNI is %d–%d", printable.Short(arg, 40), spec.MinVNI, spec.MaxVNI)
	}
	return uint32(n), true, nil
}

// vniNamed is the VNI of the segment that has a port group of that name: NAME or SWITCH/NAME.
func vniNamed(list []api.Segment, arg string) (uint32, error) {
	sw, group, whole := strings.Cut(arg, "/")
	if !whole {
		sw, group = "", arg
	}
	var found []api.Segment
	for _, s := range list {
		if slices.Contains(s.PortGroups, group) && (sw == "" || sw == s.Switch) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return 0, &cli.MissingError{Text: fmt.Sprintf("no port group %s has an overlay segment (heddle segment list)",
			printable.Text(arg))}
	case 1:
		return found[0].VNI, nil
	}
	var names []string
	for _, s := range found {
		names = append(names, s.Switch+"/"+group)
	}
	return 0, cli.Usagef("%d segments have a port group %s: say which, as %s", len(found), printable.Text(group),
		cli.Some(names))
}

func printSegment(w io.Writer, s *api.SegmentDetail) error {
	rows := [][2]string{{"vni", amount(s.Segment.VNI)}, {"switch", s.Segment.Switch},
		{"port groups", strings.Join(s.Segment.PortGroups, ", ")}, {"macs", amount(s.Segment.MACs)}}
	if s.Segment.Addresses > 0 {
		rows = append(rows, [2]string{"addresses", amount(s.Segment.Addresses)})
	}
	if err := cli.Properties(w, rows); err != nil {
		return err
	}
	if len(s.Members) == 0 {
		_, err := fmt.Fprintln(w, "\nno host has a port in it")
		return err
	}
	fmt.Fprintln(w)
	if err := membersTable(s.Members).Write(w); err != nil {
		return err
	}
	if len(s.Locations) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if err := locationsTable(s.Locations).Write(w); err != nil {
		return err
	}
	if s.LeftOff > 0 {
		_, err := fmt.Fprintf(w, "and %d more: see --limit, --host and --mac\n", s.LeftOff)
		return err
	}
	return nil
}

func membersTable(members []api.SegmentMember) *cli.Table {
	head := []string{"HOST", "CONNECTED", "MACS", "ENDPOINTS"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "MACS"), Keep: cli.Columns(head, "CONNECTED", "MACS"),
		Names: cli.Columns(head, "HOST")}
	for _, m := range members {
		connected, at := "yes", []string{}
		if !m.Connected {
			connected = "no"
		}
		for _, e := range m.At {
			text := e.Address
			if e.Down {
				text += " (down)"
			}
			at = append(at, text)
		}
		tab.Add(m.Host, connected, amount(m.MACs), cli.Dash(strings.Join(at, ", ")))
	}
	return tab
}

// vlanInside is a VLAN inside a VNI; nil is none in particular.
func vlanInside(vlan *uint16) string {
	if vlan == nil {
		return "any"
	}
	return strconv.Itoa(int(*vlan))
}

func locationsTable(list []api.SegmentLocation) *cli.Table {
	head := []string{"MAC", "HOST", "ENDPOINT", "SOURCE", "GENERATION", "SINCE", "ALSO CLAIMED BY"}
	vlans := slices.ContainsFunc(list, func(l api.SegmentLocation) bool { return l.VLAN != nil && *l.VLAN != 0 })
	if vlans {
		head = slices.Insert(head, 1, "VLAN")
	}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "VLAN", "GENERATION"),
		Keep: cli.Columns(head, "MAC", "VLAN", "HOST", "ENDPOINT"), Names: cli.Columns(head, "HOST", "ALSO CLAIMED BY")}
	for _, l := range list {
		key, since := l.Key, "-"
		if l.Owner != "" {
			key += " (" + l.Owner + ")"
		}
		if !l.Since.IsZero() {
			since = l.Since.Local().Format(time.DateTime)
		}
		row := []string{key, l.Host, cli.Dash(l.Endpoint), string(l.Source), strconv.FormatUint(l.Generation, 10),
			since,
			cli.Dash(strings.Join(l.Contested, ", "))}
		if vlans {
			row = slices.Insert(row, 1, vlanInside(l.VLAN))
		}
		tab.Add(row...)
	}
	return tab
}
