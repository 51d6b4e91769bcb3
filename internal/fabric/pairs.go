package fabric

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
)

// Layout says who probes whom. Each uplink probes two others of its name in each VLAN, whatever the number of hosts:
// the next one and one further off on a ring, which is another one in each epoch. A host's own uplinks probe each
// other. All controllers make the same layout of the same members.
type Layout struct {
	hosts map[string][]*Member
	rings map[ring][]*Member
	epoch uint64
	// bridges are further paths between parts of a VLAN that do not hear each other: whether that is so is made sure.
	bridges map[string][]Task
}

type ring struct {
	sw, uplink string
	vlan       uint16
}

// NewLayout makes the layout of these members. splits are the parts into which VLANs fell by the results so far.
func NewLayout(members []Member, epoch uint64, splits []Split) *Layout {
	l := &Layout{hosts: map[string][]*Member{}, rings: map[ring][]*Member{}, epoch: epoch, bridges: map[string][]Task{}}
	ids := make(map[*Member]EndID, len(members))
	by := make(map[End]*Member, len(members))
	for i := range members {
		m := &members[i]
		ids[m], by[m.End] = m.ID(), m
		l.hosts[m.Host] = append(l.hosts[m.Host], m)
		for _, v := range m.VLANs {
			r := ring{m.Switch, m.Uplink, v}
			l.rings[r] = append(l.rings[r], m)
		}
	}
	for _, list := range l.hosts {
		slices.SortFunc(list, func(a, b *Member) int { return a.Compare(b.End) })
	}
	for _, list := range l.rings {
		slices.SortFunc(list, func(a, b *Member) int {
			x, y := ids[a], ids[b]
			return bytes.Compare(x[:], y[:])
		})
	}
	for _, s := range splits {
		l.bridge(s, by)
	}
	return l
}

// Hosts returns the hosts that take part, in order.
func (l *Layout) Hosts() []string { return slices.Sorted(maps.Keys(l.hosts)) }

// Tasks returns the paths that a host has to probe, in order.
func (l *Layout) Tasks(host string) []Task {
	var list []Task
	for i, m := range l.hosts[host] {
		for _, v := range m.VLANs {
			list = append(list, l.around(m, v)...)
		}
		if i+1 < len(l.hosts[host]) {
			list = append(list, beside(m, l.hosts[host][i+1])...)
		}
	}
	list = append(list, l.bridges[host]...)
	slices.SortFunc(list, func(a, b Task) int { return a.Path.Compare(b.Path) })
	list = slices.CompactFunc(list, func(a, b Task) bool { return a.Path == b.Path })
	return list[:min(len(list), MostTasks)]
}

// around returns the paths to others of the uplink's ring.
func (l *Layout) around(m *Member, vlan uint16) (list []Task) {
	all := l.rings[ring{m.Switch, m.Uplink, vlan}]
	if len(all) < 2 {
		return nil
	}
	at := slices.Index(all, m)
	list = append(list, task(m, all[(at+1)%len(all)], vlan))
	if len(all) > 2 {
		far := 2 + int(l.mix(vlan)%uint64(len(all)-2))
		list = append(list, task(m, all[(at+far)%len(all)], vlan))
	}
	return list
}

// mix returns a number that is another one in each epoch.
func (l *Layout) mix(vlan uint16) uint64 {
	return (l.epoch*0x9e3779b97f4a7c15 + uint64(vlan)) * 0xbf58476d1ce4e5b9 >> 33
}

// beside returns the paths between two uplinks of a host: in all VLANs that both have, or in one of them where the
// physical switch has to bundle their ports and no probe can pass.
func beside(a, b *Member) (list []Task) {
	if a.Switch != b.Switch {
		return nil
	}
	for _, v := range a.VLANs {
		if _, ok := slices.BinarySearch(b.VLANs, v); ok {
			list = append(list, task(a, b, v))
			if bundled(a, b) {
				break
			}
		}
	}
	return list
}

// bundled reports whether the physical switch has to bundle the ports of two uplinks.
func bundled(a, b *Member) bool {
	return a.Host == b.Host && a.Switch == b.Switch && a.Bundle != "" && a.Bundle == b.Bundle
}

func task(from, to *Member, vlan uint16) Task {
	return Task{Path: Path{from.End, to.End, vlan}, MAC: to.MAC, MTU: min(from.MTU, to.MTU, Longest)}
}

// Bounds of a bridge between parts.
const (
	mostParts  = 8
	partsProbe = 2 // uplinks of a part
)

func (l *Layout) bridge(s Split, by map[End]*Member) {
	parts := s.Parts[:min(len(s.Parts), mostParts)]
	for i, from := range parts {
		for j, to := range parts {
			if i == j {
				continue
			}
			for k := range partsProbe {
				a, b := by[pick(from, k)], by[pick(to, k)]
				if a != nil && b != nil && !bundled(a, b) {
					l.bridges[a.Host] = append(l.bridges[a.Host], task(a, b, s.VLAN))
				}
			}
		}
	}
}

// pick returns one of the first ends of a part.
func pick(part []End, k int) End {
	if len(part) == 0 {
		return End{}
	}
	return part[k%len(part)]
}

// Split is a VLAN that falls into parts which do not hear each other, the largest first.
type Split struct {
	Switch string
	VLAN   uint16
	Parts  [][]End
}

// Epoch returns the number of the layout's period at an instant, in seconds since 1970.
func Epoch(unix int64) uint64 { return uint64(unix / epochSeconds) }

// epochSeconds is how long the far paths of a layout stay.
const epochSeconds = 600

// Fingerprint returns a number that changes with whatever of members a layout is made of.
func Fingerprint(members []Member) uint64 {
	var sum uint64
	for i := range members {
		m := &members[i]
		id := m.ID()
		h := binary.BigEndian.Uint64(id[:]) ^ uint64(m.MTU)<<48
		for _, b := range m.MAC {
			h = h*31 + uint64(b)
		}
		for _, b := range []byte(m.Bundle) {
			h = h*31 + uint64(b)
		}
		for _, v := range m.VLANs {
			h = h*1099511628211 + uint64(v) + 1
		}
		sum ^= h
	}
	return sum
}
