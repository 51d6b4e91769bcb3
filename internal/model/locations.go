package model

import (
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// locations are behind which endpoints of other hosts the MACs of a tunnel's segments are (frame-rules §10).
type locations struct {
	said     map[overlay.Key]netip.Addr // by controllers
	shown    map[Station]*Shown         // by frames
	held     map[netip.Addr]int         // MACs that were learned behind an endpoint since all were counted
	known    func(Station) (said []overlay.Location, shown *Shown)
	recalled map[Station]bool
}

func newLocations() locations {
	return locations{said: map[overlay.Key]netip.Addr{}, shown: map[Station]*Shown{}, held: map[netip.Addr]int{},
		recalled: map[Station]bool{}}
}

// Shown is behind which endpoint frames have shown a MAC, and when the last one did. The endpoint is not valid if it
// has ceased to be one meanwhile.
type Shown struct {
	Endpoint netip.Addr
	Seen     time.Duration
}

// PlacingKind says what a tunnel learned from the source of a frame.
type PlacingKind string

// What it can learn.
const (
	PlacedNothing PlacingKind = ""      // the tunnel does not learn, or not from such a frame
	PlacedNew     PlacingKind = "new"   // it was not known behind which endpoint the MAC is
	PlacedAgain   PlacingKind = "again" // it is still there
	PlacedMoved   PlacingKind = "moved" // it was behind another endpoint, or one that has gone meanwhile
	PlacedFull    PlacingKind = "full"  // as many MACs are behind the endpoint as may be: nothing is learned
)

// Placing is what a tunnel learned from the source of a frame. Was is the endpoint before, for PlacedMoved.
type Placing struct {
	What PlacingKind
	Was  netip.Addr
}

func (l *locations) recall(who Station) {
	if l.known == nil || l.recalled[who] {
		return
	}
	l.recalled[who] = true
	said, shown := l.known(who)
	for _, s := range said {
		if s.Source == overlay.Announced {
			l.said[s.Key] = s.Endpoint
		}
	}
	if shown != nil {
		l.shown[who] = shown
	}
}

// byFile is where the file says that a MAC is, in the whole VNI.
func (c *Crossing) byFile(key overlay.Key) (l overlay.Location, ok bool) {
	l.Key, l.Source = key.Whole(), overlay.Static
	l.Endpoint, ok = c.static[l.Key]
	return l, ok
}

// byControllers is where controllers say that a MAC is, if the endpoint is one that this host was told of: in one
// segment, or in the whole VNI. They say nothing of a MAC that the file locates.
func (c *Crossing) byControllers(key overlay.Key) (l overlay.Location, ok bool) {
	if _, static := c.static[key.Whole()]; static {
		return l, false
	}
	l.Key, l.Source = key, overlay.Announced
	if l.Endpoint, ok = c.memory.said[key]; ok {
		_, ok = c.host[l.Endpoint]
	}
	return l, ok
}

// locate is where a MAC is: by the file; else by frames of its segment, where the tunnel learns; else by the
// controllers, in its segment; else by them, in the whole VNI.
func (c *Crossing) locate(who Station, now time.Duration) (l overlay.Location, ok bool) {
	c.memory.locations.recall(who)
	key := overlay.Key{VNI: who.VNI, MAC: who.MAC}
	if l, ok = c.byFile(key); ok {
		_, ok = c.host[l.Endpoint]
		return l, ok
	}
	if s := c.memory.shown[who]; c.learns && s != nil && s.Endpoint.IsValid() &&
		now-s.Seen <= abi.LocationAgeing*time.Second {
		return overlay.Location{Key: key, Endpoint: s.Endpoint, Source: overlay.Learned}, true
	}
	for _, inside := range []overlay.Inside{overlay.In(who.VLAN), 0} {
		key.Inside = inside
		if l, ok = c.byControllers(key); ok {
			return l, true
		}
	}
	return l, false
}

// place learns behind which endpoint the source of a frame is.
func (c *Crossing) place(from netip.Addr, seg Segment, frame []byte, now time.Duration) Placing {
	source := plan.MAC(frame[6:12])
	if !c.learns || !from.IsValid() || source.IsGroup() || source.IsZero() || c.mayBeRepeated(from, frame) {
		return Placing{}
	}
	who, k := Station{seg.VNI, seg.VLAN, source}, c.memory
	k.locations.recall(who)
	if _, static := c.byFile(overlay.Key{VNI: seg.VNI, MAC: source}); static {
		return Placing{}
	}
	was := k.shown[who]
	switch {
	case was != nil && was.Endpoint == from:
		was.Seen = now
		return Placing{What: PlacedAgain}
	case k.held[from] >= abi.EndpointMACs:
		return Placing{What: PlacedFull}
	}
	k.held[from]++
	k.shown[who] = &Shown{Endpoint: from, Seen: now}
	if was != nil {
		return Placing{PlacedMoved, was.Endpoint}
	}
	return Placing{What: PlacedNew}
}

// mayBeRepeated reports whether a frame may come from another host than that which sent the packet: a proxy repeats
// what is for a group in its own subnet.
func (c *Crossing) mayBeRepeated(from netip.Addr, frame []byte) bool {
	return c.subnet != nil && plan.MAC(frame[:6]).IsGroup() && c.subnet(from) == c.here
}

// sweepShown forgets what frames showed and does not count any more, and counts what is left.
func (c *Crossing) sweepShown(now time.Duration) {
	l := &c.memory.locations
	clear(l.held)
	for who, s := range l.shown {
		if !c.learns || !s.Endpoint.IsValid() || !c.has[Segment{VNI: who.VNI, VLAN: who.VLAN}] ||
			now-s.Seen > abi.LocationAgeing*time.Second {
			delete(l.shown, who)
			continue
		}
		l.held[s.Endpoint]++
	}
}

// Locate takes in what controllers say of MACs: behind which endpoints they are, and of which that is not known any
// more. With all, put is everything. It counts while the endpoint is one that this host was told of.
func (c *Crossing) Locate(all bool, put []overlay.Location, removed []overlay.Key) {
	if all {
		clear(c.memory.said)
	}
	for _, p := range put {
		c.memory.said[p.Key] = p.Endpoint
	}
	for _, key := range removed {
		delete(c.memory.said, key)
	}
}
