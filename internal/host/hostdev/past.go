package hostdev

import (
	"slices"
	"strings"
)

// Past is a device on top of another one that sends and receives past the switch to which the lower one belongs.
type Past struct {
	Device
	// Lower is the device that it is on top of.
	Lower string
}

// Past lists, by name, the devices on top of d, or of VLAN devices on it, that carry traffic of others than the host
// itself: macvlan and ipvlan devices, and VLAN devices that are members of a bridge or the like. A VLAN device by
// itself is the host's own traffic. Devices in other namespaces are not seen.
func (h *Host) Past(d Device) []Past {
	found := h.links.past(d.Index, stacking)
	slices.SortFunc(found, func(a, b Past) int { return strings.Compare(a.Name, b.Name) })
	return found
}

// links are devices by index.
type links map[uint32]link

func (all links) past(lower uint32, deep int) (found []Past) {
	if deep == 0 {
		return nil
	}
	for index, l := range all {
		if l.peer != lower || l.peerNS != localNS {
			continue
		}
		switch l.kind {
		case "macvlan", "macvtap", "ipvlan", "ipvtap":
			found = append(found, all.pastOn(l, lower))
		case "vlan":
			// A VRF is a table of routes for the host's own traffic.
			if m, ok := all[l.master]; ok && l.master != 0 && m.kind != "vrf" {
				found = append(found, all.pastOn(l, lower))
			}
			found = append(found, all.past(index, deep-1)...)
		}
	}
	return found
}

func (all links) pastOn(l link, lower uint32) Past {
	d := l.device()
	if m, ok := all[l.master]; ok && l.master != 0 {
		d.Master = Master{Name: m.name, Driver: m.kind}
	}
	return Past{Device: d, Lower: all[lower].name}
}
