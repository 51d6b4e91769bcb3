package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/spec"
)

func newApply(d Deps) *cobra.Command {
	t, o := &target{}, &output{}
	var file string
	var dry bool
	nothing := &onNothing{}
	var window api.Window
	c := &cobra.Command{
		Use: "apply -f FILE", Args: exactly(), Short: "Apply a configuration file (all or nothing)",
		Long: "Apply a configuration file (all or nothing) and print what changed. What the file declares, apply " +
			"adds, changes and removes; ports connected by command are never touched. The agent keeps the file's " +
			"content and applies it again after a restart. A file that declares no switch removes them all: on a " +
			"terminal apply asks first, elsewhere it needs --yes.\n\n" +
			"Lines with +, - and ~ show what is added, removed and changed in the file; lines with => show what " +
			"that means for ports. Settings that commands have made on ports of the file, such as another port " +
			"group, stay, and apply lists them.\n\n" +
			"A change that affects the way to this host's own addresses is tried first: gateways, TCP connections " +
			"and neighbours that answered before the change are asked again after it. If they do not answer " +
			"within 30 seconds, everything goes back. Where there is nobody to ask, --confirm-within is needed, " +
			"and \"heddle confirm\".",
		Example: "  heddle apply -f heddle.yaml --dry-run\n  heddle apply -f heddle.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			b, err := readFile(c.Context(), d, file)
			if err != nil {
				return err
			}
			if spec.TooLarge(b) { // the agent need not see it to refuse it
				_, err := spec.Parse(fileName(file), b)
				return err
			}
			q := api.Apply{File: fileName(file), Content: string(b), DryRun: dry, ReadAt: readAt(), Window: window}
			if abs, err := filepath.Abs(file); err == nil && file != "-" {
				q.File = abs
			}
			if err := nothing.confirm(d, c, t, q); err != nil {
				return err
			}
			out, err := askTried(d, c, t, window, func(ctx context.Context, s api.Service) (*api.Applied, error) {
				return s.Apply(ctx, q)
			})
			if err != nil {
				// Report the faults under the file name that the user gave, also without an agent.
				if _, faults := spec.Parse(fileName(file), b); faults != nil {
					return faults
				}
				return o.printReverted(d, err)
			}
			printWarnings(d, out)
			printTrial(d, out.Trial)
			return o.print(d, out, func(w io.Writer) error { return printChanges(d, w, out) })
		},
	}
	fileFlag(c, &file)
	c.Flags().BoolVar(&dry, "dry-run", false, "only print what would change")
	nothing.flags(c)
	windowFlag(c, &window)
	o.flag(c)
	t.flags(d, c)
	return c
}

// printChanges shows a difference for people: an object with its mark, and its fields below it.
func printChanges(d Deps, w io.Writer, out *api.Applied) error {
	if len(out.Changes) == 0 && len(out.Effects) == 0 {
		if _, err := fmt.Fprintln(w, "nothing changes"); err != nil {
			return err
		}
		return printKept(w, out.Kept)
	}
	if err := printChangeLines(d, w, out.Changes); err != nil {
		return err
	}
	for _, e := range out.Effects {
		if _, err := fmt.Fprintln(w, "=> "+e.Text); err != nil {
			return err
		}
	}
	if err := printKept(w, out.Kept); err != nil {
		return err
	}
	if out.DryRun {
		lines := append(foreseenLines(d, out.Foreseen), "nothing was changed (dry run)")
		_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
		return err
	}
	return printActive(d, out)
}

// printChangeLines shows the changes alone.
func printChangeLines(d Deps, w io.Writer, list []api.Change) error {
	var heading api.ObjectRef
	for _, ch := range list {
		if ch.Field == "" || ch.Object != heading {
			kind := ch.Kind
			if ch.Field != "" {
				kind = api.Changed // the object stays, and one of its fields changes
			}
			heading = ch.Object
			if _, err := fmt.Fprintln(w,
				d.coloured(markColour(kind), fmt.Sprintf("%s %s", kind, ch.Object))); err != nil {
				return err
			}
		}
		if ch.Field == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, d.coloured(markColour(ch.Kind), "  "+changeText(ch))); err != nil {
			return err
		}
	}
	return nil
}

func changeText(ch api.Change) string {
	return fmt.Sprintf("%s %s: %s", ch.Kind, ch.Field, ch.Values())
}

func markColour(k api.ChangeKind) string {
	return map[api.ChangeKind]string{api.Added: green, api.Removed: red, api.Changed: yellow}[k]
}
