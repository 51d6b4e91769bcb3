package definition

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func New(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("definition", "What the controllers of a cluster define for its hosts",
		"  heddle definition show > fleet.yaml\n  heddle definition apply -f fleet.yaml --dry-run\n"+
			"  heddle definition apply -f fleet.yaml")
	c.Long = "The definition is what the controllers of a cluster keep: the distributed switches with their port " +
		"groups, and which device each uplink is on which host."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newDefinitionApply(d, t), newDefinitionShow(d, t), newDefinitionHistory(d, t),
		newDefinitionDiff(d, t), newDefinitionRollback(d, t))
	return c
}

// defaultWait is how long apply waits for the hosts.
const defaultWait = 30 * time.Second

func newDefinitionApply(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	var file string
	var yes bool
	q := api.Define{}
	way, staged := &changeWay{}, &stagedWay{}
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Make the definition what a file says (all or nothing)",
		Long: "Make the definition what a file says (all or nothing), and wait until the hosts that are connected " +
			"have " +
			"it active. It says which objects change, which hosts that concerns, and who does not have it active " +
			"yet. A " +
			"port group that is in use is not removed without --force. A file that defines no switch, as an empty " +
			"one, removes them all: on a terminal apply asks first, elsewhere it needs --yes.\n\n" +
			"With --revision the change is refused if the definition is at another revision: somebody else has " +
			"changed it.\n\nWith --together all hosts concerned change at one instant, or none does: each makes the " +
			"change ready first, and says so.\n\nWith --stages the hosts change one stage after the other, and are " +
			"watched for --wait after each (5m unless it is given): drops by reason, links, the ports' traffic and " +
			"whether the hosts are reached are compared with the hosts that do not have the change yet. The command " +
			"does not wait: the controllers drive the rollout (heddle rollout show --follow).",
		Example: "  heddle definition apply -f fleet.yaml --dry-run\n" +
			"  heddle definition apply -f fleet.yaml --wait 1m\n  heddle definition apply -f fleet.yaml --together\n" +
			"  heddle definition apply -f fleet.yaml --stages 1,10%,100% --halt rollback",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			b, err := cli.ReadFile(c.Context(), d, file)
			if err != nil {
				return err
			}
			q.File, q.Content = cli.FileName(file), string(b)
			if q.Together, err = way.together(c); err != nil {
				return err
			}
			if err := staged.stages(c, &q); err != nil {
				return err
			}
			if err := confirmNoSwitch(d, c, t, q, yes); err != nil {
				return err
			}
			return define(c, d, t, o, q, staged.follow)
		},
	}
	cli.FileFlag(c, &file)
	c.Flags().BoolVar(&yes, "yes", false, "remove every switch without asking, where the file defines none")
	defineFlags(c, &q)
	way.flags(c)
	staged.flags(c)
	o.Flag(c)
	return c
}

// defineFlags are those of every change of the definition.
func defineFlags(c *cobra.Command, q *api.Define) {
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "only print what would change")
	c.Flags().BoolVar(&q.Force, "force", false, "remove port groups that are in use")
	c.Flags().BoolVar(&q.AllowUnprotected, "allow-unprotected", false, "also where hosts do not know a security "+
		"field,\nand their ports go without it")
	c.Flags().Int64Var(&q.Revision, "revision", 0, "the revision that the change was made on")
	c.Flags().DurationVar(&q.Wait, "wait", defaultWait, "how long to wait for the hosts; 0 for not at all;\n"+
		"with --stages how long they are watched after each, 5m unless it is given")
	c.Flags().StringVarP(&q.Message, "message", "m", "", "why the change is made, for the history")
	c.Flags().BoolVar(&q.Supersede, "supersede", false, "end rollouts that change the same switches, in favour of\n"+
		"this change")
}

// readTime is how much longer the controller may take to write a definition down: one of 100,000 port groups takes some
// seconds of a processor.
const readTime = 2 * time.Minute

// timeForSize is how much longer the controller may take for a definition by its size; a minute where it is not known.
func timeForSize(q api.Define) time.Duration {
	const perSecond, unknown = 64 << 10, time.Minute // bytes, on a machine that is busy with other things
	if q.Restore != 0 {
		return unknown
	}
	return time.Duration(len(q.Content)/perSecond) * time.Second
}

// define makes a change of the definition and prints what it does. follow shows how the rollout goes that it begins.
func define(c *cobra.Command, d cli.Deps, t *cli.FleetTarget, o *cli.Output, q api.Define, follow bool) error {
	wait := q.Wait + timeForSize(q)
	if q.Together != nil {
		wait += q.Together.Lead + 2*q.Together.Patience
	}
	out, err := cli.AskFleet(c, t, wait, func(ctx context.Context, f *api.Fleet) (*api.Defined, error) {
		defer showHosts(d, ctx, f)()
		return f.Define(ctx, q)
	})
	if err != nil {
		return cli.Interrupted(c, err, "the controllers have the change as a whole or not at all (heddle definition "+
			"show), "+
			"and bring it to the hosts without this command (heddle host list): repeat it to wait for them")
	}
	if err := o.Print(d, out, func(w io.Writer) error { return printDefined(d, w, out, q.DryRun) }); err != nil {
		return err
	}
	if follow && out.Rollout != nil && !q.DryRun {
		return followRollout(d, c, t, o, out.Rollout.ID)
	}
	if len(out.Waiting) > 0 && q.Wait > 0 {
		return fmt.Errorf("%d of %d hosts do not have the definition active yet", len(out.Waiting), len(out.Hosts))
	}
	return nil
}

func printDefined(d cli.Deps, w io.Writer, out *api.Defined, dry bool) error {
	var lines []string
	if len(out.Changes) == 0 {
		lines = append(lines, "nothing changes")
	}
	lines = append(lines, definedLines(out)...)
	for _, k := range out.Kept {
		lines = append(lines, "kept: "+k)
	}
	if len(out.Hosts) > 0 {
		lines = append(lines, concerned(len(out.Hosts))+": "+strings.Join(out.Hosts, ", "))
	}
	lines = append(lines, effectLines(out)...)
	if dry {
		lines = append(lines, cli.FleetForeseenLines(d, out.Foreseen)...)
		lines = append(lines, "nothing was changed (dry run)")
	} else {
		lines = append(lines, fmt.Sprintf("revision %d", out.Revision))
	}
	lines = append(lines, togetherLines(out, dry)...)
	lines = append(lines, stagedLines(out, dry)...)
	lines = append(lines, problemLines("not active on ", out.Waiting)...)
	for _, n := range out.Notes {
		lines = append(lines, "note: "+n)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// definedLines are the objects that change, with their fields.
func definedLines(out *api.Defined) []string {
	if len(out.Objects) == 0 { // of an older controller
		return out.Changes
	}
	return objectLines(out.Objects)
}

func objectLines(objects []api.DefinedObject) (lines []string) {
	for _, o := range objects {
		lines = append(lines, fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.Change))
		for _, f := range o.Fields {
			lines = append(lines, fmt.Sprintf("  %s: %s → %s", f.Field, definedValue(f.Old), definedValue(f.New)))
		}
	}
	return lines
}

// mostValue is how much of a value is shown; -o json has it all.
const mostValue = 60

// definedValue is a value as people write it: a word without its quotation marks.
func definedValue(v string) string {
	var word string
	if json.Unmarshal([]byte(v), &word) == nil && word != "" {
		v = word
	}
	if r := []rune(v); len(r) > mostValue {
		v = string(r[:mostValue]) + "…"
	}
	return cmp.Or(v, "none")
}

// effectLines are what a change means for ports and hosts.
func effectLines(out *api.Defined) (lines []string) {
	for _, g := range out.Affected {
		line := fmt.Sprintf("%s of %s/%s on %s: %s", cli.HowMany(g.Ports, "port"), g.Switch, g.PortGroup,
			cli.HowMany(g.Hosts, "host"), strings.Join(g.Some, ", "))
		if more := g.Ports - len(g.Some); more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, line)
	}
	lines = append(lines, hostPortLines(out.HostPorts)...)
	lines = append(lines, problemLines("at risk on ", out.AtRisk)...)
	return append(lines, problemLines("unknown on ", out.Unknown)...)
}

// mostHostPorts is how many host ports are listed; -o json has them all.
const mostHostPorts = 20

// hostPortLines are the host ports that a change concerns, with their addresses.
func hostPortLines(list []api.HostPortChange) (lines []string) {
	for i, p := range list {
		if i == mostHostPorts && len(list) > mostHostPorts+1 {
			return append(lines, fmt.Sprintf("and %d host ports more (-o json)", len(list)-i))
		}
		now, before := strings.Join(p.Addresses, ", "), strings.Join(p.Before, ", ")
		switch {
		case p.Change == "changed" && now != before:
			now = cmp.Or(before, "none") + " → " + cmp.Or(now, "none")
		case p.Change == "removed":
			now = before
		}
		lines = append(lines, fmt.Sprintf("host port %s/%s %s in %s/%s: %s", p.Host, p.Name, p.Change, p.Switch,
			p.PortGroup, cmp.Or(now, "no address")))
	}
	return lines
}

func problemLines(what string, list []api.HostProblem) (lines []string) {
	for _, p := range list {
		lines = append(lines, what+p.Host+": "+strings.Join(p.Problems, "; "))
	}
	return lines
}

func concerned(n int) string { return cli.HowMany(n, "host") + " concerned" }

func newDefinitionShow(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	var revision int64
	c := &cobra.Command{
		Use: "show", Short: "Print the definition as YAML, or an earlier one",
		Example: "  heddle definition show > fleet.yaml\n  heddle definition show --revision 42", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			def, err := cli.AskFleet(c, t, readTime, func(ctx context.Context, f *api.Fleet) (*api.Definition, error) {
				if revision > 0 {
					return f.Past(ctx, revision)
				}
				return f.Definition(ctx)
			})
			if err != nil {
				return err
			}
			err = o.Print(d, def, func(w io.Writer) error {
				_, err := io.WriteString(w, def.Content)
				return err
			})
			return errors.Join(err, cli.PrintFleetNotes(d.Stderr, nil, def.Stale))
		},
	}
	c.Flags().Int64Var(&revision, "revision", 0, "an earlier revision (heddle definition history)")
	o.Flag(c)
	return c
}
