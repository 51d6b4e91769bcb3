package model

import (
	"maps"
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// memory is what a tunnel remembers; it survives a change of the plan and of what the host is told.
type memory struct {
	bindings
	locations
	errors map[plan.PortID]errorBudget
}

func newMemory() *memory {
	return &memory{newBindings(), newLocations(), map[plan.PortID]errorBudget{}}
}

// Known is what the tables of a live tunnel have. Each is asked for once. The values may be nil.
type Known struct {
	Bound  func(overlay.Address) (heard *Heard, told *Told)
	Placed func(Station) (said []overlay.Location, shown *Shown)
}

// Remember has the tunnel know what a live one knows.
func (c *Crossing) Remember(k Known) {
	c.memory.bindings.known, c.memory.locations.known = k.Bound, k.Placed
}

// After takes over what the tunnel remembered before the plan, or what the host is told, changed; before may be nil.
func (c *Crossing) After(before *Crossing, now time.Duration) *Crossing {
	if before == nil {
		return c
	}
	c.memory = before.memory
	for _, s := range c.memory.shown {
		if _, named := c.host[s.Endpoint]; !named {
			s.Endpoint = netip.Addr{} // it does not count even if such an endpoint comes back
		}
	}
	maps.DeleteFunc(c.memory.held, func(a netip.Addr, _ int) bool { _, named := c.host[a]; return !named })
	gone := false
	for seg := range before.has {
		gone = gone || !c.has[seg]
	}
	if gone || before.learns && !c.learns {
		c.sweepShown(now)
	}
	if gone {
		c.memory.bindings.sweep(c.has, now, c.hold)
	}
	return c
}

// Sweep forgets what does not count any more: what the agent does from time to time.
func (c *Crossing) Sweep(now time.Duration) {
	c.sweepShown(now)
	c.memory.bindings.sweep(c.has, now, c.hold)
}

// Tables are the tables of a tunnel, to compare them. Times are on the caller's clock.
type Tables struct {
	Heard  map[overlay.Address]Heard
	Told   map[overlay.Address]Told
	Shares map[Station]Share
	Shown  map[Station]Shown
	// Said is what the file and the controllers say, of the VNIs that the switch has.
	Said map[overlay.Key]overlay.Location
	// Held is how many MACs were learned behind each endpoint since all were counted.
	Held   map[netip.Addr]int
	Counts NeighbourCounts
}

// Tables copies the tunnel's tables.
func (c *Crossing) Tables() Tables {
	k := c.memory
	t := Tables{Heard: map[overlay.Address]Heard{}, Told: maps.Clone(k.told), Shares: map[Station]Share{},
		Shown: map[Station]Shown{}, Said: map[overlay.Key]overlay.Location{}, Held: map[netip.Addr]int{},
		Counts: k.counts}
	for at, h := range k.heard {
		t.Heard[at] = *h
	}
	for who, s := range k.shares {
		one := *s
		one.address, one.owner = netip.Addr{}, plan.MAC{}
		t.Shares[who] = one
	}
	for who, s := range k.shown {
		t.Shown[who] = *s
	}
	c.said(t.Said)
	for a, n := range k.held {
		if n > 0 {
			t.Held[a] = n
		}
	}
	return t
}

// said adds what the file and the controllers say of the VNIs and segments that the switch has.
func (c *Crossing) said(all map[overlay.Key]overlay.Location) {
	has := map[overlay.Key]bool{} // without MACs
	for seg := range c.has {
		has[overlay.Key{VNI: seg.VNI}], has[overlay.Key{VNI: seg.VNI, Inside: overlay.In(seg.VLAN)}] = true, true
	}
	for key := range c.static {
		l, _ := c.byFile(key)
		if _, named := c.host[l.Endpoint]; !named {
			l.Endpoint = netip.Addr{}
		}
		if has[overlay.Key{VNI: key.VNI}] {
			all[key] = l
		}
	}
	for key := range c.memory.said {
		if l, ok := c.byControllers(key); ok && has[overlay.Key{VNI: key.VNI, Inside: key.Inside}] {
			all[key] = l
		}
	}
}

// errorBudget is what a port has used up of the errors that it may get.
type errorBudget struct {
	spent time.Duration // of a second's errors
	at    time.Duration
}

// takeError says whether a port may get one more error, and takes it then.
func (m *memory) takeError(to plan.PortID, now time.Duration) bool {
	const each = time.Second / abi.ErrorsPerSecond
	b := m.errors[to]
	spent := max(b.spent-(now-b.at), 0) + each
	if spent > abi.ErrorsAtOnce*each {
		return false
	}
	m.errors[to] = errorBudget{spent, now}
	return true
}
