package tree

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/dataplane"
)

// withoutAgent adds to the error of a command that found no agent what this means for the guests: pinned programs
// continue to forward.
func withoutAgent(c *cobra.Command, err error) error {
	name := cli.FlagText(c, "agent")
	if !errors.Is(err, api.ErrNoAgent) || instance.CheckName(name) != nil {
		return err
	}
	if !dataplane.Forwards(instance.Paths{Run: cli.FlagText(c, "run-dir")}.Pins(name)) {
		return err
	}
	return fmt.Errorf("%w\nthe switch goes on forwarding as it was last configured; the next agent takes it over", err)
}
