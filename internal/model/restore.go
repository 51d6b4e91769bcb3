package model

import (
	"time"

	"heddle/internal/plan"
)

// Sent is when a port of the switch last sent with a source (S91).
type Sent struct {
	Switch string
	Segment
	MAC plan.MAC
	At  time.Duration
}

// Restore gives a new host the learned entries and marks of another one, on the same clock; it does not read the Switch
// of a MAC. Entries of ports that the plan does not have are left out. Expired ones count until they are swept, as they
// did there.
func (h *Host) Restore(learned []MAC, sent []Sent) {
	for _, m := range learned {
		at := h.places[m.Port]
		if at.port == nil {
			continue
		}
		who := station{m.Segment, m.MAC}
		if at.sw.learned[who] == nil {
			at.port.tally.held++
		}
		at.sw.learned[who] = &entry{port: at.port, seen: m.Seen}
	}
	for _, s := range sent {
		name := s.Switch
		if s.VNI != 0 {
			name += overlaySpace
		}
		if sw := h.switches[name]; sw != nil {
			sw.sent[station{s.Segment, s.MAC}] = max(s.At, sw.sent[station{s.Segment, s.MAC}])
		}
	}
}

// RestoreSpent gives a new host what the ports of another one have spent of their storm control budgets, on the same
// clock.
func (h *Host) RestoreSpent(list []Spent) {
	for _, s := range list {
		if at := h.places[s.Port]; at.port != nil {
			at.port.tally.buckets[s.Class] = bucket{spent: s.Billionths, at: s.At}
		}
	}
}

// RestoreAwake gives a new host the numbers of the waits that have ended on another one.
func (h *Host) RestoreAwake(waits map[plan.PortID]uint32) {
	for id, n := range waits {
		if at := h.places[id]; at.port != nil {
			at.sw.awake[id.Name] = max(n, at.sw.awake[id.Name])
		}
	}
}

// Speaker is a port that sent last from a MAC which another port owns (S111).
type Speaker struct {
	Owner, Port plan.PortID
	MAC         plan.MAC
}

// RestoreSpeakers gives a new host the speakers of another one.
func (h *Host) RestoreSpeakers(list []Speaker) {
	for _, s := range list {
		if at := h.places[s.Owner]; at.port != nil && at.sw.named[s.Port.Name] != nil {
			at.sw.speaks[s.Owner.Name] = speaker{s.MAC, s.Port.Name}
		}
	}
}

// MACOf is the effective MAC of a port, or the MAC of an uplink's device. Zero when it has none.
func (h *Host) MACOf(id plan.PortID) plan.MAC {
	switch at := h.places[id]; {
	case at.port != nil:
		return at.port.mac
	case at.uplink != nil:
		return at.uplink.fact.DeviceMAC
	}
	return plan.MAC{}
}

// Admits reports whether a port is a member of a segment of its switch; for an uplink, whether it carries it.
func (h *Host) Admits(id plan.PortID, s Segment) bool {
	switch at := h.places[id]; {
	case at.port != nil:
		return at.port.admits(s)
	case at.uplink != nil:
		return at.uplink.VLANs.Has(s.VLAN)
	}
	return false
}

// Owner is the connected port of a switch that has this effective MAC and whose guest runs here.
func (h *Host) Owner(name string, mac plan.MAC) (plan.PortID, bool) {
	if sw := h.switches[name]; sw != nil {
		if p := sw.ownerOf(mac); p != nil {
			return p.ID, true
		}
	}
	return plan.PortID{}, false
}
