package port

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newPortMoves(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "moves [PORT]", Short: "List the moves of ports to and from other hosts, with their steps",
		Long: "List the moves of ports that follow their guests to and from other hosts: those under way, and the " +
			"last ones of each adapter that are over, the oldest first. With PORT the steps are shown with their " +
			"times.\n\nPHASE is prepared (the target waits), copied (the target has a copy of what belongs to the " +
			"port), stopped (the port is silent at the source), active (the guest runs at the target), released " +
			"(the source has no port any more) or cancelled.",
		Example: "  heddle port moves\n  heddle port moves vm7/eth0", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q := api.PortMoveOf{}
			if len(args) > 0 {
				q.Port = args[0]
			}
			list, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.PortMove, error) {
				return s.PortMoves(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, list, func(w io.Writer) error {
				if err := movesTable(list).Write(w); err != nil || q.Port == "" {
					return err
				}
				return writeSteps(w, list)
			})
		},
	}
	o.Flag(c)
	return c
}

func movesTable(list []api.PortMove) *cli.Table {
	head := []string{"PORT", "SIDE", "PHASE", "PEER", "GENERATION", "COPIES", "SINCE", "PROBLEM"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "GENERATION", "COPIES"),
		Keep:  cli.Columns(head, "PORT", "PHASE", "PEER"),
		Names: cli.Columns(head, "PORT", "PEER")}
	for _, m := range list {
		copies := strconv.FormatUint(m.Copies, 10)
		if m.Last {
			copies += " last"
		}
		tab.Add(m.Port, string(m.Side), string(m.Phase), cli.Dash(m.Peer), strconv.FormatUint(m.Generation, 10), copies,
			sinceStep(m), cli.Dash(m.Problem))
	}
	return tab
}

// sinceStep is when a move reached its phase.
func sinceStep(m api.PortMove) string {
	if len(m.Steps) == 0 {
		return "-"
	}
	return m.Steps[len(m.Steps)-1].At.Local().Format(time.DateTime)
}

// writeSteps lists the steps of moves with their times to the millisecond.
func writeSteps(w io.Writer, list []api.PortMove) error {
	for _, m := range list {
		if _, err := fmt.Fprintf(w, "\nmove %s, %s %s\n", m.Move, m.Side, peerText(m)); err != nil {
			return err
		}
		for _, s := range m.Steps {
			if _, err := fmt.Fprintf(w, "  %s  %-9s  %s\n", s.At.Local().Format("2006-01-02 15:04:05.000"), s.Phase,
				s.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

func peerText(m api.PortMove) string {
	switch {
	case m.Peer == "":
		return "of a move whose other host is not known"
	case m.Side == api.MoveSource:
		return "of a move to " + m.Peer
	}
	return "of a move from " + m.Peer
}

// lastMove describes the newest move of a port for "port show"; "" where there was none, or the agent doesn't say.
func lastMove(list []api.PortMove) string {
	if len(list) == 0 {
		return ""
	}
	return moveText(list[len(list)-1])
}

// moveText says how a move stands.
func moveText(m api.PortMove) string {
	text := fmt.Sprintf("%s (%s %s) since %s", m.Phase, m.Side, peerText(m), sinceStep(m))
	if m.Side == api.MoveTarget && m.Phase == "active" && !m.Last {
		text += "; its last copy has not come: what was counted at the source since the newest one is missing"
	}
	return text
}

// moveRows describe the moves of a port for "port show", the newest first.
func moveRows(list []api.PortMove) [][2]string {
	rows := [][2]string{{"last move", lastMove(list)}}
	for i := len(list) - 2; i >= 0; i-- {
		rows = append(rows, [2]string{"earlier move", moveText(list[i])})
	}
	return rows
}

// movesOf returns the moves of a port; none where the agent is of a version that knows of none.
func movesOf(c *cobra.Command, t *cli.Target, port string) []api.PortMove {
	list, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.PortMove, error) {
		return s.PortMoves(ctx, api.PortMoveOf{Port: port})
	})
	if err != nil {
		return nil
	}
	return list
}
