package held

import (
	"errors"
	"fmt"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// offloadsInTheWay returns the offloads that an uplink's device must not use: merging segments that are for others, or
// dropping VLANs for which the host itself has no interface. Hardware GRO does no harm: its frames can be split again.
func offloadsInTheWay() []hostdev.Offload {
	return []hostdev.Offload{hostdev.LRO, hostdev.VLANFilter, hostdev.VLANFilterAD}
}

// hardware is what is known about an uplink's device.
type hardware struct {
	index    uint32
	warnings []string
}

// tuneUplinks turns off offloads that disturb a switch, once, on newly attached uplink devices, so that an operator may
// turn them on again. The settings are saved first, so that they can be restored after a crash.
func (hd *Part) tuneUplinks(bounds []active.Bound) error {
	seen := make(map[plan.PortID]hardware)
	for _, b := range bounds {
		h := hd.host.Document.Of(b.ID)
		if b.Uplink == nil || h == nil {
			continue
		}
		if known, ok := hd.hardware[b.ID]; ok && h.Tuned && known.index == b.Device.Index {
			seen[b.ID] = known
			continue
		}
		warnings, err := hd.tune(b, h)
		if err != nil {
			return fmt.Errorf("uplink %s: %w", b.ID, err)
		}
		for _, w := range warnings {
			hd.host.Log.Warn("uplink device", "uplink", b.ID.String(), "warning", w)
		}
		seen[b.ID] = hardware{b.Device.Index, warnings}
	}
	hd.hardware = seen
	return nil
}

// tune does this for one uplink and returns the settings that the device, or a member of it, does not allow to change.
func (hd *Part) tune(b active.Bound, h *state.Held) (warnings []string, err error) {
	devices := append([]hostdev.Device{b.Device}, hd.host.Devices().Members(b.Device)...)
	if !h.Tuned {
		if err := hd.writeDownOffloads(devices, h); err != nil {
			return nil, err
		}
		hd.switchOff(devices, h)
		h.Tuned = true
	}
	for _, d := range devices {
		now, err := hd.host.Devices().Offloads(d)
		if err != nil {
			return nil, err
		}
		for _, o := range offloadsInTheWay() {
			if now[o].On {
				warnings = append(warnings, offloadWarning(d, o, now[o].Fixed))
			}
		}
	}
	return warnings, nil
}

// writeDownOffloads saves the settings that are about to be turned off.
func (hd *Part) writeDownOffloads(devices []hostdev.Device, h *state.Held) error {
	n := len(h.Offloads)
	for _, d := range devices {
		now, err := hd.host.Devices().Offloads(d)
		if err != nil {
			return err
		}
		for _, o := range offloadsInTheWay() {
			e := state.HeldOffload{Device: d.Name, Index: d.Index, Own: d.MAC, Permanent: d.Permanent, Offload: o}
			known := func(k state.HeldOffload) bool { return k.Index == e.Index && k.Offload == o }
			if now[o].On && !now[o].Fixed && !slices.ContainsFunc(h.Offloads, known) {
				h.Offloads = append(slices.Clip(h.Offloads), e)
			}
		}
	}
	if len(h.Offloads) == n {
		return nil
	}
	return hd.host.Save()
}

// switchOff turns the offloads off. If a driver refuses, this is no error: offloads that are still on cause a warning.
func (hd *Part) switchOff(devices []hostdev.Device, h *state.Held) {
	for _, e := range h.Offloads {
		i := slices.IndexFunc(devices, func(d hostdev.Device) bool { return d.Index == e.Index })
		if i < 0 {
			continue
		}
		if err := hd.host.Devices().SetOffload(devices[i], e.Offload, false); err != nil {
			hd.host.Log.Debug("offload not switched off", "device", e.Device, "error", err)
		}
	}
}

// giveOffloadsBack turns on again what was on. A member that is gone is left alone.
func giveOffloadsBack(dev Devices, h state.Held) error {
	var errs []error
	for _, e := range h.Offloads {
		d, ok, err := dev.DeviceAt(e.Index)
		if err == nil && ok && e.Is(d) {
			err = dev.SetOffload(d, e.Offload, true)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// offloadWarning returns what harm an offload does that is on, and what the operator can do.
func offloadWarning(d hostdev.Device, o hostdev.Offload, fixed bool) string {
	state := "is on"
	if fixed {
		state = "is on and cannot be switched off"
	}
	if o == hostdev.LRO {
		return fmt.Sprintf("%s of device %s %s: merged segments cannot be passed on to guests (see ethtool -k %s)", o,
			d.Name, state, d.Name)
	}
	return fmt.Sprintf("%s of device %s %s: promiscuous mode lifts it on most drivers; if tagged frames do not "+
		"arrive, add the VLAN to its filter (ip link add link %s name %s.ID type vlan id ID)",
		o, d.Name, state, d.Name, d.Name)
}

// changedOn lists the settings that the agent has changed on an uplink's device and will restore.
func changedOn(h *state.Held) []string {
	var all []string
	if h.Prepared && !h.WasPromiscuous {
		all = append(all, "promiscuous mode on")
	}
	for _, e := range h.Offloads {
		what := string(e.Offload) + " off"
		if e.Index != h.Index {
			what += " on its member " + e.Device
		}
		all = append(all, what)
	}
	if h.WasARPIgnore != "" {
		all = append(all, "arp_ignore "+ownAddressesOnly)
	}
	return all
}

// DeviceOf returns what is wrong with an uplink's device, and which settings were changed on it.
func (hd *Part) DeviceOf(uplink plan.PortID) (warnings, changed []string) {
	if h := hd.host.Document.Of(uplink); h != nil {
		changed = changedOn(h)
	}
	return hd.hardware[uplink].warnings, changed
}
