package held

import (
	"errors"
	"fmt"

	"heddle/internal/agent/active"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// ownAddressesOnly is the value of arp_ignore with which a device answers ARP for its own addresses and for no other
// address of the host.
const ownAddressesOnly = "1"

// keepARPApart makes the uplink devices of switches with host interfaces answer ARP for their own addresses alone.
// Linux answers on every interface for every address of the host: an outsider who asks for a host interface's address
// would get the MAC of the uplink device as well as that of the interface, and send past the switch. A switch without
// host interfaces leaves the device as it is (S96). The previous setting is written to disk first, so that a crash
// cannot lose it.
func (hd *Part) keepARPApart(now *active.Draft, bounds []active.Bound) error {
	var errs []error
	for _, b := range bounds {
		h := hd.host.Document.Of(b.ID)
		if b.Uplink == nil || h == nil {
			continue
		}
		var err error
		switch hosts := hasHostInterface(now.Plan.Switch(b.ID.Switch)); {
		case hosts:
			err = hd.ignoreForeignARP(b, h)
		case h.WasARPIgnore != "":
			if err = hd.host.Devices().SetARPIgnore(b.Device, h.WasARPIgnore); err == nil {
				h.WasARPIgnore = ""
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("uplink %s: %w", b.ID, err))
		}
	}
	return errors.Join(errs...)
}

func (hd *Part) ignoreForeignARP(b active.Bound, h *state.Held) error {
	now, err := hd.host.Devices().ARPIgnore(b.Device)
	if err != nil || now != "0" { // set already, or an operator has chosen a stricter value
		return err
	}
	if h.WasARPIgnore == "" {
		h.WasARPIgnore = now
		if err := hd.host.Save(); err != nil {
			return err
		}
	}
	return hd.host.Devices().SetARPIgnore(b.Device, ownAddressesOnly)
}

func hasHostInterface(sw *plan.Switch) bool {
	if sw == nil {
		return false
	}
	for _, p := range sw.Ports {
		if p.Role == spec.Host {
			return true
		}
	}
	return false
}
