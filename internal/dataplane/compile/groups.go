package compile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// receiver is a connected port as a member of segments.
type receiver struct {
	slot                uint16
	port                *plan.Port
	host                *plan.Uplink // set instead of port: the host behind that uplink
	floods, promiscuous bool
}

// segment is an index into a switch's segments: the VID, plus abi.SegmentAD for 802.1ad.
type segment = uint16

// compileSegments finds, for every segment of a switch, the group of its receivers. Most segments of a trunk have the
// same receivers; they share one group, so that memory follows the number of different memberships and not the 4,094
// VLANs.
func (c *compiler) compileSegments(id uint8, all []receiver) error {
	chunks := make([]abi.SegmentChunk, abi.SegmentsPerSwitch/abi.Chunk)
	c.img.Segments[id] = chunks
	access, trunks := sortReceivers(all)
	shared := map[string]uint16{}
	for seg := segment(0); seg < abi.SegmentsPerSwitch; seg++ {
		var m membership
		if int(seg) < len(access) {
			m.access = access[seg]
		}
		for _, t := range trunks {
			if t.admits(seg) {
				m.trunks = append(m.trunks, t.members)
			}
		}
		if m.access == nil && m.trunks == nil {
			continue
		}
		key := m.key()
		g, ok := shared[key]
		if !ok {
			var err error
			if g, err = c.group(all, m); err != nil {
				return err
			}
			shared[key] = g
		}
		chunks[seg/abi.Chunk].Group[seg%abi.Chunk] = g
	}
	return nil
}

// trunk is the ports whose trunks admit the same segments, as indexes into the receivers.
type trunk struct {
	set     plan.VLANSet
	ad      bool
	both    bool // VLANs of both protocols, as for an uplink
	members []int
}

// admits reports whether the trunk admits the segment. VID 0 is the untagged segment whatever the trunk's protocol, and
// does not exist for 802.1ad.
func (t *trunk) admits(seg segment) bool {
	vid, ad := seg&abi.VIDMask, seg&abi.SegmentAD != 0
	if vid == 0 {
		return !ad && t.set.Has(0)
	}
	return (t.both || t.ad == ad) && t.set.Has(vid)
}

// sortReceivers groups receivers by what they admit: the one segment of an access port, or the set of a trunk.
func sortReceivers(all []receiver) (access [abi.VIDMask + 1][]int, trunks []*trunk) {
	join := func(i int, like trunk) {
		n := slices.IndexFunc(trunks, func(t *trunk) bool {
			return t.set == like.set && t.ad == like.ad &&
				t.both == like.both
		})
		if n < 0 {
			n = len(trunks)
			trunks = append(trunks, &like)
		}
		trunks[n].members = append(trunks[n].members, i)
	}
	for i, r := range all {
		if r.host != nil {
			join(i, trunk{set: r.host.VLANs, both: true})
			continue
		}
		v := r.port.Policy.VLAN.V
		switch v.Mode {
		case plan.VLANNone:
			access[0] = append(access[0], i)
		case plan.VLANAccess:
			access[v.ID] = append(access[v.ID], i)
		case plan.VLANTrunk:
			join(i, trunk{set: v.Set, ad: v.AD})
		}
	}
	return access, trunks
}

// membership is the receivers of a segment, as indexes.
type membership struct {
	access []int
	trunks [][]int
}

// key returns equal texts for equal memberships: each list is represented by its first member.
func (m *membership) key() string {
	key := make([]byte, 0, 2*len(m.trunks)+5)
	for _, t := range m.trunks {
		key = binary.BigEndian.AppendUint16(key, uint16(t[0]))
	}
	if len(m.access) > 0 {
		key = binary.BigEndian.AppendUint16(append(key, 'a', 'a', 'a'), uint16(m.access[0]))
	}
	return string(key)
}

func (c *compiler) group(all []receiver, m membership) (uint16, error) {
	in := make([]bool, len(all))
	for _, list := range append(m.trunks, m.access) {
		for _, i := range list {
			in[i] = true
		}
	}
	var members, unknown, promiscuous []uint16
	for i, r := range all {
		if !in[i] {
			continue
		}
		members = append(members, r.slot)
		if r.floods || r.promiscuous {
			unknown = append(unknown, r.slot)
		}
		if r.promiscuous {
			promiscuous = append(promiscuous, r.slot)
		}
	}
	c.wanted(members, unknown)
	if len(c.img.Groups) >= abi.MaxGroups {
		return 0, fmt.Errorf("this host can have at most %d different sets of receivers; give trunks equal VLAN ranges",
			abi.MaxGroups)
	}
	g := abi.Group{All: c.run(members), Unknown: c.run(unknown), Promiscuous: c.run(promiscuous)}
	if len(c.img.Members) > abi.MaxMemberChunks {
		return 0, fmt.Errorf("this host can have at most %d memberships of ports in segments; give trunks equal VLAN "+
			"ranges", abi.MaxMemberChunks*abi.Chunk)
	}
	c.img.Groups = append(c.img.Groups, g)
	return uint16(len(c.img.Groups) - 1), nil
}

// wanted records, for each member of a segment, whether other members want its frames to unknown destinations.
func (c *compiler) wanted(members, by []uint16) {
	for _, slot := range members {
		if len(by) > 1 || len(by) == 1 && by[0] != slot {
			c.img.Ports[slot].Flags &^= abi.PortUnknownLeaves
		}
	}
}

// run appends the slots to the member table.
func (c *compiler) run(slots []uint16) abi.MemberRun {
	r := abi.MemberRun{Chunk: uint32(len(c.img.Members)), Count: uint32(len(slots))}
	for len(slots) > 0 {
		var chunk abi.MemberChunk
		n := copy(chunk.Slot[:], slots)
		slots = slots[n:]
		c.img.Members = append(c.img.Members, chunk)
	}
	return r
}
