package teams

import (
	"slices"

	"heddle/internal/binding"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/announce"
)

// fewVLANs is the largest number of VLANs of a trunk with which its port's MAC is announced in all of them. In a wider
// trunk it is announced untagged and where MACs were learned behind the port: Linux does not show which VLANs the owner
// uses (D21).
const fewVLANs = 32

// Round collects the announcements of one change.
type Round struct {
	inForce *binding.Desired
	now     *Teams
	own     map[string]map[plan.PortID]plan.MAC // by switch
	// speakers are the ports that send with MACs of others. shared is, by switch, which port has each MAC that siblings
	// share.
	speakers []observe.Speaker
	shared   map[string][]compile.Shared
	number   Numbers
}

// Numbers returns the number of an overlay segment, which is the VLAN that its frames have on the tunnel's device;
// false for a segment that has none.
type Numbers func(compile.OverlaySegment) (uint16, bool)

// NewRound begins a round; inForce is what became active together with now, speakers are the ports that send with MACs
// of others, and number the numbers of overlay segments.
func NewRound(inForce *binding.Desired, now *Teams, speakers []observe.Speaker, number Numbers) *Round {
	return &Round{inForce: inForce, now: now, speakers: speakers, own: map[string]map[plan.PortID]plan.MAC{},
		shared: map[string][]compile.Shared{}, number: number}
}

// Own returns the announcements of the port's own MAC, and the queries that ask its owner for its multicast groups.
func (r *Round) Own(p Subject) []announce.Announcement { return append(r.rarps(p), r.queries(p)...) }

// Learned returns the announcements of a MAC that was learned behind the port, for which frames from outside would
// otherwise be flooded. With the first MAC in a VLAN of a wide trunk the port's own MAC is announced there too.
func (r *Round) Learned(p Subject, mac plan.MAC, tag announce.Tag, first bool) []announce.Announcement {
	var frames []announce.Announcement
	if p.Port.Policy.Learning.UnicastFlooding.V {
		frames = r.rarp(p, announce.LearnedMAC, mac, tag)
	}
	if first && wide(p.Port) && tag.VID != 0 {
		frames = append(frames, r.rarp(p, announce.OwnMAC, r.ownMAC(p), tag)...)
	}
	return frames
}

func (r *Round) ownMAC(p Subject) plan.MAC {
	own, ok := r.own[p.Switch.Name]
	if !ok {
		own = make(map[plan.PortID]plan.MAC, len(p.Switch.Ports))
		for i, o := range compile.EffectiveMACs(p.Switch, r.inForce.Facts) {
			own[p.Switch.Ports[i].ID] = o.MAC
		}
		r.own[p.Switch.Name] = own
	}
	return own[p.Port.ID]
}

// Speaks reports whether the port's MACs are announced at all. The members of a channel are one port to the physical
// switch, so that a move within it is no move (S52 has the same for a LAG, which is one entry of a team).
func (r *Round) Speaks(p Subject) bool {
	u := r.now.Of(p.Port.ID)
	if p.Port.VNI != 0 {
		return u.Up && p.Port.Policy.Teaming.NotifySwitches.V && r.inForce.Facts[p.Switch.Tunnel.ID].Up
	}
	return u.Up && len(u.Using) > 0 && p.Port.Policy.Teaming.NotifySwitches.V &&
		!(p.Moved && u.Team.Policy == spec.IPHash)
}

// rarps returns the announcements of the port's MACs in the VLANs in which they are certainly used.
func (r *Round) rarps(p Subject) []announce.Announcement {
	if !r.Speaks(p) {
		return nil
	}
	var all []announce.Announcement
	for _, mac := range r.holds(p) {
		for _, tag := range tags(p.Port) {
			all = append(all, r.rarp(p, announce.OwnMAC, mac, tag)...)
		}
	}
	return all
}

// holds returns the MACs whose frames go to the port: its own, unless a sibling has it now, and those of siblings that
// it has (S111). A bond in a guest gives both its adapters one MAC: if the standby announced it too, the physical
// network would send frames to the wrong uplink.
func (r *Round) holds(p Subject) (macs []plan.MAC) {
	own := r.ownMAC(p)
	elsewhere := own.IsZero()
	for _, s := range r.sharedOf(p) {
		switch {
		case s.At != p.Port.ID:
			elsewhere = elsewhere || s.MAC == own && slices.Contains(s.Owners, p.Port.ID)
		case s.MAC != own:
			macs = append(macs, s.MAC)
		}
	}
	if !elsewhere {
		macs = append(macs, own)
	}
	return macs
}

// sharedOf returns the MACs that siblings share on the port's switch.
func (r *Round) sharedOf(p Subject) []compile.Shared {
	if p.Port.Family() == "" {
		return nil
	}
	list, ok := r.shared[p.Switch.Name]
	if !ok {
		list = compile.SharedMACs(p.Switch, r.inForce.Facts, r.speakers)
		r.shared[p.Switch.Name] = list
	}
	return list
}

// rarp returns the announcement of a MAC in a VLAN on the uplink by which its frames leave, if that uplink carries the
// VLAN.
func (r *Round) rarp(p Subject, kind announce.Kind, mac plan.MAC, tag announce.Tag) []announce.Announcement {
	if p.Port.VNI != 0 {
		return r.overTunnel(p, kind, mac, tag)
	}
	u := r.uplink(p, mac)
	if u == nil || u.Blocked || !u.VLANs.Has(tag.VID) {
		return nil
	}
	return []announce.Announcement{{Kind: kind, Device: r.inForce.Attachments[u.ID].Ifindex,
		Frame: announce.RARP(mac, tag)}}
}

// overTunnel returns the announcement to the other hosts of an overlay segment. Those without controllers learn from it
// where the MAC is.
func (r *Round) overTunnel(p Subject, kind announce.Kind, mac plan.MAC, tag announce.Tag) []announce.Announcement {
	seg, _ := compile.SegmentIn(p.Port, tag.VID)
	n, ok := r.number(seg)
	at, attached := r.inForce.Attachments[p.Switch.Tunnel.ID]
	if !ok || !attached {
		return nil
	}
	return []announce.Announcement{{Kind: kind, Device: at.Ifindex, Tunnel: true,
		Frame: announce.RARP(mac, announce.Tag{VID: n})}}
}

// uplink returns the uplink by which frames with that source leave: for a LAG, a member.
func (r *Round) uplink(p Subject, mac plan.MAC) *plan.Uplink {
	use := r.now.Of(p.Port.ID)
	entry := use.Using[0]
	if use.Team.Policy == spec.SourceMAC {
		entry = use.Team.Choose(uint32(mac[5]), func(e string) bool { return slices.Contains(use.Using, e) })
	}
	names := []string{entry}
	if lag := p.Switch.LAG(entry); lag != nil {
		names = lag.Uplinks
	}
	for _, name := range names {
		id := plan.PortID{Switch: p.Switch.Name, Name: name}
		if r.now.Usable[id] {
			return r.inForce.Plan.Uplink(id)
		}
	}
	return nil
}

// queries returns queries that ask the port's owner which groups it receives: the answers leave by the new uplink, so
// that switches with multicast snooping learn the new path.
func (r *Round) queries(p Subject) []announce.Announcement {
	use := r.now.Of(p.Port.ID)
	if !use.Up || len(use.Using) == 0 || p.Port.VNI != 0 { // nobody snoops in a tunnel
		return nil
	}
	u := r.uplink(p, r.ownMAC(p))
	if u == nil {
		return nil
	}
	src := r.inForce.Facts[u.ID].DeviceMAC
	var all []announce.Announcement
	for _, tag := range tags(p.Port) {
		if p.Port.Policy.VLAN.V.Mode != plan.VLANTrunk {
			tag = announce.Tag{} // the owner sees no tag
		}
		for _, frame := range [][]byte{announce.IGMPQuery(src, tag), announce.MLDQuery(src, tag)} {
			all = append(all, announce.Announcement{Kind: announce.Query, Device: use.Device, Frame: frame})
		}
	}
	return all
}

// tags returns the VLANs in which a port's own MAC is certainly announced, as they are tagged on an uplink.
func tags(p *plan.Port) []announce.Tag {
	switch v := p.Policy.VLAN.V; {
	case v.Mode == plan.VLANAccess:
		return []announce.Tag{{VID: v.ID}}
	case v.Mode == plan.VLANNone:
		return []announce.Tag{{}}
	case wide(p):
		if v.Set.Has(0) {
			return []announce.Tag{{}}
		}
		return nil
	default:
		var all []announce.Tag
		for id := range uint16(4095) {
			if v.Set.Has(id) {
				all = append(all, announce.Tag{VID: id, AD: v.AD && id != 0})
			}
		}
		return all
	}
}

// wide reports whether the port's trunk has more than fewVLANs VLANs.
func wide(p *plan.Port) bool {
	v := p.Policy.VLAN.V
	return v.Mode == plan.VLANTrunk && v.Set.Count() > fewVLANs
}
