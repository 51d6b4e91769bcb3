package hosts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// The kinds of what is on a host that is to be emptied.
const (
	drainGuest      = "guest"      // a guest runs by the port
	drainArriving   = "arriving"   // a port waits for a guest that arrives
	drainController = "controller" // a controller's machine is a VM on the host
	drainHostPort   = "host port"  // it goes down and comes back with the host
)

// drainItem is one thing on a host that is to be emptied.
type drainItem struct {
	Kind string `json:"kind"`
	// InTheWay: the host is not empty while it is there.
	InTheWay bool   `json:"inTheWay"`
	Switch   string `json:"switch,omitempty"`
	// Name of the port, or of the controller.
	Name    string `json:"name"`
	VM      string `json:"vm,omitempty"`
	Adapter string `json:"adapter,omitempty"`
	State   string `json:"state,omitempty"`
	// Why says more, for people.
	Why string `json:"why,omitempty"`
	// Targets are hosts that a guest could go to, the first three; Lacks are those that were asked and can't take it.
	Targets []string  `json:"targets,omitempty"`
	Lacks   []lacking `json:"lacks,omitempty"`

	portGroup string
}

// DrainedHost is what "heddle host drain" prints.
type DrainedHost struct {
	Host string `json:"host"`
	// Empty: nothing is in the way.
	Empty bool        `json:"empty"`
	Items []drainItem `json:"items"`
}

// drainEvery is how often a host is looked at that becomes empty.
const drainEvery = time.Second

func newHostDrain(d cli.Deps) *cobra.Command {
	t, o, wait := &cli.FleetTarget{}, &cli.Output{}, false
	c := &cobra.Command{
		Use: "drain HOST", Short: "Show what has to leave a host before it goes down",
		Long: "Show what stands in the way of taking a host down: ports with guests, ports that wait for a guest " +
			"that arrives, and controllers whose machine is a VM there. Host ports are shown too; they go down and " +
			"come back with the host. A port that its guest has left is not in the way. For each guest up to three " +
			"hosts are named that have its switch, its port group and an uplink that is up; for a guest without any, " +
			"what each host lacks. What else a target must have, prepare checks (heddle port migrate).\n\n" +
			"This cuts nothing off and moves nothing: move the VMs with their manager. The exit status is 0 when " +
			"nothing is in the way, and 1 otherwise. With --wait the command waits until nothing is.",
		Example: "  heddle host drain esx1\n  heddle host drain esx1 --wait", Args: cli.Exactly("HOST"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			host, err := drained(d, c, t, args[0], wait)
			if err != nil {
				return err
			}
			if err := o.Print(d, host, host.print); err != nil || host.Empty {
				return err
			}
			return &cli.SilentError{Status: cli.ExitFailure}
		},
	}
	c.Flags().BoolVar(&wait, "wait", false, "wait until nothing is in the way; Ctrl-C shows what is left")
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}

// drained looks at a host, with wait until nothing is in the way or the command is interrupted.
func drained(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, name string, wait bool) (*DrainedHost, error) {
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	var last *DrainedHost
	for {
		host, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*DrainedHost, error) {
			return look(ctx, f, name)
		})
		if last != nil && c.Context().Err() != nil {
			return last, nil
		}
		if err != nil || host.Empty || !wait {
			return host, err
		}
		if last == nil || last.left() != host.left() {
			fmt.Fprintf(d.Stderr, "heddle: %s in the way on host %s; waiting until nothing is (Ctrl-C shows what is "+
				"left)\n", cli.HowMany(host.left(), "thing"), printable.Text(name))
		}
		last = host
		select {
		case <-tick.C:
		case <-c.Context().Done():
			return last, nil
		}
	}
}

// look is what is on a host now.
func look(ctx context.Context, f *api.Fleet, name string) (*DrainedHost, error) {
	s, err := f.Host(name).State(ctx)
	if err != nil {
		return nil, err
	}
	status, err := f.Status(ctx)
	if err != nil {
		return nil, err
	}
	out := &DrainedHost{Host: name, Items: []drainItem{}}
	for _, k := range status.Controllers {
		if k.Host == name {
			out.Items = append(out.Items, drainItem{Kind: drainController, InTheWay: true, Name: cmp.Or(k.Name, k.ID),
				Why: "its machine is a VM on this host"})
		}
	}
	for _, p := range s.Ports {
		if item, ok := drainOf(p); ok {
			out.Items = append(out.Items, item)
		}
	}
	out.Empty = out.left() == 0
	return out, places(ctx, f, name, s, out.Items)
}

// drainOf is what a port means for its host; ok is false for a port without a guest.
func drainOf(p api.Port) (item drainItem, ok bool) {
	item = drainItem{Kind: drainGuest, InTheWay: true, Switch: p.Switch, Name: p.Name, VM: p.VM, Adapter: p.Adapter,
		State: string(p.State), portGroup: p.PortGroup}
	switch {
	case p.Role == spec.Host:
		item.Kind, item.InTheWay = drainHostPort, false
		return item, true
	case p.Wait != nil && p.Wait.Left:
		return item, false
	case p.Wait != nil:
		item.Kind, item.Why = drainArriving, p.Wait.Why
		return item, true
	}
	item.Why = p.Reason
	return item, p.State != api.Pending // its device is there
}

// left is how many things are in the way.
func (h *DrainedHost) left() (n int) {
	for _, i := range h.Items {
		if i.InTheWay {
			n++
		}
	}
	return n
}

// where names the hosts that a guest could go to.
func (i drainItem) where() string {
	if i.Kind == drainGuest && len(i.Targets) == 0 {
		return "nowhere"
	}
	return cli.Dash(strings.Join(i.Targets, " "))
}

// print prints a host as a table.
func (h *DrainedHost) print(w io.Writer) error {
	if len(h.Items) > 0 {
		head := []string{"WHAT", "IN THE WAY", "SWITCH", "NAME", "VM", "STATE", "COULD GO TO"}
		tab := &cli.Table{Head: head, Keep: cli.Columns(head, "WHAT", "IN THE WAY", "STATE"),
			Names: cli.Columns(head, "SWITCH", "NAME", "VM", "COULD GO TO")}
		items := slices.Clone(h.Items)
		slices.SortStableFunc(items, func(a, b drainItem) int {
			return cmp.Or(cmp.Compare(cli.YesNo(b.InTheWay), cli.YesNo(a.InTheWay)), cmp.Compare(a.Kind, b.Kind))
		})
		for _, i := range items {
			tab.Add(i.Kind, cli.YesNo(i.InTheWay), cli.Dash(i.Switch), i.Name, cli.Dash(i.VM), cli.Dash(i.State),
				i.where())
		}
		if err := tab.Write(w); err != nil {
			return err
		}
	}
	if err := h.printStuck(w); err != nil {
		return err
	}
	if !h.Empty {
		return nil
	}
	_, err := fmt.Fprintf(w, "nothing is in the way of taking host %s down\n", h.Host)
	return err
}
