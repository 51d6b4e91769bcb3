package held

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
)

// ReleaseAll restores devices to their earlier settings. A device that is gone, or that another port has taken over, is
// left alone.
func (hd *Part) ReleaseAll() error {
	var errs []error
	var left []state.Held
	for _, h := range hd.host.Document.Released {
		if slices.ContainsFunc(hd.host.Document.Held, func(other state.Held) bool { return other.Index == h.Index }) {
			continue
		}
		if _, still, err := Still(hd.host.Devices(), h); err == nil && !still {
			hd.depart(h)
		}
		if err := giveBack(hd.host.Devices(), h); err != nil {
			left = append(left, h)
			errs = append(errs, fmt.Errorf("give back device %s of port %s: %w", h.Device, h.ID, err))
		} else if h.Made {
			hd.host.Document.DropPairAt(h.Index)
		}
	}
	hd.host.Document.Released = left
	return errors.Join(errs...)
}

// Still returns the present state of the held device; false if it is gone, or another device has its index.
func Still(dev Devices, h state.Held) (d hostdev.Device, still bool, err error) {
	d, there, err := dev.DeviceAt(h.Index)
	return d, err == nil && there && h.Is(d), err
}

// giveBack undoes what prepare did, also if the device has been renamed.
func giveBack(dev Devices, h state.Held) error {
	d, still, err := Still(dev, h)
	if err != nil || !still {
		return err
	}
	if h.Made {
		if d.Kind != hostdev.Veth { // what the agent makes is a veth
			return nil
		}
		return dev.Delete(d)
	}
	var errs []error
	if h.Uplink && !h.WasPromiscuous && d.FlagPromiscuous {
		errs = append(errs, dev.SetPromiscuous(d, false))
	}
	if h.WasARPIgnore != "" {
		errs = append(errs, dev.SetARPIgnore(d, h.WasARPIgnore))
	}
	errs = append(errs, giveOffloadsBack(dev, h))
	if !h.Uplink && h.WasIPv6 {
		errs = append(errs, dev.SetIPv6(d, true))
	}
	// A device that somebody has put into a bridge or the like meanwhile is in use there: who did so wants it up.
	if !h.WasUp && d.AdminUp && d.Master == (hostdev.Master{}) {
		errs = append(errs, dev.SetUp(d, false))
	}
	if err := errors.Join(errs...); !errors.Is(err, unix.ENODEV) {
		// gone in the meantime: there is nothing to restore
		return err
	}
	return nil
}

// GiveBack gives all devices back, for "heddle down".
func GiveBack(dev Devices, st *state.Devices) error {
	var errs []error
	for _, h := range append(append([]state.Held{}, st.Held...), st.Released...) {
		if err := giveBack(dev, h); err != nil {
			errs = append(errs, fmt.Errorf("give back device %s of port %s: %w", h.Device, h.ID, err))
		}
	}
	if len(errs) == 0 {
		st.Held, st.Released = nil, nil
	}
	return errors.Join(errs...)
}
