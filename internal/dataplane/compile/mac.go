package compile

import (
	"cmp"
	"encoding/binary"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// OwnMAC is a port's effective MAC, and what its owner does against its policy, if anything (S3, S4, D2).
type OwnMAC struct {
	MAC       plan.MAC
	Violation observe.Violation
}

// taker is the port or uplink that has a MAC. family is the family of the ports that have it, if they are siblings.
type taker struct {
	uplink              bool
	name, owner, family string
}

// EffectiveMACs returns the effective MACs of a switch's ports, in their order (docs/reference/frame-rules.md section
// 1), as the kernel enforces them. Facts holds the connected ports and uplinks.
func EffectiveMACs(sw *plan.Switch, facts plan.Facts) []OwnMAC {
	return effectiveMACs(sw, func(id plan.PortID) (plan.Fact, bool) { f, ok := facts[id]; return f, ok })
}

func effectiveMACs(sw *plan.Switch, fact func(plan.PortID) (plan.Fact, bool)) []OwnMAC {
	own := make([]OwnMAC, len(sw.Ports))
	var taken map[plan.MAC]taker // made for the first port whose adapter has another MAC; mostly not needed
	for i, p := range sw.Ports {
		own[i].MAC = p.InitialMAC
		f, _ := fact(p.ID)
		if f.SeenMAC.IsZero() || f.SeenMAC == p.InitialMAC {
			continue
		}
		if taken == nil {
			taken = takenMACs(sw, fact)
		}
		own[i] = effectiveMAC(p, f.SeenMAC, taken)
		if m := own[i].MAC; !m.IsZero() && m != p.InitialMAC {
			takes(taken, m, p)
		}
	}
	return own
}

// takes records that a port has a MAC. If several ports have it, it counts as the MAC of a family only if they all are
// of that family.
func takes(taken map[plan.MAC]taker, m plan.MAC, p *plan.Port) {
	t, shared := taken[m]
	if !shared {
		t = taker{name: p.ID.Name, owner: p.Owner, family: p.Family()}
	} else if t.family != p.Family() {
		t.family = ""
	}
	taken[m] = t
}

// takenMACs returns the MACs of uplinks' devices and the initial MACs of ports.
func takenMACs(sw *plan.Switch, fact func(plan.PortID) (plan.Fact, bool)) map[plan.MAC]taker {
	taken := make(map[plan.MAC]taker, len(sw.Uplinks)+len(sw.Ports))
	for _, u := range sw.Uplinks {
		if f, ok := fact(u.ID); ok && !f.DeviceMAC.IsZero() {
			taken[f.DeviceMAC] = taker{uplink: true, name: u.ID.Name}
		}
	}
	for _, p := range sw.Ports {
		if !p.InitialMAC.IsZero() {
			takes(taken, p.InitialMAC, p)
		}
	}
	return taken
}

// effectiveMAC returns the effective MAC of a port whose adapter is seen to use another MAC than the initial one.
func effectiveMAC(p *plan.Port, seen plan.MAC, taken map[plan.MAC]taker) OwnMAC {
	other, dup := taken[seen]
	switch {
	case seen.IsGroup():
		return OwnMAC{p.InitialMAC, observe.Violation{Code: observe.GroupAddress, Uses: seen}}
	case dup && (other.family == "" || other.family != p.Family()):
		v := observe.Violation{Code: observe.AddressInUse, Uses: seen, Whose: other.name, Uplink: other.uplink}
		if other.owner == p.Owner {
			v.Owner = p.Owner
		}
		return OwnMAC{p.InitialMAC, v}
	case !p.InitialMAC.IsZero() && !p.Policy.MACChanges.V:
		return OwnMAC{p.InitialMAC, observe.Violation{Code: observe.AddressChanged, Uses: seen, Has: p.InitialMAC}}
	}
	return OwnMAC{MAC: seen}
}

// owner is a MAC of a switch that belongs to one of its ports or uplink devices.
type owner struct {
	switchID uint8
	mac      plan.MAC
}

// owned is the slot of an owner.
type owned struct {
	owner
	slot uint32
}

// compileSiblings numbers the families of a switch's connected ports. A port without siblings needs none.
func (c *compiler) compileSiblings(receivers []receiver) {
	first := map[string]*abi.Port{}
	for _, r := range receivers {
		name := r.port.Family()
		if name == "" {
			continue
		}
		rec := &c.img.Ports[r.slot]
		one, more := first[name]
		if !more {
			first[name] = rec
			continue
		}
		if one.Siblings == 0 {
			c.families++
			one.Siblings = c.families
			one.Rules |= abi.RuleSiblings
		}
		rec.Siblings = one.Siblings
		rec.Rules |= abi.RuleSiblings
	}
}

// sharedMAC is a port with its MAC, and the number of its last wait.
type sharedMAC struct {
	mac  plan.MAC
	slot uint32
	wait uint32
}

// compileOwners records which port owns each MAC. Several ports have one MAC while it moves between them, or as
// siblings. Then the table has the port whose wait began last, and each port's record has the next one, so that the
// program finds the first that does not wait.
func (c *compiler) compileOwners(id uint8, ports []sharedMAC) {
	first := make(map[plan.MAC]int, len(ports))
	var shared map[plan.MAC][]sharedMAC
	for i, p := range ports {
		one, again := first[p.mac]
		if !again {
			first[p.mac] = i
			continue
		}
		if shared == nil {
			shared = map[plan.MAC][]sharedMAC{}
		}
		if len(shared[p.mac]) == 0 {
			shared[p.mac] = append(shared[p.mac], ports[one])
		}
		shared[p.mac] = append(shared[p.mac], p)
	}
	for i, p := range ports {
		if first[p.mac] != i {
			continue
		}
		if all := shared[p.mac]; len(all) > 0 {
			p = c.chain(all)
		}
		c.owners = append(c.owners, owned{owner{id, p.mac}, p.slot})
	}
}

// chain sorts ports with one MAC in the order in which they own it, and returns the first.
func (c *compiler) chain(all []sharedMAC) sharedMAC {
	slices.SortStableFunc(all, func(a, b sharedMAC) int { return cmp.Compare(b.wait, a.wait) })
	all = all[:min(len(all), abi.MaxSameMAC)]
	for i, p := range all[1:] {
		c.img.Ports[all[i].slot].NextOwner = uint16(p.slot)
	}
	return all[0]
}

// key returns the owner in the table's form.
func (o owner) key() uint64 {
	var b [8]byte
	copy(b[:6], o.mac[:])
	return binary.LittleEndian.Uint64(b[:]) | uint64(o.switchID+1)<<48
}

// buildOwners fills the hash table of owned MACs. It tries seeds until no bucket overflows. With at most MaxPorts
// owners in 16,384 entries the first seed nearly always fits; the sequence of seeds is fixed, so that equal owners give
// equal tables.
func buildOwners(owners []owned) ([]abi.OwnerBucket, uint64) {
	for seed := uint64(0x9e3779b97f4a7c15); ; seed = seed*6364136223846793005 + 1442695040888963406 {
		if t, ok := fillOwners(owners, seed|1); ok {
			return t, seed | 1
		}
	}
}

func fillOwners(owners []owned, seed uint64) ([]abi.OwnerBucket, bool) {
	table := make([]abi.OwnerBucket, abi.OwnerBuckets)
	for _, o := range owners {
		key := o.key()
		b := &table[key*seed>>(64-abi.OwnerBucketBits)]
		i := 0
		for i < abi.OwnersPerBucket && b.Key[i] != 0 && b.Key[i] != key {
			i++
		}
		if i == abi.OwnersPerBucket {
			return nil, false
		}
		b.Key[i], b.Slot[i] = key, o.slot
	}
	return table, true
}
