package state

import (
	"slices"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// Devices is what the agent remembers of the devices of ports and uplinks.
type Devices struct {
	// Place is the boot and network namespace for which Held is valid.
	Place string `json:"place"`
	Held  []Held `json:"held"`
	// Given are the devices that the run-time ports of VMs were given by who connected them; valid for Place.
	Given []Given `json:"given,omitzero"`
	// Pairs are the devices that the agent made for host ports.
	Pairs []Pair `json:"pairs,omitzero"`
	// Released are devices that are no longer in use and have not been given back yet.
	Released []Held `json:"released,omitzero"`
	// Departed are the original settings of uplinks' devices that left the host's namespace with changed settings, in
	// case they come back.
	Departed []Held `json:"departed,omitzero"`

	// where indexes Held by port; it is valid for the list that begins at whereIn.
	where   map[plan.PortID]*Held
	whereIn *Held
}

// Held is one device that the agent holds, with its original settings, so that they can be restored.
type Held struct {
	ID     plan.PortID `json:"id"`
	Device string      `json:"device"`
	Index  uint32      `json:"ifindex"`
	// MAC is the address of the owner's end when the device was taken; it is the port's initial MAC if none is
	// configured.
	MAC plan.MAC `json:"mac"`
	// Own is the device's own address, which tells it from another device made later with the same name and index.
	Own plan.MAC `json:"own,omitzero"`
	// Permanent is the built-in address of a physical device.
	Permanent plan.MAC `json:"permanent,omitzero"`
	// Made: the agent created the device.
	Made           bool `json:"made,omitzero"`
	Uplink         bool `json:"uplink,omitzero"`
	WasUp          bool `json:"wasUp,omitzero"`
	WasPromiscuous bool `json:"wasPromiscuous,omitzero"`
	WasIPv6        bool `json:"wasIPv6,omitzero"`
	// WasARPIgnore is the arp_ignore of an uplink's device before the agent set it; empty if it did not.
	WasARPIgnore string `json:"wasARPIgnore,omitzero"`
	// Offloads are those of an uplink's device, or of a bond's members, that the agent turned off. Tuned: that has been
	// done.
	Offloads []HeldOffload `json:"offloads,omitzero"`
	Tuned    bool          `json:"tuned,omitzero"`
	// Prepared: everything that connecting does to the device has been done.
	Prepared bool `json:"prepared,omitzero"`
}

// HeldOffload is an offload that the agent turned off.
type HeldOffload struct {
	Device    string          `json:"device"`
	Index     uint32          `json:"ifindex"`
	Own       plan.MAC        `json:"own,omitzero"`
	Permanent plan.MAC        `json:"permanent,omitzero"`
	Offload   hostdev.Offload `json:"offload"`
}

// Is reports whether the device with the index of the held one is the held one: it has the same name or, if somebody
// renamed it, the same own or permanent address.
func (h Held) Is(d hostdev.Device) bool { return is(d, h.Index, h.Device, h.Own, h.Permanent) }

// Is reports whether the device is the one whose offload was turned off.
func (o HeldOffload) Is(d hostdev.Device) bool { return is(d, o.Index, o.Device, o.Own, o.Permanent) }

func is(d hostdev.Device, index uint32, name string, own, permanent plan.MAC) bool {
	return d.Index == index && (d.Name == name || !own.IsZero() && d.MAC == own || !permanent.IsZero() &&
		d.Permanent == permanent)
}

// Of returns the device of a port. The index is rebuilt when Held is another list: a thousand ports are looked up
// several times during a change.
func (s *Devices) Of(id plan.PortID) *Held {
	if len(s.Held) == 0 {
		return nil
	}
	if s.whereIn != &s.Held[0] || len(s.where) != len(s.Held) {
		s.whereIn, s.where = &s.Held[0], make(map[plan.PortID]*Held, len(s.Held))
		for i := range s.Held {
			s.where[s.Held[i].ID] = &s.Held[i]
		}
	}
	return s.where[id]
}

// Depart remembers the original settings of an uplink's device that left the host's namespace, and replaces what was
// remembered for that uplink.
func (s *Devices) Depart(h Held) {
	s.Departed = append(s.departedBut(h.ID), h)
}

// Return returns, and removes, the remembered settings of the uplink's device if this is the device that left.
func (s *Devices) Return(id plan.PortID, index uint32, own plan.MAC) (h Held, ok bool) {
	i := slices.IndexFunc(s.Departed, func(h Held) bool { return h.ID == id })
	if i < 0 {
		return h, false
	}
	h = s.Departed[i]
	s.Departed = s.departedBut(id)
	return h, h.Index == index && h.Own == own
}

// departedBut returns a new list, so that a caller that holds the earlier list can return to it.
func (s *Devices) departedBut(id plan.PortID) (list []Held) {
	for _, h := range s.Departed {
		if h.ID != id {
			list = append(list, h)
		}
	}
	return list
}

// rename gives ports other names. The lists are replaced.
func (s *Devices) rename(to func(plan.PortID) plan.PortID) {
	s.Held, s.Released, s.Given, s.whereIn = slices.Clone(s.Held), slices.Clone(s.Released), slices.Clone(s.Given), nil
	for i := range s.Held {
		s.Held[i].ID = to(s.Held[i].ID)
	}
	for i := range s.Released {
		s.Released[i].ID = to(s.Released[i].ID)
	}
	for i := range s.Given {
		s.Given[i].ID = to(s.Given[i].ID)
	}
}
