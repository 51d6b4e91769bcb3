package dataplane

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
	floods, promiscuous bool
}

// segment is an index into a switch's segments: VID, with abi.SegmentAD for 802.1ad.
type segment = uint16

// compileSegments finds, for every segment of a switch, the group of its receivers. Most segments of a trunk have the same
// receivers; they share one group, so that memory follows the number of different memberships and not the 4,094 VLANs.
func (c *compiler) compileSegments(id uint8, all []receiver) error {
	chunks := make([]abi.SegmentChunk, abi.SegmentsPerSwitch/abi.Chunk)
	c.img.segments[id] = chunks
	byAccess := map[segment][]int{}
	trunks := map[trunkKey][]int{}
	for i, r := range all {
		switch v := r.port.Policy.VLAN.V; v.Mode {
		case plan.VLANNone:
			byAccess[0] = append(byAccess[0], i)
		case plan.VLANAccess:
			byAccess[v.ID] = append(byAccess[v.ID], i)
		case plan.VLANTrunk:
			k := trunkKey{v.Set, v.AD}
			trunks[k] = append(trunks[k], i)
		}
	}
	shared := map[string]uint16{}
	for seg := segment(0); seg < abi.SegmentsPerSwitch; seg++ {
		sets := admittingTrunks(trunks, seg)
		if len(sets) == 0 && byAccess[seg] == nil {
			continue
		}
		key := membershipKey(all, trunks, sets, byAccess[seg])
		g, ok := shared[key]
		if !ok {
			var err error
			if g, err = c.group(all, trunks, sets, byAccess[seg]); err != nil {
				return err
			}
			shared[key] = g
		}
		chunks[seg/abi.Chunk].Group[seg%abi.Chunk] = g
	}
	return nil
}

// trunkKey tells trunks apart that admit different segments.
type trunkKey struct {
	set plan.VLANSet
	ad  bool
}

func admittingTrunks(trunks map[trunkKey][]int, seg segment) []trunkKey {
	var out []trunkKey
	vid, ad := seg&abi.VIDMask, seg&abi.SegmentAD != 0
	if vid == 0 && ad {
		return nil // VID 0 is the untagged segment whatever the protocol
	}
	for k := range trunks {
		if k.set.Has(vid) && (vid == 0 || k.ad == ad) {
			out = append(out, k)
		}
	}
	return out
}

// membershipKey is equal for segments with equal members: the first member of each trunk set stands for the set.
func membershipKey(all []receiver, trunks map[trunkKey][]int, sets []trunkKey, access []int) string {
	firsts := make([]uint16, 0, len(sets)+1)
	for _, k := range sets {
		firsts = append(firsts, all[trunks[k][0]].slot)
	}
	slices.Sort(firsts)
	key := make([]byte, 0, 2*len(sets)+5)
	for _, slot := range firsts {
		key = binary.BigEndian.AppendUint16(key, slot)
	}
	if len(access) > 0 {
		key = binary.BigEndian.AppendUint16(append(key, 'a', 'a', 'a'), all[access[0]].slot)
	}
	return string(key)
}

func (c *compiler) group(all []receiver, trunks map[trunkKey][]int, sets []trunkKey, access []int) (uint16, error) {
	in := make([]bool, len(all))
	for _, i := range access {
		in[i] = true
	}
	for _, k := range sets {
		for _, i := range trunks[k] {
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
	if len(c.img.groups) >= abi.MaxGroups {
		return 0, fmt.Errorf("this host has room for %d different sets of receivers; give trunks equal VLAN ranges", abi.MaxGroups)
	}
	g := abi.Group{All: c.run(members), Unknown: c.run(unknown), Promiscuous: c.run(promiscuous)}
	if len(c.img.members) > abi.MaxMemberChunks {
		return 0, fmt.Errorf("this host has room for %d memberships of ports in segments; give trunks equal VLAN ranges", abi.MaxMemberChunks*abi.Chunk)
	}
	c.img.groups = append(c.img.groups, g)
	return uint16(len(c.img.groups) - 1), nil
}

// run appends the slots to the member table.
func (c *compiler) run(slots []uint16) abi.MemberRun {
	r := abi.MemberRun{Chunk: uint32(len(c.img.members)), Count: uint32(len(slots))}
	for len(slots) > 0 {
		var chunk abi.MemberChunk
		n := copy(chunk.Slot[:], slots)
		slots = slots[n:]
		c.img.members = append(c.img.members, chunk)
	}
	return r
}
