package agent

import (
	"slices"
	"strings"

	"heddle/internal/agent/instance"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// endNoted disconnects the ports of guests that ended while no agent answered. The notes of these are removed when that
// is on the disk: otherwise the next start tries it again. A hook may write another one meanwhile.
func (a *Agent) endNoted(p instance.Paths) {
	for {
		ended, err := p.NotedEnded(a.name)
		if len(ended) == 0 && err == nil {
			return
		}
		if err == nil {
			err = a.commands.endAll(ended)
		}
		if err == nil {
			err = p.DropEnded(a.name, ended)
		}
		if err != nil {
			a.Complain("disconnect the ports of guests that ended while no agent answered", err)
			return
		}
	}
}

// endAll disconnects the ports of VMs that have ended, by their UUIDs. One with a device is left: its guest was started
// again.
func (c *commands) endAll(vms []string) error {
	ended := func(p spec.Port) bool {
		return (owned{c.shared}).isVMs(p) && c.state.Of(plan.PortID{Switch: p.Switch, Name: p.Name}) == nil &&
			slices.ContainsFunc(vms, func(vm string) bool { return strings.EqualFold(vm, (owned{c.shared}).vmOf(p)) })
	}
	for {
		i := slices.IndexFunc(c.state.Ports, ended)
		if i < 0 {
			return nil
		}
		name := c.state.Ports[i].Name
		if err := c.changer.change(c.ports.disconnects(i, false)); err != nil {
			return err
		}
		c.log.Info("port disconnected: its guest ended while no agent answered", "port", name)
	}
}
