package port

import (
	"context"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
)

func newPortConnect(d cli.Deps, t *cli.Target) *cobra.Command {
	var p spec.Port
	var nic api.Connect
	var own policyFlags
	var replace, incoming, force bool
	var needs []string
	var window api.Window
	o := &cli.Output{}
	c := &cobra.Command{
		Use:   "connect PORT",
		Short: "Connect a port, as when a virtual machine starts",
		Long: "Connect a port. It stays connected until it is disconnected, through restarts and reboots, and is " +
			"never removed by \"heddle apply\". If the device does not exist yet, it is attached when it appears.\n\n" +
			"What the port sets for itself (VLAN, security, teaming, monitoring, storm control) must be allowed " +
			"by its port group (overrides).",
		Example: "  heddle port connect vm7/eth0 --port-group web --device tap7\n" +
			"  heddle port connect vm7/eth1 --switch lab --port-group trunk \\\n" +
			"    --device tap8 --mac 02:00:00:00:07:01 --trunk 0,10-20 \\\n" +
			"    --mac-learning --forged-transmits accept",
		Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			p.Name = args[0]
			if p.PortGroup == "" {
				return cli.Usagef("say which port group the port belongs to, with --port-group")
			}
			if err := own.onto(c, &p.Policy); err != nil {
				return err
			}
			if (nic.VM == "") != (nic.Adapter == "") {
				return cli.Usagef("--vm-uuid and --adapter together say whose port it is: give both")
			}
			if !incoming && (force || len(needs) > 0) {
				return cli.Usagef("--needs and --force are for a guest that arrives: use them with --incoming")
			}
			q := api.Connect{Port: p, VM: nic.VM, Adapter: nic.Adapter, PortID: nic.PortID, Window: window}
			return changePort(d, c, t, o, portChange{args[0], window, "is connected", true},
				func(ctx context.Context, s api.Service) (*api.Applied, error) {
					switch {
					case incoming:
						return s.ConnectIncoming(ctx, api.Incoming{Connect: q, Needs: needs, Force: force})
					case replace:
						return s.Reconnect(ctx, q)
					}
					return s.Connect(ctx, q)
				})
		},
	}
	portFlags(c, &p)
	f := c.Flags()
	f.StringVar(&nic.VM, "vm-uuid", "",
		"UUID of the VM: with --adapter it says whose port it is, on whatever host the "+
			"VM runs")
	f.StringVar(&nic.Adapter, "adapter", "", "name of the adapter, which the VM's others do not have, such as net0 or "+
		"its MAC")
	f.StringVar(&nic.PortID, "port-id", "", "the static port that the VM's definition carries")
	own.flags(c)
	cli.WindowFlag(c, &window)
	o.Flag(c)
	c.Flags().BoolVar(&replace, "replace", false, "for scripts that run when a guest starts: replace a run-time port "+
		"that has this name or this device")
	c.Flags().BoolVar(&incoming, "incoming", false, "for scripts: as --replace, for a guest that is to arrive by a "+
		"migration. The port waits for its first\n"+
		"frame, and takes the place of a port of this name that serves the guest until then")
	c.Flags().StringSliceVar(&needs, "needs", nil, "with --incoming: host port or port group that the guest needs "+
		"here as well; may be repeated")
	c.Flags().BoolVar(&force, "force", false, "with --incoming: connect it whatever the guest needs")
	return c
}

// portFlags adds the flags that describe a port, without its policies.
func portFlags(c *cobra.Command, p *spec.Port) {
	f := c.Flags()
	f.StringVar(&p.Switch, "switch", "", "switch; may be left out if there is only one")
	f.StringVar(&p.PortGroup, "port-group", "", "port group")
	f.StringVar(&p.Device, "device", "", "the host's end: a veth or tap; for a host port the interface's name")
	f.StringVar(&p.MAC, "mac", "", "MAC address of the adapter; default: the one the adapter has, where it can be seen")
	f.StringVar((*string)(&p.Role), "role", "", "vnic (default) or host")
	f.StringVar(&p.Owner, "owner", "", "guest that the port belongs to; default: the port's name up to its last "+
		"slash, vm1 of vm1/eth0")
	f.StringVar(&p.Domain, "domain", "", "UUID of the libvirt domain that the port belongs to: libvirt then tells "+
		"where its guest runs, unless a monitor does")
	f.StringSliceVar(&p.Addresses, "address", nil, "address of a host port's interface, such as 192.0.2.1/24; may be "+
		"repeated")
	f.IntVar(&p.MTU, "mtu", 0, "MTU of a host port's interface; default: the switch's")
	f.BoolVar(&p.TxUplink, "tx-uplink", false, "send a copy of everything the port sends to its uplink too")
	f.StringVar(&p.Monitor.Socket, "qmp", "", "socket of a QEMU monitor (-qmp) for Heddle alone: shows the MAC and "+
		"the promiscuous mode of the adapter behind a tap")
	f.StringVar(&p.Monitor.NIC, "qmp-nic", "", "id of the adapter in QEMU (-device …,id=); may be left out when the "+
		"guest has one")
}
