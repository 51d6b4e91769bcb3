package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/host/interrupt"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// confirmNothing asks before a file that declares nothing removes what is there: such a file is more often one that was cut off than
// one that is meant. Where nobody can be asked it takes --yes.
func confirmNothing(d Deps, c *cobra.Command, t *target, q api.Apply, yes bool) error {
	if q.DryRun || yes || !spec.DeclaresNothing([]byte(q.Content)) {
		return nil
	}
	q.DryRun = true
	out, err := ask(c, t, func(ctx context.Context, s api.Service) (*api.Applied, error) { return s.Apply(ctx, q) })
	if err != nil || len(out.Changes) == 0 {
		return err
	}
	if !d.Asking {
		return usagef("%s declares no switch, so that every switch and declared port would be removed: see what goes with --dry-run, "+
			"and add --yes if that is meant", q.File)
	}
	if err := printChanges(d, printable.NewWriter(d.Stderr, d.mark), out); err != nil {
		return err
	}
	fmt.Fprintf(d.Stderr, "%s declares no switch. Remove all of this? [y/N] ", printable.Text(q.File))
	answer, err := bufio.NewReader(interrupt.Reader(c.Context(), d.Stdin)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(d.Stderr)
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return fmt.Errorf("nothing was changed")
	}
	return nil
}
