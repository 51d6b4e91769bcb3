package dataplane

import (
	"encoding/binary"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// ownMAC is a port's effective MAC and whether its owner uses one it may not use (S3, S4, D2).
type ownMAC struct {
	mac       plan.MAC
	violation bool
}

func (c *compiler) effectiveMACs(sw *plan.Switch) map[plan.PortID]ownMAC {
	initial := map[plan.MAC]int{}
	taken := map[plan.MAC]bool{}
	for _, p := range sw.Ports {
		initial[p.InitialMAC]++
	}
	for _, u := range sw.Uplinks {
		if f, _, ok := c.connected(u.ID); ok {
			taken[f.DeviceMAC] = true
		}
	}
	out := make(map[plan.PortID]ownMAC, len(sw.Ports))
	for _, p := range sw.Ports {
		own := ownMAC{mac: p.InitialMAC}
		seen := plan.MAC{}
		if f, _, ok := c.connected(p.ID); ok {
			seen = f.SeenMAC
		}
		if !seen.IsZero() && seen != p.InitialMAC {
			free := !seen.IsGroup() && initial[seen] == 0 && !taken[seen]
			if free && (p.Policy.MACChanges.V || p.InitialMAC.IsZero()) {
				own.mac = seen
			} else {
				own.violation = true
			}
		}
		taken[own.mac] = true
		out[p.ID] = own
	}
	return out
}

// owner is a MAC of a switch that belongs to one of its ports or uplink devices.
type owner struct {
	switchID uint8
	mac      plan.MAC
}

// key is the owner as the table holds it.
func (o owner) key() uint64 {
	var b [8]byte
	copy(b[:6], o.mac[:])
	return binary.LittleEndian.Uint64(b[:]) | uint64(o.switchID+1)<<48
}

// buildOwners fills the hash table of owned MACs, trying seeds until every bucket has room. With at most MaxPorts owners in
// 16,384 places a seed fits nearly always at once; the sequence of seeds is fixed, so that equal owners give equal tables.
func buildOwners(owners map[owner]uint32) ([]abi.OwnerBucket, uint64) {
	for seed := uint64(0x9e3779b97f4a7c15); ; seed = seed*6364136223846793005 + 1442695040888963406 {
		if t, ok := fillOwners(owners, seed|1); ok {
			return t, seed | 1
		}
	}
}

func fillOwners(owners map[owner]uint32, seed uint64) ([]abi.OwnerBucket, bool) {
	table := make([]abi.OwnerBucket, abi.OwnerBuckets)
	for o, slot := range owners {
		key := o.key()
		b := &table[key*seed>>(64-abi.OwnerBucketBits)]
		i := 0
		for i < abi.OwnersPerBucket && b.Key[i] != 0 {
			i++
		}
		if i == abi.OwnersPerBucket {
			return nil, false
		}
		b.Key[i], b.Slot[i] = key, slot
	}
	return table, true
}
