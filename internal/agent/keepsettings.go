package agent

import (
	"errors"
	"fmt"
)

// keepSettings sets again what was set on a device when it was taken and is no longer so: an uplink that is not
// promiscuous gets no frame for guests, and a port's device on which the host speaks IPv6 sends the guest what the host
// says to itself. Whether a device is up is left to whoever set it down.
func (hd *holding) keepSettings(bounds []bound) error {
	var errs []error
	for _, b := range bounds {
		h := hd.state.Of(b.id)
		if h == nil || !h.Prepared || h.Index != b.device.Index {
			continue
		}
		if b.uplink != nil {
			if b.device.FlagPromiscuous {
				continue
			}
			if err := hd.dev.SetPromiscuous(b.device, true); err != nil {
				errs = append(errs, fmt.Errorf("uplink %s: %w", b.id, err))
				continue
			}
			hd.restoring.restored(b.id, true, b.device.Name, "promiscuous mode")
			continue
		}
		if !hd.restoring.all {
			continue
		}
		on, err := hd.dev.IPv6(b.device)
		if err == nil && on {
			if err = hd.dev.SetIPv6(b.device, false); err == nil {
				hd.restoring.restored(b.id, false, b.device.Name, "silenced IPv6 (disable_ipv6)")
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("port %s: %w", b.id, err))
		}
	}
	return errors.Join(errs...)
}
