package agentcmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/agent/instance"
	"heddle/internal/agent/removal"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// downing is one run of "heddle down" with its flags.
type downing struct {
	cli.Target
	cli.Output
	stateDir        string
	purge, dry, yes bool
}

func NewDown(d cli.Deps) *cobra.Command {
	g := &downing{}
	c := &cobra.Command{
		Use: "down", Short: "Remove everything the agent put into the kernel, and nothing else",
		Long: "Remove everything the agent put into the kernel, and nothing else: programs, tables, the host " +
			"interfaces it made. Devices\n" +
			"are given back as they were. A running agent is asked to stop first. The configuration and the ports " +
			"connected by command are\n" +
			"kept for the next start, unless --purge is given.\n\n" +
			"Guests lose their network. On a terminal the command lists what goes and asks first; --yes does not " +
			"ask. Elsewhere --yes is needed where somebody is connected to this host by an address that goes: " +
			"without it the exit status is 4 and nothing is removed. --dry-run has the same status then, so that a " +
			"script can ask all agents before it removes one.",
		Example: "  heddle down --dry-run\n  heddle down --yes\n  heddle down --agent host2 --purge",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := g.Check(); err != nil {
				return err
			}
			return g.run(d, c)
		},
	}
	g.Flags(d, c)
	g.Flag(c)
	c.Flags().StringVar(&g.stateDir, "state-dir", d.Env("HEDDLE_STATE_DIR", cli.DefaultStateDir),
		"state directory of the agents")
	c.Flags().BoolVar(&g.purge, "purge", false, "forget the configuration, its history and the ports connected by "+
		"command, too")
	c.Flags().BoolVar(&g.dry, "dry-run", false, "only list what would be removed")
	c.Flags().BoolVar(&g.yes, "yes", false, "do not ask")
	return c
}

func (g *downing) run(d cli.Deps, c *cobra.Command) error {
	paths := instance.Paths{Run: g.RunDir, State: g.stateDir}
	if err := instance.CheckName(g.Name); err != nil {
		return &cli.UsageError{Err: err}
	}
	if err := instance.Privileged("heddle down"); err != nil {
		return err
	}
	if err := instance.CheckState(paths, g.Name); err != nil {
		return &cli.UsageError{Err: err}
	}
	what, err := removal.WhatDownRemoves(paths, g.Name)
	if err != nil && g.dry {
		return err
	}
	if err != nil { // down must work even if nothing is known, and reports its own errors
		what = &removal.Removal{}
	}
	if g.dry {
		what.DryRun = true
		if err := g.Print(d, what, func(w io.Writer) error { return printRemoval(w, g.Name, what) }); err != nil {
			return err
		}
		return g.connected(what)
	}
	if !g.yes && !what.Nothing() {
		if err := g.agreed(d, c, what); err != nil {
			return err
		}
	}
	progress, done := d.Detaching()
	defer done()
	err = removal.Down(c.Context(), paths, g.Name, removal.Options{
		Purge: g.purge, Progress: progress, Warn: d.Warn})
	if err != nil {
		return err
	}
	what.Purged = g.purge
	return g.Print(d, what, func(w io.Writer) error { return printRemoval(w, g.Name, what) })
}

// agreed lists what will be removed, and asks for confirmation. Where nobody can be asked, a removal is refused that
// ends somebody's connection to this host: it may be that of who gave the command.
func (g *downing) agreed(d cli.Deps, c *cobra.Command, what *removal.Removal) error {
	if !d.Asking {
		return g.connected(what)
	}
	w := printable.NewWriter(d.Stderr, d.Mark)
	for _, line := range what.Lines() {
		fmt.Fprintln(w, line)
	}
	yes, err := d.Yes(c, "Remove all of this?")
	if err == nil && !yes {
		err = fmt.Errorf("nothing was removed")
	}
	return err
}

// connected is the refusal to end somebody's connection to this host, if that was not agreed to.
func (g *downing) connected(what *removal.Removal) error {
	if g.yes || len(what.Connected) == 0 {
		return nil
	}
	return &cli.StatusError{Err: fmt.Errorf("agent %s: %s: add --yes if that is meant; nothing was removed", g.Name,
		strings.Join(what.Lines(), "; ")), Status: cli.ExitConnected}
}

func printRemoval(w io.Writer, name string, what *removal.Removal) error {
	if what.Nothing() {
		_, err := fmt.Fprintf(w, "agent %s has no device on a switch: nothing is cut off\n", name)
		return err
	}
	for _, line := range what.Lines() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	end := "removed"
	switch {
	case what.DryRun:
		end = "nothing was removed (dry run)"
	case what.Purged:
		end = "removed, and the configuration forgotten"
	}
	_, err := fmt.Fprintln(w, end)
	return err
}
