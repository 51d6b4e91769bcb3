package view

import (
	"maps"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/observe"
)

// Vitals sums what ports and uplinks counted, for each switch.
type Vitals struct {
	switches map[string]*sums
}

type sums struct {
	drops        map[abi.Reason]uint64
	sent, handed uint64
	ports        int
}

// NewVitals are sums of nothing yet.
func NewVitals() *Vitals { return &Vitals{map[string]*sums{}} }

// Add adds the counters of a port or uplink.
func (v *Vitals) Add(m Member, c observe.Counters) {
	s := v.switches[m.ID.Switch]
	if s == nil {
		s = &sums{drops: map[abi.Reason]uint64{}}
		v.switches[m.ID.Switch] = s
	}
	for reason, n := range c.Drops {
		s.drops[reason] += n
	}
	if m.Uplink {
		return
	}
	s.ports++
	for class := range c.PacketsIn {
		s.sent += c.PacketsIn[class]
		s.handed += c.PacketsOut[class]
	}
}

// At are the sums, read at an instant of CLOCK_MONOTONIC in nanoseconds.
func (v *Vitals) At(at int64) []api.Vitals {
	list := []api.Vitals{}
	for _, name := range slices.Sorted(maps.Keys(v.switches)) {
		s := v.switches[name]
		list = append(list, api.Vitals{Switch: name, Drops: reasons(s.drops), Sent: s.sent, Handed: s.handed,
			Ports: s.ports, ReadAt: at})
	}
	return list
}
