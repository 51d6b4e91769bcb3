package fabric

import (
	"slices"
	"time"
)

// deafKey is an uplink that does not hear this host's echoes.
type deafKey struct {
	From, To EndID
	VLAN     uint16
}

type deaf struct {
	n  int
	at time.Time
}

// Heard takes in a probe of another uplink, which is echoed: whether that one hears the echoes.
func (m *Machine) Heard(p Probe, now time.Time) {
	key := deafKey{p.From, p.To, p.VLAN}
	d := m.deaf[key]
	if p.Hears {
		m.changed = m.changed || d != nil && d.n >= Misses
		delete(m.deaf, key)
		return
	}
	if p.Size > Shortest || d == nil && len(m.deaf) >= MostTasks {
		return
	}
	if d == nil {
		d = &deaf{}
		m.deaf[key] = d
	}
	d.n, d.at = d.n+1, now
	m.changed = m.changed || d.n == Misses
}

// Deaf is an uplink that does not hear the echoes of its probes although the probes arrive.
type Deaf struct {
	From, To EndID
	VLAN     uint16
}

// Deaf returns those that this host knows of, in order.
func (m *Machine) Deaf() (list []Deaf) {
	for k, d := range m.deaf {
		if d.n >= Misses {
			list = append(list, Deaf(k))
		}
	}
	slices.SortFunc(list, func(a, b Deaf) int {
		return slices.Compare(append(append(a.From[:], a.To[:]...), byte(a.VLAN>>8), byte(a.VLAN)),
			append(append(b.From[:], b.To[:]...), byte(b.VLAN>>8), byte(b.VLAN)))
	})
	return list
}
