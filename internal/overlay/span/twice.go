package span

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// MostTwice bounds the pairs of hosts that are named.
const MostTwice = 512

// Twice is an endpoint address that two hosts have, which share a segment: the others cannot tell them apart.
type Twice struct {
	Address netip.Addr
	A, B    Host // in the order of their names
}

// Twice are such pairs, in order, up to MostTwice. Of many hosts with one address in a segment, each is named with the
// first of them.
func (t *Table) Twice() (list []Twice) {
	shared := t.sharedAddresses()
	for _, address := range slices.SortedFunc(maps.Keys(shared), netip.Addr.Compare) {
		list = append(list, pairsOf(address, shared[address], MostTwice-len(list))...)
	}
	return list
}

// sharedAddresses are the hosts of the endpoint addresses that several have.
func (t *Table) sharedAddresses() map[netip.Addr][]*member {
	by := map[netip.Addr][]*member{}
	for _, m := range t.hosts {
		for _, e := range m.Endpoints {
			if list := by[e.Address]; len(list) == 0 || list[len(list)-1] != m {
				by[e.Address] = append(list, m)
			}
		}
	}
	maps.DeleteFunc(by, func(_ netip.Addr, list []*member) bool { return len(list) < 2 })
	return by
}

// pairsOf are up to most pairs of hosts with one address, in order.
func pairsOf(at netip.Addr, hosts []*member, most int) (list []Twice) {
	slices.SortFunc(hosts, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	first := map[VNI]int{} // by segment, of these hosts
	for i, m := range hosts {
		with := map[int]bool{}
		for vni := range m.in {
			o, has := first[vni]
			if !has {
				first[vni] = i
			} else {
				with[o] = true
			}
		}
		for _, o := range slices.Sorted(maps.Keys(with)) {
			if len(list) >= most {
				return list
			}
			list = append(list, Twice{Address: at, A: hosts[o].Host, B: m.Host})
		}
	}
	return list
}
