package agent

import (
	"fmt"
	"slices"

	"heddle/internal/hostdev"
	"heddle/internal/plan"
)

// offloadsInTheWay are what an uplink's device must not do to frames: merge segments that are for others, or drop the VLANs that
// the host itself has no interface for. Hardware GRO is no harm: its frames can be taken apart again.
func offloadsInTheWay() []hostdev.Offload {
	return []hostdev.Offload{hostdev.LRO, hostdev.VLANFilter, hostdev.VLANFilterAD}
}

// hardware is what was found out about an uplink's device.
type hardware struct {
	index    uint32
	warnings []string
}

// tuneUplinks switches off what is in a switch's way on newly taken uplink devices, once, so that an operator may switch it on
// again. What was on is written down first, so that it can be given back after a crash.
func (a *Agent) tuneUplinks(bounds []bound) error {
	seen := make(map[plan.PortID]hardware)
	for _, b := range bounds {
		h := a.state.held(b.id)
		if b.uplink == nil || h == nil {
			continue
		}
		if known, ok := a.hardware[b.id]; ok && h.Tuned && known.index == b.device.Index {
			seen[b.id] = known
			continue
		}
		warnings, err := a.tune(b, h)
		if err != nil {
			return fmt.Errorf("uplink %s: %w", b.id, err)
		}
		for _, w := range warnings {
			a.log.Warn("uplink device", "uplink", b.id.String(), "warning", w)
		}
		seen[b.id] = hardware{b.device.Index, warnings}
	}
	a.hardware = seen
	return nil
}

// tune does it for one uplink and gives what the device does not let itself be told.
func (a *Agent) tune(b bound, h *Held) (warnings []string, err error) {
	if err := a.writeDownOffloads(b, h); err != nil {
		return nil, err
	}
	if !h.Tuned {
		for _, o := range h.Offloads {
			// A driver that refuses is no error: the check below says so.
			if err := a.dev.SetOffload(b.device, o, false); err != nil {
				a.log.Debug("offload not switched off", "device", b.device.Name, "error", err)
			}
		}
		h.Tuned = true
	}
	now, err := a.dev.Offloads(b.device)
	if err != nil {
		return nil, err
	}
	for _, o := range offloadsInTheWay() {
		if now[o].On {
			warnings = append(warnings, offloadWarning(b.device, o, now[o].Fixed))
		}
	}
	return warnings, nil
}

// writeDownOffloads adds what is to be switched off to what is remembered of the device.
func (a *Agent) writeDownOffloads(b bound, h *Held) error {
	if h.Tuned {
		return nil
	}
	now, err := a.dev.Offloads(b.device)
	if err != nil {
		return err
	}
	n := len(h.Offloads)
	for _, o := range offloadsInTheWay() {
		if now[o].On && !now[o].Fixed && !slices.Contains(h.Offloads, o) {
			h.Offloads = append(slices.Clip(h.Offloads), o)
		}
	}
	if len(h.Offloads) == n {
		return nil
	}
	return a.store.Save(a.state)
}

// offloadWarning says what an offload that is on does, and what can be done.
func offloadWarning(d hostdev.Device, o hostdev.Offload, fixed bool) string {
	state := "is on"
	if fixed {
		state = "is on and cannot be switched off"
	}
	if o == hostdev.LRO {
		return fmt.Sprintf("%s of device %s %s: merged segments cannot be passed on to guests (see ethtool -k %s)", o, d.Name, state, d.Name)
	}
	return fmt.Sprintf("%s of device %s %s: promiscuous mode lifts it on most drivers; if tagged frames do not arrive, add the VLAN to its filter (ip link add link %s name %s.ID type vlan id ID)",
		o, d.Name, state, d.Name, d.Name)
}

// changedOn lists what the agent has set on an uplink's device and gives back.
func (h *Held) changedOn() []string {
	var all []string
	if h.Prepared && !h.WasPromiscuous {
		all = append(all, "promiscuous mode on")
	}
	for _, o := range h.Offloads {
		all = append(all, string(o)+" off")
	}
	if h.WasARPIgnore != "" {
		all = append(all, "arp_ignore "+ownAddressesOnly)
	}
	return all
}
