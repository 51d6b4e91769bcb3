package tunnels

import (
	"errors"

	"golang.org/x/sys/unix"

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
		if err := t.rename(d, tun.Device); err != nil {
			return d, true, err
		}
		return t.host.Devices().Device(tun.Device)
	}
	return dev, false, nil
}

// rename gives a device a name. A kernel before 6.2 renames no device that is up: it is set down for that. It is set up
// again with its name, and here where it can't have it: the tunnel serves under the other name, too.
func (t *Tunnels) rename(d hostdev.Device, name string) error {
	devices := t.host.Devices()
	err := devices.SetName(d, name)
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	if err := devices.SetUp(d, false); err != nil {
		return err
	}
	if err := devices.SetName(d, name); err != nil {
		return errors.Join(err, devices.SetUp(d, true))
	}
	return nil
}
