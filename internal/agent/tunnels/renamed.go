package tunnels

import (
	"errors"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// renamed finds the tunnel's device under another name, which somebody else gave it, and gives it its own back. A
// second device could not be made: the first one has the UDP port.
func (t *Tunnels) renamed(tun *plan.Tunnel, alias string) (dev hostdev.Device, there bool, err error) {
	for _, d := range t.host.Devices().WithAlias(alias) {
		if d.Alias != alias || d.TunnelPort != uint16(tun.Port) {
			continue // of a switch whose name begins like this one's, or about to be removed
		}
		if err := t.host.Devices().SetName(d, tun.Device); err != nil {
			// A kernel before 6.2 renames no device that is up. It is set up again with its name.
			down := t.host.Devices().SetUp(d, false)
			if err = errors.Join(down, t.host.Devices().SetName(d, tun.Device)); err != nil {
				return d, true, err
			}
		}
		return t.host.Devices().Device(tun.Device)
	}
	return dev, false, nil
}
