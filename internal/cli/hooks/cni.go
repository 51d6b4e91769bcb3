package hooks

import (
	"github.com/spf13/cobra"

	"heddle/internal/attach/cni"
	"heddle/internal/cli"
	"heddle/internal/version"
)

// CNIName is the name under which a container runtime calls the program.
const CNIName = "heddle-cni"

func NewCNI(d cli.Deps) *cobra.Command {
	return &cobra.Command{
		Use: "cni", Short: "Connect containers, as a CNI plugin",
		Long: "Act as a CNI plugin (specification 1.0 and 1.1): the command is read from CNI_COMMAND and the " +
			"network's configuration from standard input; the answer is written to standard output. The program " +
			"does the same when it is called by the name " + CNIName + ".",
		Example: "  CNI_COMMAND=VERSION heddle cni </dev/null", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := cni.Main(c.Context(), "Heddle CNI plugin "+version.Of(d.Release).Version); err != nil {
				return &cli.SilentError{Status: cli.ExitFailure} // already answered, as JSON
			}
			return nil
		},
	}
}
