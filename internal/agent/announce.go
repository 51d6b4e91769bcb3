package agent

import (
	"slices"
	"time"

	"heddle/internal/announce"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// fewVLANs is the most VLANs a trunk may list for its port's MAC to be announced in all of them. In a wider trunk it is announced
// untagged and where MACs were learned behind the port: Linux does not tell which VLANs the owner uses (D21).
const fewVLANs = 32

// announcing is a port to announce; moved: another uplink, and not a new port or VLAN.
type announcing struct {
	sw    *plan.Switch
	port  *plan.Port
	moved bool
}

// announce has the ports' MACs sent on the uplinks they use now, and their owners asked for their multicast groups. A port that
// may not send is announced no longer.
func (a *Agent) announce(list []announcing, now *teams) {
	if a.teaming.announcer == nil || len(list) == 0 {
		return
	}
	at := time.Now()
	r := &round{agent: a, now: now, own: map[string]map[plan.PortID]dataplane.OwnMAC{}}
	for _, p := range list {
		frames := append(r.rarps(p), r.queries(p)...)
		a.teaming.announcer.change(func(q *announce.Queue) { q.Replace(p.port.ID, at, frames...) })
	}
	a.announceLearned(list, r, at)
}

// announceLearned adds the MACs that were learned behind the ports. Listing them takes longer than all the rest, so it is last.
func (a *Agent) announceLearned(list []announcing, r *round, at time.Time) {
	by := map[plan.PortID]announcing{}
	for _, p := range list {
		if l := p.port.Policy.Learning; l.Enabled.V && r.speaks(p) {
			by[p.port.ID] = p
		}
	}
	if len(by) == 0 {
		return
	}
	learned, err := a.kernel.MACs()
	if err != nil {
		a.complain("announce learned MACs", err)
		return
	}
	done := map[plan.PortID]map[announce.Tag]bool{}
	for _, e := range learned {
		p, ok := by[e.Port]
		if !ok {
			continue
		}
		tag := announce.Tag{VID: e.VLAN, AD: e.AD}
		var frames []announce.Announcement
		if p.port.Policy.Learning.UnicastFlooding.V {
			frames = r.rarp(p, announce.LearnedMAC, e.MAC, tag)
		}
		if wide(p.port) && tag.VID != 0 && !done[e.Port][tag] {
			if done[e.Port] == nil {
				done[e.Port] = map[announce.Tag]bool{}
			}
			done[e.Port][tag] = true
			frames = append(frames, r.rarp(p, announce.OwnMAC, r.ownMAC(p), tag)...)
		}
		a.teaming.announcer.change(func(q *announce.Queue) { q.Add(e.Port, at, frames...) })
	}
}

// round is one change's announcements in the making.
type round struct {
	agent *Agent
	now   *teams
	own   map[string]map[plan.PortID]dataplane.OwnMAC // by switch
}

func (r *round) ownMAC(p announcing) plan.MAC {
	own, ok := r.own[p.sw.Name]
	if !ok {
		own = dataplane.EffectiveMACs(p.sw, r.agent.applied.Facts)
		r.own[p.sw.Name] = own
	}
	return own[p.port.ID].MAC
}

// speaks says whether the port's MACs are to be announced at all. The members of a channel are one port to the physical switch,
// so that a move within it is none (S52 says the same of a LAG, which is one entry of a team).
func (r *round) speaks(p announcing) bool {
	u := r.now.ports[p.port.ID]
	return u.up && len(u.Using) > 0 && p.port.Policy.Teaming.NotifySwitches.V && !(p.moved && u.team.Policy == spec.IPHash)
}

// rarps announce the port's own MAC where it is certain to be used.
func (r *round) rarps(p announcing) []announce.Announcement {
	mac := r.ownMAC(p)
	if !r.speaks(p) || mac.IsZero() {
		return nil
	}
	var all []announce.Announcement
	for _, tag := range tags(p.port) {
		all = append(all, r.rarp(p, announce.OwnMAC, mac, tag)...)
	}
	return all
}

// rarp announces a MAC in a VLAN on the uplink that its frames leave by, where that uplink carries the VLAN.
func (r *round) rarp(p announcing, kind announce.Kind, mac plan.MAC, tag announce.Tag) []announce.Announcement {
	u := r.uplink(p, mac)
	if u == nil || u.Blocked || !u.VLANs.Has(tag.VID) {
		return nil
	}
	return []announce.Announcement{{Kind: kind, Device: r.agent.applied.Attachments[u.ID].Ifindex, Frame: announce.RARP(mac, tag)}}
}

// uplink is one by which frames of that source leave: of a LAG, a member.
func (r *round) uplink(p announcing, mac plan.MAC) *plan.Uplink {
	use := r.now.ports[p.port.ID]
	entry := use.Using[0]
	if use.team.Policy == spec.SourceMAC {
		entry = use.team.Choose(uint32(mac[5]), func(e string) bool { return slices.Contains(use.Using, e) })
	}
	names := []string{entry}
	if lag := p.sw.LAG(entry); lag != nil {
		names = lag.Uplinks
	}
	for _, name := range names {
		id := plan.PortID{Switch: p.sw.Name, Name: name}
		if r.now.usable[id] {
			return r.agent.applied.Plan.Uplink(id)
		}
	}
	return nil
}

// queries ask the port's owner which groups it receives: the answers leave by the new uplink, and what counts receivers there
// learns the way.
func (r *round) queries(p announcing) []announce.Announcement {
	use := r.now.ports[p.port.ID]
	if !use.up || len(use.Using) == 0 {
		return nil
	}
	u := r.uplink(p, r.ownMAC(p))
	if u == nil {
		return nil
	}
	src := r.agent.applied.Facts[u.ID].DeviceMAC
	var all []announce.Announcement
	for _, tag := range tags(p.port) {
		if p.port.Policy.VLAN.V.Mode != plan.VLANTrunk {
			tag = announce.Tag{} // the owner sees no tag
		}
		for _, frame := range [][]byte{announce.IGMPQuery(src, tag), announce.MLDQuery(src, tag)} {
			all = append(all, announce.Announcement{Kind: announce.Query, Device: use.device, Frame: frame})
		}
	}
	return all
}

// tags are the VLANs that a port's own MAC is certain to be announced in, as they are tagged on an uplink.
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

// wide says whether the port's trunk lists more VLANs than its MAC is announced in unseen.
func wide(p *plan.Port) bool {
	v := p.Policy.VLAN.V
	return v.Mode == plan.VLANTrunk && v.Set.Count() > fewVLANs
}
