package hooks

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/agent"
	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/attach/libvirt"
	"heddle/internal/cli"
	"heddle/internal/host/interrupt"
	"heddle/internal/spec/printable"
)

func NewLibvirtHook(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	var fail string
	c := &cobra.Command{
		Use:   "libvirt-hook DOMAIN OPERATION SUB-OPERATION EXTRA",
		Short: "Connect a libvirt domain's adapters; libvirt runs it",
		Long: "Connect the adapters of a libvirt domain when it starts, to the port groups that its metadata or " +
			"portgroup= names, and disconnect them when it stops. libvirt runs this command as its qemu hook, " +
			"with the domain's XML on standard input. A domain that names no port group of Heddle is left alone. " +
			"See how-to/attach/libvirt.md of the documentation.",
		Example: "  # by hand, after a start without an agent\n" +
			"  virsh dumpxml vm1 | heddle libvirt-hook vm1 attach begin -",
		Args: cli.Exactly("DOMAIN", "OPERATION", "SUB-OPERATION", "EXTRA"),
		RunE: func(c *cobra.Command, args []string) error {
			if fail != "closed" && fail != "open" {
				return cli.Usagef("--fail %s: give closed or open", fail)
			}
			client, err := t.Client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
			defer cancel()
			paths := instance.Paths{Run: t.RunDir}
			h := libvirt.Hook{Agent: client, Release: libvirt.LeaveBridge, FailOpen: fail == "open",
				Ended: func(uuid string, ended bool) error { return paths.NoteEnded(t.Name, uuid, ended) },
				Warn: func(format string, a ...any) {
					fmt.Fprintf(d.Stderr, "heddle: %s\n",
						printable.Text(fmt.Sprintf("domain %s: %s", args[0], fmt.Sprintf(format, a...))))
				}}
			if err := h.Run(ctx, args[1], interrupt.Reader(ctx, d.Stdin)); err != nil {
				return fmt.Errorf("domain %s: %w", args[0], err)
			}
			return nil
		},
	}
	t.Flags(d, c)
	c.Flags().StringVar(&fail, "fail", d.Env("HEDDLE_LIBVIRT_FAIL", "closed"),
		"closed: a domain does not start when no agent answers; open: it starts without its ports (environment "+
			"HEDDLE_LIBVIRT_FAIL)")
	return c
}

// Plugged connects and disconnects ports when libvirt has plugged or unplugged a device of a running domain. libvirt
// calls no hook then.
func Plugged(log *slog.Logger) agent.Plugged {
	return func(ctx context.Context, s api.Service, xml string) error {
		ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
		defer cancel()
		h := libvirt.Hook{Agent: s, Release: libvirt.LeaveBridge, Warn: func(format string, a ...any) {
			log.Warn("connect what was plugged into a libvirt domain", "err", printable.Text(fmt.Sprintf(format, a...)))
		}}
		return h.Run(ctx, "attach", strings.NewReader(xml))
	}
}

var _ libvirt.Agent = api.Service(nil)
