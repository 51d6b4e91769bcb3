package dataplane

import (
	"encoding/binary"
	"fmt"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// OwnMAC is the address a port answers to, its effective MAC, and what its owner does that the port may not; "" when nothing
// (S3, S4, D2).
type OwnMAC struct {
	MAC       plan.MAC
	Violation string
}

// taker is who has a MAC.
type taker struct{ kind, name string }

// EffectiveMACs are the effective MACs of a switch's ports (docs/reference/frame-rules.md section 1), as the kernel enforces
// them. Facts holds the connected ports and uplinks.
func EffectiveMACs(sw *plan.Switch, facts plan.Facts) map[plan.PortID]OwnMAC {
	taken := make(map[plan.MAC]taker, len(sw.Uplinks)+len(sw.Ports))
	for _, u := range sw.Uplinks {
		if f, ok := facts[u.ID]; ok && !f.DeviceMAC.IsZero() {
			taken[f.DeviceMAC] = taker{"uplink", u.ID.Name}
		}
	}
	for _, p := range sw.Ports {
		if !p.InitialMAC.IsZero() {
			taken[p.InitialMAC] = taker{"port", p.ID.Name}
		}
	}
	own := make(map[plan.PortID]OwnMAC, len(sw.Ports))
	for _, p := range sw.Ports {
		o := effectiveMAC(p, facts[p.ID].SeenMAC, taken)
		if !o.MAC.IsZero() && o.MAC != p.InitialMAC {
			taken[o.MAC] = taker{"port", p.ID.Name}
		}
		own[p.ID] = o
	}
	return own
}

// effectiveMAC is one port's, given the address its adapter is seen to use and whose the others are.
func effectiveMAC(p *plan.Port, seen plan.MAC, taken map[plan.MAC]taker) OwnMAC {
	if seen.IsZero() || seen == p.InitialMAC {
		return OwnMAC{MAC: p.InitialMAC}
	}
	other, dup := taken[seen]
	switch {
	case seen.IsGroup():
		return OwnMAC{p.InitialMAC, fmt.Sprintf("the adapter uses the group address %s", seen)}
	case dup:
		return OwnMAC{p.InitialMAC, fmt.Sprintf("the adapter uses %s, the MAC of %s %s", seen, other.kind, other.name)}
	case !p.InitialMAC.IsZero() && !p.Policy.MACChanges.V:
		return OwnMAC{p.InitialMAC, fmt.Sprintf("the adapter uses %s instead of %s, and the policy rejects MAC changes", seen, p.InitialMAC)}
	}
	return OwnMAC{MAC: seen}
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
