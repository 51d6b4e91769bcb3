package span

import (
	"cmp"
	"net/netip"
	"slices"
)

// Twice is an endpoint address that two hosts have, which share a segment: the others cannot tell them apart.
type Twice struct {
	Address netip.Addr
	A, B    Host // in the order of their names
}

// Twice are all such pairs, in order.
func (t *Table) Twice() (list []Twice) {
	by := map[netip.Addr][]*member{}
	for _, m := range t.hosts {
		for _, e := range m.Endpoints {
			for _, o := range by[e.Address] {
				if o != m && o.meets(m) {
					list = append(list, twiceOf(e.Address, o.Host, m.Host))
				}
			}
			by[e.Address] = append(by[e.Address], m)
		}
	}
	slices.SortFunc(list, func(x, y Twice) int {
		return cmp.Or(x.Address.Compare(y.Address), cmp.Compare(x.A.Name, y.A.Name), cmp.Compare(x.B.Name, y.B.Name))
	})
	return slices.CompactFunc(list, func(x, y Twice) bool {
		return x.Address == y.Address && x.A.ID == y.A.ID && x.B.ID == y.B.ID
	})
}

func twiceOf(at netip.Addr, a, b Host) Twice {
	if cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) > 0 {
		a, b = b, a
	}
	return Twice{Address: at, A: a, B: b}
}

// meets reports whether two hosts are members of one segment.
func (m *member) meets(o *member) bool {
	for vni := range m.in {
		if o.in[vni] {
			return true
		}
	}
	return false
}
