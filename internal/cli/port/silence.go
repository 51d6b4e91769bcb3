package port

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func newPortSilence(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "silence PORT", Short: "Silence a port whose guest has stopped to go on elsewhere",
		Long: "Silence a port: its guest has stopped on this host to go on at another one. The port sends and " +
			"receives nothing from then on, and its last copy goes to the host that waits for the guest. This " +
			"command is for managers of VMs that Heddle can't watch; QEMU and libvirt say it by themselves. " +
			"While one of them says that the guest runs here, the command is refused. The guest's first frame on " +
			"this host, or \"heddle port activate\", ends the silence.",
		Example: "  heddle port silence vm7/eth0", Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			m, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.PortMove, error) {
				return s.SilencePort(ctx, api.PortMoveOf{Port: args[0]})
			})
			if err != nil {
				return err
			}
			return o.Print(d, m, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "port %s is silent: its guest has left; %s\n", args[0], silencedFor(*m))
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

// silencedFor says where the guest of a silenced port is expected.
func silencedFor(m api.PortMove) string {
	switch {
	case m.Move == "":
		return "no other host waits for it yet"
	case m.Last:
		return peerOf(m) + " has its last copy"
	}
	return "its last copy goes to " + peerOf(m)
}

func peerOf(m api.PortMove) string {
	if m.Peer == "" {
		return "a host whose name is not known"
	}
	return m.Peer
}

func newPortRelease(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "release PORT", Short: "Remove a port whose guest has left for another host",
		Long: "Remove a port whose guest has left for another host. It is refused while the guest runs here, or is " +
			"only about to arrive here; \"heddle port disconnect\" removes such a port. A port that has been " +
			"released already is no error. If the other host does not have the port's last copy yet, the agent " +
			"keeps the copy and delivers it afterwards.",
		Example: "  heddle port release vm7/eth0", Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			gone := api.PortMoveOf{Port: args[0]}
			if _, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (struct{}, error) {
				return struct{}{}, s.ReleaseMovedPort(ctx, gone)
			}); err != nil {
				return err
			}
			return o.Print(d, gone, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "port %s is released\n", args[0])
				return err
			})
		},
	}
	o.Flag(c)
	return c
}
