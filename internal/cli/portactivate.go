package cli

import (
	"context"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newPortActivate(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "activate PORT", Short: "Say that the guest of a waiting port runs here",
		Long: "Say that the guest of a waiting port runs here. A port that is connected for a guest which is to arrive by a migration waits for the\n" +
			"guest's first frame, or for QEMU's word; until then it is silent. This is for managers that know better than either, and for\n" +
			"guests that send nothing. For a port that does not wait nothing is done.",
		Example: "  heddle port activate vm7/eth0", Args: exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			_, err := ask(c, t, func(ctx context.Context, s api.Service) (struct{}, error) {
				return struct{}{}, s.Activate(ctx, api.Activate{Port: args[0]})
			})
			return err
		},
	}
}
