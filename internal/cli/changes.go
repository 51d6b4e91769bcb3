package cli

import (
	"fmt"
	"io"
	"strings"

	"heddle/internal/api"
)

// PrintChanges shows a difference for people: an object with its mark, and its fields below it.
func PrintChanges(d Deps, w io.Writer, out *api.Applied) error {
	if len(out.Changes) == 0 && len(out.Effects) == 0 {
		if _, err := fmt.Fprintln(w, "nothing changes"); err != nil {
			return err
		}
		return printKept(w, out.Kept)
	}
	if err := PrintChangeLines(d, w, out.Changes); err != nil {
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

// PrintChangeLines shows the changes alone.
func PrintChangeLines(d Deps, w io.Writer, list []api.Change) error {
	var heading api.ObjectRef
	for _, ch := range list {
		if ch.Field == "" || ch.Object != heading {
			kind := ch.Kind
			if ch.Field != "" {
				kind = api.Changed // the object stays, and one of its fields changes
			}
			heading = ch.Object
			if _, err := fmt.Fprintln(w,
				d.Coloured(markColour(kind), fmt.Sprintf("%s %s", kind, ch.Object))); err != nil {
				return err
			}
		}
		if ch.Field == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, d.Coloured(markColour(ch.Kind), "  "+changeText(ch))); err != nil {
			return err
		}
	}
	return nil
}

func changeText(ch api.Change) string {
	return fmt.Sprintf("%s %s: %s", ch.Kind, ch.Field, ch.Values())
}

func markColour(k api.ChangeKind) string {
	return map[api.ChangeKind]string{api.Added: Green, api.Removed: Red, api.Changed: Yellow}[k]
}

// printKept lists the ports that stay different from the file.
func printKept(w io.Writer, kept []api.KeptPort) error {
	for i, k := range kept {
		if i == MostKept {
			_, err := fmt.Fprintf(w, "and %d more ports stay as commands have set them (see \"heddle port list\")\n",
				len(kept)-MostKept)
			return err
		}
		for _, o := range k.Overrides {
			if _, err := fmt.Fprintf(w, "%s %s\n", k.Port, OverrideText(k.Port.Name, o)); err != nil {
				return err
			}
		}
	}
	return nil
}

// PrintWarnings prints an answer's warnings before the answer itself.
func PrintWarnings(d Deps, out *api.Applied) {
	for _, w := range out.Warnings {
		d.Warn(w)
	}
	d.Notes(out.Notes)
}
