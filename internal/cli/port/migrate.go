package port

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// migration is one "heddle port migrate".
type migration struct {
	api.MigratePort
	cancel, activate, list bool
}

func newPortMigrate(d cli.Deps) *cobra.Command {
	t, o, m := &cli.FleetTarget{}, &cli.Output{}, &migration{}
	c := &cobra.Command{
		Use: "migrate [PORT]", Short: "Move a port to another host with its VM, at a controller",
		Long: "Prepare a port on another host for its VM, which moves there, and show each step:\n\n" +
			"  prepared   the port is at the target, silent\n" +
			"  copied     the target has what belongs to the port: counters, MACs, policy\n" +
			"  stopped    the guest has stopped at the source, whose port is silent\n" +
			"  active     the guest runs at the target\n" +
			"  released   the source has no port for the guest any more\n\n" +
			"This moves no VM: its hypervisor does, which may prepare the port itself. PORT is the port's name, or " +
			"VM/ADAPTER. The target refuses a port that it can't serve as well as the source; --force overrides " +
			"what is not impossible.\n\n" +
			"Interrupted (Ctrl-C), the move goes on as it is: the two hosts complete it by themselves. --cancel " +
			"takes it back, --activate says that the guest runs at the target, where nothing there can be asked, and " +
			"--list lists the moves that are under way. The exit status is 0 when the guest runs at the target.",
		Example: "  heddle port migrate vm7/eth0 --to esx2\n" +
			"  heddle port migrate vm7/eth0 --to esx2 --device tap3 --needs storage\n" +
			"  heddle port migrate vm7/eth0 --cancel\n  heddle port migrate --list",
		Args: cli.AtMost("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if len(args) == 1 {
				m.Port = args[0]
			}
			if err := m.check(); err != nil {
				return err
			}
			switch {
			case m.list:
				return m.show(d, c, t, o)
			case m.cancel, m.activate:
				return m.end(d, c, t, o)
			}
			return m.run(d, c, t, o)
		},
	}
	f := c.Flags()
	f.StringVar(&m.To, "to", "", "the host that the VM moves to; with --activate only where several wait; with "+
		"--cancel, only the port there: without it, at all hosts that wait")
	f.StringVar(&m.Host, "from", "", "the host that the port is on; may be left out where one host has it")
	f.StringVar(&m.Device, "device", "", "device of the port at the target, which nobody uses there; "+
		"default: as at the source")
	f.StringSliceVar(&m.Needs, "needs", nil, "host port or port group that the VM needs at the target; may be "+
		"repeated")
	f.BoolVar(&m.Force, "force", false, "move even where the target serves the port worse")
	f.DurationVar(&m.Wait, "wait", time.Minute, "how long to show steps")
	f.BoolVar(&m.cancel, "cancel", false, "take back a move whose guest does not run at the target yet")
	f.BoolVar(&m.activate, "activate", false, "say that the guest runs at the target")
	f.BoolVar(&m.list, "list", false, "list the moves that are under way")
	o.Flag(c)
	t.Flag(d, c, cli.DefaultController)
	return c
}

// check says what is wrong with the flags.
func (m *migration) check() error {
	chosen := 0
	for _, is := range []bool{m.cancel, m.activate, m.list} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return cli.Usagef("--cancel, --activate and --list: give one of them")
	case m.list && m.Port != "":
		return cli.Usagef("--list is about all ports: leave out %s", m.Port)
	case m.list:
	case m.Port == "":
		return cli.Usagef("say which port")
	case chosen == 0 && m.To == "":
		return cli.Usagef("say which host the VM moves to, with --to")
	case m.Wait <= 0:
		return cli.Usagef("--wait %s: it is a time above 0, such as 1m", m.Wait)
	}
	return nil
}

// run begins the move, and prints its steps.
func (m *migration) run(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, o *cli.Output) error {
	client, err := t.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Context(), m.Wait+cli.CallTimeout)
	defer cancel()
	active, last, steps := false, api.MigrateStep{}, []api.MigrateStep{}
	err = client.Migrate(ctx, m.MigratePort, func(s api.MigrateStep) error {
		active, last = active || s.Step == api.FleetMoveActive || s.Step == api.FleetMoveReleased, s
		if steps = append(steps, s); o.Format != "table" {
			return nil
		}
		text := ""
		if s.Text != "" {
			text = "  " + printable.Text(s.Text)
		}
		_, err := fmt.Fprintf(d.Stdout, "%s  %-9s%s\n", s.At.Local().Format("15:04:05.000"), s.Step, text)
		return err
	})
	if err == nil && o.Format != "table" {
		err = o.Print(d, steps, func(io.Writer) error { return nil })
	}
	if err != nil || active {
		return err
	}
	if last.Step == api.FleetMoveCancelled {
		return errors.New("the move was cancelled: the guest stays where it is")
	}
	stands := "the guest does not run on host " + printable.Text(m.To) + " yet; the move goes on"
	if len(steps) == 0 {
		stands = "host " + printable.Text(m.To) + " has not said yet whether it prepares the port; it may have " +
			"(heddle port migrate --list)"
	}
	fmt.Fprintf(d.Stderr, "heddle: %s. To take it back: heddle port migrate %s --cancel\n", stands,
		printable.ShellWord(m.Port))
	return &cli.SilentError{Status: cli.ExitFailure}
}

// end cancels or activates a move.
func (m *migration) end(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, o *cli.Output) error {
	q := api.EndedMove{MoveAt: api.MoveAt{Port: m.Port, Host: m.To}}
	_, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (_ struct{}, err error) {
		if m.cancel {
			q.Away, err = f.CancelMigration(ctx, q.MoveAt)
			return struct{}{}, err
		}
		return struct{}{}, f.ActivateMigration(ctx, q.MoveAt)
	})
	if err != nil {
		return err
	}
	for _, host := range q.Away {
		fmt.Fprintf(d.Stderr, "heddle: host %s does not answer: a port that waits for the guest there stays; when the "+
			"host is back: heddle port migrate %s --cancel --to %s\n", host, printable.ShellWord(m.Port),
			printable.ShellWord(host))
	}
	return o.Print(d, q, func(w io.Writer) error {
		done := "the move of port %s is cancelled: the guest stays where it is\n"
		if m.activate {
			done = "port %s is active at the target\n"
		}
		_, err := fmt.Fprintf(w, done, m.Port)
		return err
	})
}

// show lists the moves that are under way.
func (m *migration) show(d cli.Deps, c *cobra.Command, t *cli.FleetTarget, o *cli.Output) error {
	list, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.FleetMoves, error) {
		return f.Migrations(ctx)
	})
	if err != nil {
		return err
	}
	err = o.Print(d, list.Moves, func(w io.Writer) error {
		head := []string{"VM", "ADAPTER", "FROM", "TO", "STEP", "SINCE"}
		tab := &cli.Table{Head: head, Keep: cli.Columns(head, "STEP", "SINCE"),
			Names: cli.Columns(head, "VM", "ADAPTER", "FROM", "TO")}
		for _, v := range list.Moves {
			tab.Add(v.VM, v.Adapter, cli.Dash(v.From), v.To, string(v.Step), v.Since.Local().Format("15:04:05"))
		}
		return tab.Write(w)
	})
	return errors.Join(err, cli.PrintFleetNotes(d.Stderr, list.Unreachable, list.Stale))
}
