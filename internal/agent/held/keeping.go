package held

import (
	"errors"
	"fmt"

	"heddle/internal/agent/active"
)

// keepSettings sets again what was set on a device when it was taken and is no longer so: an uplink that is not
// promiscuous gets no frame for guests, and a port's device on which the host speaks IPv6 sends the guest what the host
// says to itself. Whether a device is up is left to whoever set it down.
func (hd *Part) keepSettings(bounds []active.Bound) error {
	var errs []error
	for _, b := range bounds {
		h := hd.host.Document.Of(b.ID)
		if h == nil || !h.Prepared || h.Index != b.Device.Index {
			continue
		}
		if b.Uplink != nil {
			if b.Device.FlagPromiscuous {
				continue
			}
			if err := hd.host.Devices().SetPromiscuous(b.Device, true); err != nil {
				errs = append(errs, fmt.Errorf("uplink %s: %w", b.ID, err))
				continue
			}
			hd.restoring.Restored(b.ID, true, b.Device.Name, "promiscuous mode")
			continue
		}
		if !hd.restoring.asksAll() {
			continue
		}
		on, err := hd.host.Devices().IPv6(b.Device)
		if err == nil && on {
			if err = hd.host.Devices().SetIPv6(b.Device, false); err == nil {
				hd.restoring.Restored(b.ID, false, b.Device.Name, "silenced IPv6 (disable_ipv6)")
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("port %s: %w", b.ID, err))
		}
	}
	return errors.Join(errs...)
}
