package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/port"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/across"
	"heddle/internal/plan"
	"heddle/internal/spec/printable"
)

// fleetTrace is one "heddle trace" over all hosts.
type fleetTrace struct {
	d    cli.Deps
	c    *cobra.Command
	t    *cli.Target
	o    *cli.Output
	all  []cli.Said[hostView]
	away *cli.Absent
	// moves says of ports that move between hosts which of them is meant.
	moves []string
}

// hostView is what one host knows of ends.
type hostView struct {
	state *api.State
	macs  []port.ShownMAC
}

// traceEverywhere traces from a port of one host to a port of another, or on the host that has both.
func traceEverywhere(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, f *traceFlags, q diagnose.Request,
	notes []string) error {
	x := &fleetTrace{d: d, c: c, t: t, o: o}
	var err error
	if x.all, x.away, err = cli.AskHosts(c, t, func(t *cli.Target) (v hostView, err error) {
		if v.state, err = t.State(c); err != nil {
			return v, err
		}
		list, err := port.MACsOf(c, t, func(api.MAC) bool { return true })
		if err == nil {
			v.macs, err = port.ShownMACs(c, t, list)
		}
		return v, err
	}); err != nil {
		return err
	}
	if f.pcap != "" {
		return x.file(f)
	}
	from, err := x.end(q.From)
	if err != nil {
		return err
	}
	if q.To == "" {
		q.From, notes = from.Port, append(notes, x.moves...)
		return traceOn(d, c, t.On(from.Host), o, f, q, append(notes, "only host "+from.Host+" answers: with TO, the "+
			"host of the receiver does as well"))
	}
	to, err := x.end(q.To)
	if err != nil {
		return err
	}
	notes = append(notes, x.moves...)
	if from.Host == to.Host {
		q.From, q.To = from.Port, to.Port
		return traceOn(d, c, t.On(from.Host), o, f, q, append(notes, "both are on host "+from.Host))
	}
	return x.across(from, to, q, notes, f.verbose)
}

// across traces between two hosts.
func (x *fleetTrace) across(from, to across.Station, q diagnose.Request, notes []string, verbose bool) error {
	for _, s := range []across.Station{from, to} {
		if s.MAC.IsZero() {
			return fmt.Errorf("the MAC of %s is not known: it has sent nothing yet", s.End)
		}
	}
	ask := func(_ context.Context, host string, q diagnose.Request) (*diagnose.Report, error) {
		return cli.Ask(x.c, x.t.On(host), func(ctx context.Context, s api.Service) (*diagnose.Report, error) {
			return s.Trace(ctx, q)
		})
	}
	var s *across.Story
	var err error
	if q.Frame == nil && len(q.Frames) == 0 {
		s, err = across.Talk(x.c.Context(), ask, from, to)
	} else {
		s, err = across.Frame(x.c.Context(), ask, from, to, q)
	}
	if err != nil {
		return err
	}
	s.Notes = append(notes, s.Notes...)
	if err := x.o.Print(x.d, s, func(w io.Writer) error { return printStory(x.d, w, s, verbose) }); err != nil {
		return err
	}
	if !s.Agree || s.Answer.Verdict == diagnose.No {
		return &cli.SilentError{Status: cli.ExitFailure}
	}
	return nil
}

// end finds an end of a trace: a port, by its name, or by the MAC or IP address of its guest; HOST:NAME where several
// hosts have one.
func (x *fleetTrace) end(text string) (across.Station, error) {
	var found []across.Station
	var ports []api.Port
	for _, s := range x.all {
		name := text
		if host, rest, ok := strings.Cut(text, ":"); ok && host == s.Host {
			name = rest
		}
		for _, p := range s.Answer.state.Ports {
			if p.Name == name || hasAddress(s.Answer.macs, p, name) {
				if host, _, ok := strings.Cut(text, ":"); ok && x.isHost(host) && s.Host != host {
					continue // HOST:NAME is that host's
				}
				found, ports = append(found, x.station(s, p, name)), append(ports, p)
			}
		}
	}
	if i := port.OfOneGuest(ports); len(found) > 1 && i >= 0 {
		x.moves = append(x.moves, port.MovesNote(found, ports, i))
		return found[i], nil
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		text := fmt.Sprintf("no host that answers has a port or guest %s (heddle port list)", printable.Text(text))
		return across.Station{}, errors.Join(&cli.MissingError{Text: text}, x.away.Report(x.d))
	}
	names := make([]string, len(found))
	for i, s := range found {
		names[i] = s.String()
	}
	return across.Station{}, cli.Usagef("%d hosts have %s: say which, as %s", len(found), text, strings.Join(names,
		" or "))
}

func (x *fleetTrace) isHost(name string) bool {
	return slices.ContainsFunc(x.all, func(s cli.Said[hostView]) bool { return s.Host == name })
}

// hasAddress says whether a MAC or IP address is of the guest at a port.
func hasAddress(list []port.ShownMAC, p api.Port, text string) bool {
	mac, bad := plan.ParseMAC(text)
	addr, errAddr := netip.ParseAddr(text)
	if bad != nil && errAddr != nil {
		return false
	}
	if bad == nil && p.MAC == mac.String() {
		return true
	}
	of := func(a string) bool {
		a, _, _ = strings.Cut(a, "/")
		known, err := netip.ParseAddr(a)
		return err == nil && errAddr == nil && known == addr
	}
	return slices.ContainsFunc(port.OwnAddresses(p), of) || slices.ContainsFunc(list, func(m port.ShownMAC) bool {
		return m.Switch == p.Switch && m.Port == p.Name &&
			(bad == nil && m.MAC.MAC == mac.String() || slices.ContainsFunc(m.Addresses, of))
	})
}

// station is what is known of a port, which was named by text.
func (x *fleetTrace) station(s cli.Said[hostView], p api.Port, text string) across.Station {
	out := across.Station{End: across.End{Host: s.Host, Switch: p.Switch, Port: p.Name}, VLAN: p.VLAN, Uses: p.Uplinks}
	if mac, err := plan.ParseMAC(p.MAC); err == nil {
		out.MAC = mac
	}
	if mac, err := plan.ParseMAC(text); err == nil {
		out.MAC = mac
	}
	addresses := port.OwnAddresses(p)
	for _, m := range s.Answer.macs {
		if m.Switch == p.Switch && m.Port == p.Name {
			addresses = append(addresses, m.Addresses...)
		}
	}
	if _, err := netip.ParseAddr(text); err == nil {
		addresses = append([]string{text}, addresses...)
	}
	for _, a := range addresses {
		bare, _, _ := strings.Cut(a, "/")
		addr, err := netip.ParseAddr(bare)
		switch {
		case err != nil:
		case addr.Is4() && !out.V4.IsValid():
			out.V4 = addr
		case addr.Is6() && !out.V6.IsValid():
			out.V6 = addr
		}
	}
	for _, u := range s.Answer.state.Uplinks {
		if u.Switch == p.Switch && u.State == api.Up {
			out.Uplinks = append(out.Uplinks, u.Name)
		}
	}
	return out
}
