package view

import (
	"maps"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Member is a port or uplink whose counters are shown.
type Member struct {
	ID        plan.PortID
	PortGroup string // "" of an uplink
	Uplink    bool
}

// Members returns the uplinks and ports of a plan, in its order.
func Members(p *plan.Plan) []Member {
	out := []Member{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			out = append(out, Member{ID: u.ID, Uplink: true})
		}
		if sw.Tunnel != nil {
			out = append(out, Member{ID: sw.Tunnel.ID, Uplink: true})
		}
		for _, p := range sw.Ports {
			out = append(out, Member{ID: p.ID, PortGroup: p.PortGroup})
		}
	}
	return out
}

// Stats converts a port's or uplink's counters (S80, D7), read at an instant of CLOCK_MONOTONIC in nanoseconds,
// together with those that came with it from another host (S79).
func Stats(m Member, c observe.Counters, before observe.Base, at int64) api.Stats {
	s := statsOf(m.ID, m.Uplink, before.With(c))
	dropped, refused := before.OtherReasons()
	addOthers(&s, &s.Drops, "packetsInDropped", dropped)
	addOthers(&s, &s.Refused, "packetsOutDropped", refused)
	s.PortGroup, s.ReadAt = m.PortGroup, at
	return s
}

// statsOf returns a port's counters under their public names. Drops are split as docs/reference/frame-rules.md §7 says:
// malformed frames and copies that a device refused are exceptions, everything else is dropped.
func statsOf(id plan.PortID, uplink bool, c observe.Counters) api.Stats {
	s := api.Stats{Switch: id.Switch, Name: id.Name, Uplink: uplink, Drops: reasons(c.Drops),
		Refused: reasons(c.Refused), Counters: make([]api.Counter, 0, 18)}
	for _, d := range []struct {
		name  string
		count [abi.Classes]uint64
	}{{"packetsIn", c.PacketsIn}, {"bytesIn", c.BytesIn}, {"packetsOut", c.PacketsOut}, {"bytesOut", c.BytesOut}} {
		s.Counters = append(s.Counters,
			api.Counter{Name: d.name + "Unicast", Value: d.count[abi.ClassUnicast]},
			api.Counter{Name: d.name + "Multicast", Value: d.count[abi.ClassMulticast]},
			api.Counter{Name: d.name + "Broadcast", Value: d.count[abi.ClassBroadcast]})
	}
	inDropped, inException := split(c.Drops, abi.ReasonMalformed)
	outDropped, outException := split(c.Refused, abi.ReasonDeviceRefused)
	s.Counters = append(s.Counters,
		api.Counter{Name: "packetsInDropped", Value: inDropped},
		api.Counter{Name: "packetsOutDropped", Value: outDropped},
		api.Counter{Name: "packetsInException", Value: inException},
		api.Counter{Name: "packetsOutException", Value: outException},
		api.Counter{Name: "bytesInFromPnic", Value: c.BytesInFromPnic},
		api.Counter{Name: "bytesOutToPnic", Value: c.BytesOutToPnic})
	s.Extra = []api.Counter{
		{Name: "delivered", Value: c.Delivered},
		{Name: "packetsToHost", Value: c.PacketsToHost},
		{Name: "macsLearned", Value: c.MACsHeld},
		{Name: "macMoves", Value: c.MACMoves},
		{Name: "macNotLearnedAllowed", Value: c.MACNotLearnedAllowed},
		{Name: "macNotLearnedDropped", Value: c.Drops[abi.ReasonMACLimit] + c.Drops[abi.ReasonMACTableFull]},
		{Name: "unknownNotFlooded", Value: c.UnknownNotFlooded},
		{Name: "unknownFlooded", Value: c.UnknownFlooded},
	}
	return s
}

// addOthers adds counts of reasons that this version does not know.
func addOthers(s *api.Stats, to *api.ReasonCounts, sum string, list []observe.Named) {
	for _, n := range list {
		*to = append(*to, api.ReasonNo{Reason: n.Name, Value: n.Value})
		for i := range s.Counters {
			if s.Counters[i].Name == sum {
				s.Counters[i].Value += n.Value
			}
		}
	}
}

// split returns the sum of all reasons but one, and the count of that one.
func split(by map[abi.Reason]uint64, apart abi.Reason) (rest, one uint64) {
	for r, n := range by {
		if r == apart {
			one += n
		} else {
			rest += n
		}
	}
	return rest, one
}

func reasons(by map[abi.Reason]uint64) []api.ReasonNo {
	out := []api.ReasonNo{}
	if len(by) == 0 {
		return out
	}
	for _, r := range slices.Sorted(maps.Keys(by)) {
		if by[r] > 0 {
			out = append(out, api.ReasonNo{Reason: r.String(), Value: by[r]})
		}
	}
	return out
}

// MACs returns the addresses of the connected ports, and the learned ones. speakers are the ports that send with the
// MACs of their siblings.
func MACs(p *plan.Plan, facts plan.Facts, learned []observe.MACEntry, speakers []observe.Speaker) []api.MAC {
	out := []api.MAC{}
	for _, sw := range p.Switches {
		own, elsewhere := compile.EffectiveMACs(sw, facts), map[plan.PortID]bool{}
		heard := map[plan.PortID][]plan.MAC{}
		for _, s := range compile.SharedMACs(sw, facts, speakers) {
			for _, owner := range s.Owners {
				elsewhere[owner] = owner != s.At
			}
			if !slices.Contains(s.Owners, s.At) {
				heard[s.At] = append(heard[s.At], s.MAC)
			}
		}
		for i, p := range sw.Ports {
			kind := "port"
			if elsewhere[p.ID] {
				kind = "standby"
			}
			if _, connected := facts[p.ID]; connected && !own[i].MAC.IsZero() {
				out = append(out, api.MAC{Switch: sw.Name, VLAN: ownVLAN(p), MAC: own[i].MAC.String(), Port: p.ID.Name,
					Kind: kind})
			}
			for _, mac := range heard[p.ID] {
				out = append(out, api.MAC{Switch: sw.Name, VLAN: ownVLAN(p), MAC: mac.String(), Port: p.ID.Name,
					Kind: "sibling"})
			}
		}
	}
	return append(out, Learned(learned)...)
}

// Learned converts learned addresses.
func Learned(list []observe.MACEntry) []api.MAC {
	out := make([]api.MAC, 0, len(list))
	for _, e := range list {
		out = append(out, api.MAC{Switch: e.Switch, VLAN: plan.SegmentOf(e.VLAN, e.AD).In(e.VNI), MAC: e.MAC.String(),
			Port: e.Port.Name, Kind: "learned", IdleSeconds: e.Idle})
	}
	return out
}

// ownVLAN returns where a port's own address is known: in the port's one VLAN, or in every VLAN of its trunk; inside
// its overlay segment, if it has one.
func ownVLAN(p *plan.Port) plan.Segment {
	switch v := p.Policy.VLAN.V; v.Mode {
	case plan.VLANAccess:
		return plan.SegmentOf(v.ID, false).In(p.VNI)
	case plan.VLANTrunk:
		return plan.Segment{Kind: plan.SegmentTrunk}.In(p.VNI)
	}
	return plan.SegmentOf(0, false).In(p.VNI)
}
