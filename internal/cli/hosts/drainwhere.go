package hosts

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"heddle/internal/api"
	"heddle/internal/spec/printable"
)

const (
	// enoughTargets is how many hosts are named to which a guest could go.
	enoughTargets = 3
	// drainAsks is how many hosts are asked at a time for what they have.
	drainAsks = 8
)

// lacking is why a port could not go to a host.
type lacking struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// places finds for each guest of a host the first hosts that it could go to, and for those without any what each host
// lacks. Hosts are asked until every guest has enough.
func places(ctx context.Context, f *api.Fleet, from string, at *api.State, items []drainItem) error {
	guests := movable(items)
	if len(guests) == 0 {
		return nil
	}
	fleet, err := f.Hosts(ctx)
	if err != nil {
		return err
	}
	var others []api.FleetHost
	for _, h := range fleet.Hosts {
		switch {
		case h.Name == from:
		case h.State == api.HostDisconnected || h.State == api.HostDown:
			for _, g := range guests {
				g.Lacks = append(g.Lacks, lacking{h.Name, "the host is " + string(h.State)})
			}
		default:
			others = append(others, h)
		}
	}
	for batch := range slices.Chunk(others, drainAsks) {
		states := make([]*api.State, len(batch))
		var asking sync.WaitGroup
		for i, h := range batch {
			asking.Go(func() {
				if s, err := f.Host(h.Name).State(ctx); err == nil {
					states[i] = s
				}
			})
		}
		asking.Wait()
		enough := true
		for _, g := range guests {
			for i, h := range batch {
				g.place(h.Name, lacksFor(*g, at, states[i]))
			}
			enough = enough && len(g.Targets) >= enoughTargets
		}
		if enough || ctx.Err() != nil {
			break
		}
	}
	for _, g := range guests {
		g.Targets = g.Targets[:min(len(g.Targets), enoughTargets)]
	}
	return ctx.Err()
}

// movable are the guests among what is on a host.
func movable(items []drainItem) (guests []*drainItem) {
	for i := range items {
		if items[i].Kind == drainGuest {
			guests = append(guests, &items[i])
		}
	}
	return guests
}

// place records that a guest could go to a host, or why not.
func (i *drainItem) place(host, why string) {
	if why == "" {
		i.Targets = append(i.Targets, host)
		return
	}
	i.Lacks = append(i.Lacks, lacking{host, why})
}

// lacksFor says why a host can't take a port as it is at its own; "" where nothing is known against it. Prepare asks
// more: the target's limits for the MACs that the port has learned then.
func lacksFor(g drainItem, from, to *api.State) string {
	if to == nil {
		return "the host does not answer"
	}
	if !slices.ContainsFunc(to.Switches, func(s api.Switch) bool { return s.Name == g.Switch }) {
		return fmt.Sprintf("it has no switch %s", g.Switch)
	}
	group := func(p api.PortGroup) bool { return p.Switch == g.Switch && p.Name == g.portGroup }
	if !slices.ContainsFunc(to.PortGroups, group) {
		return fmt.Sprintf("its switch %s has no port group %s", g.Switch, g.portGroup)
	}
	for _, p := range to.Ports {
		if p.Switch == g.Switch && p.Name == g.Name && (g.VM == "" || p.VM != g.VM || p.Adapter != g.Adapter) {
			return "another guest has a port of that name there"
		}
	}
	if reaches(from, g.Switch) && !reaches(to, g.Switch) {
		return fmt.Sprintf("no uplink of its switch %s is up", g.Switch)
	}
	return ""
}

// reaches reports whether some uplink of a switch is up.
func reaches(s *api.State, sw string) bool {
	return slices.ContainsFunc(s.Uplinks, func(u api.Uplink) bool { return u.Switch == sw && u.State == api.Up })
}

// printStuck says of the guests that can't go anywhere what each host lacks.
func (h *DrainedHost) printStuck(w io.Writer) error {
	for _, i := range h.Items {
		if i.Kind != drainGuest || len(i.Targets) > 0 {
			continue
		}
		line := "no other host is known"
		if len(i.Lacks) > 0 {
			var all []string
			for _, l := range i.Lacks[:min(len(i.Lacks), drainAsks)] {
				all = append(all, printable.Text(l.Host)+": "+printable.Text(l.Why))
			}
			if more := len(i.Lacks) - len(all); more > 0 {
				all = append(all, fmt.Sprintf("and %d more", more))
			}
			line = strings.Join(all, "\n  ")
		}
		if _, err := fmt.Fprintf(w, "%s can go nowhere:\n  %s\n", printable.Text(i.Name), line); err != nil {
			return err
		}
	}
	return nil
}
