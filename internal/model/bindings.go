package model

import (
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// bindings are which MAC has which address in the overlay segments of a tunnel, as the host hears it and is told
// (frame-rules §10).
type bindings struct {
	heard    map[overlay.Address]*Heard
	told     map[overlay.Address]Told
	shares   map[Station]*Share
	counts   NeighbourCounts
	known    func(overlay.Address) (*Heard, *Told) // what another host's tables have; nil for nothing
	recalled map[overlay.Address]bool
}

func newBindings() bindings {
	return bindings{heard: map[overlay.Address]*Heard{}, told: map[overlay.Address]Told{},
		shares: map[Station]*Share{}, recalled: map[overlay.Address]bool{}}
}

// Station is a MAC in a segment of a VNI; VLAN 0 is the untagged one.
type Station struct {
	VNI  uint32
	VLAN uint16
	MAC  plan.MAC
}

// Heard is what a tunnel has heard of an address. Times are on the caller's clock.
type Heard struct {
	MAC plan.MAC
	// Here: behind a port of this host. Advertised: an IPv6 owner has said itself whether it is a router (Router).
	Here, Advertised, Router bool
	// Seen is when the owner was heard last.
	Seen time.Duration
	// Rival had the address until Changed; zero where nobody had.
	Rival   plan.MAC
	Changed time.Duration
	// Contested is until when nobody is believed; 0 = the owner is.
	Contested time.Duration
	// Turns is how often the address has come back from the rival by an answer, at most 255.
	Turns int
	// Unannounced: the owner, behind a port of this host, has sent nothing to several stations since the address is
	// its own.
	Unannounced bool
	Doubt
}

// Told is what controllers have told of an address: which MAC had it, and when that was heard last.
type Told struct {
	MAC  plan.MAC
	Seen time.Duration
}

// Share is what a MAC has used up of the second that began with Since.
type Share struct {
	Since             time.Duration
	Answers, Bindings int
	// Answered is when it was last answered, or asked again since, in eighths of a second.
	Answered uint16

	address netip.Addr // of that answer
	owner   plan.MAC
}

// NeighbourCounts are what a tunnel counts of ARP and ND: packets whose sender's MAC is not that of the frame, new
// addresses beyond a MAC's share, and claims to an address whose owner still speaks.
type NeighbourCounts struct{ Spoofed, Unbound, Contested uint64 }

// HearingKind says what a tunnel made of the sender's address in ARP or ND.
type HearingKind string

// What it can make of it.
const (
	HeardNothing HearingKind = ""        // the frame says of no address whose it is
	HeardNew     HearingKind = "new"     // nobody had the address
	HeardAgain   HearingKind = "again"   // its owner has it still
	HeardMoved   HearingKind = "moved"   // another MAC had it until now
	HeardSpoofed HearingKind = "spoofed" // the MAC in the packet is not the frame's source: nothing is bound
	HeardUnbound HearingKind = "unbound" // the MAC has had too many new addresses in this second: nothing is bound
)

// Hearing is what a tunnel made of the sender's address in a frame.
type Hearing struct {
	What HearingKind
	// Address is valid if the packet names the sender's.
	Address netip.Addr
	MAC     plan.MAC
	// Was had the address before, for HeardMoved.
	Was plan.MAC
	// Contested: from now on nobody is believed to have the address, for this long.
	Contested time.Duration
	// Unverified: it is not sure that MAC has the address, so questions for it pass.
	Unverified bool
	// Announces: the frame is the first to several stations since the address is MAC's, behind a port of this host.
	Announces bool
}

func (b *bindings) recall(at overlay.Address) {
	if b.known == nil || b.recalled[at] {
		return
	}
	b.recalled[at] = true
	heard, told := b.known(at)
	if heard != nil {
		b.heard[at] = heard
	}
	if told != nil {
		b.told[at] = *told
	}
}

// hear takes in what a packet from a MAC says.
func (b *bindings) hear(s Segment, mac plan.MAC, n *Neighbour, here bool, now, hold time.Duration) Hearing {
	switch {
	case n.Spoofed:
		b.counts.Spoofed++
		return Hearing{What: HeardSpoofed, MAC: mac}
	case !n.Sender.IsValid():
		if n.Probed.IsValid() {
			b.doubt(overlay.Address{VNI: s.VNI, VLAN: s.VLAN, IP: n.Probed}, mac, here, now)
		}
		return Hearing{}
	}
	at := overlay.Address{VNI: s.VNI, VLAN: s.VLAN, IP: n.Sender}
	b.recall(at)
	h := Hearing{What: HeardNew, Address: n.Sender, MAC: mac}
	was, next := b.heard[at], &Heard{MAC: mac, Here: here, Advertised: n.Advertised, Router: n.Router, Seen: now}
	if was != nil && was.MAC == mac {
		if !n.Advertised {
			next.Advertised, next.Router = was.Advertised, was.Router
		}
		claims := b.hearAgain(at, was, n.Answers && was.asked(now), now, hold)
		h.Announces, was.Unannounced = announcing(claims || was.Unannounced, here, n.Group)
		was.Here, was.Advertised, was.Router, was.Seen = here, next.Advertised, next.Router, now
		h.What, h.Unverified = HeardAgain, was.Unverified
		return h
	}
	used := b.shareOf(Station{s.VNI, s.VLAN, mac}, now)
	if used.Bindings >= abi.BindingsPerSecond {
		b.counts.Unbound++
		h.What = HeardUnbound
		if was != nil { // it is not known who has the address
			was.Contested, h.Contested = now+hold, hold
		}
		return h
	}
	used.Bindings++
	h.Announces, next.Unannounced = announcing(true, here, n.Group)
	if was != nil && now-was.Seen <= hold {
		h.What, h.Was = HeardMoved, was.MAC
		if b.takeOver(next, was, n.Answers && was.asked(now) && !was.Probed, now, hold) {
			h.Contested = hold
		}
	} else if told, said := b.told[at]; said && now-told.Seen <= hold && told.MAC != mac {
		h.What, h.Was = HeardMoved, told.MAC
		next.Rival, next.Changed, next.Unverified = told.MAC, now, true
	}
	next.Unverified = next.Unverified || used.Bindings > abi.SurePerSecond
	h.Unverified = next.Unverified
	b.heard[at] = next
	return h
}

// announcing is what a frame does of a station whose address is its own now (taken), and that no other host has heard
// since: one to several stations tells them all, one to a single station leaves that to a later one. Only who is behind
// a port of this host has frames that this tunnel could keep from them.
func announcing(taken, here, group bool) (announces, unannounced bool) {
	return taken && here && group, taken && here && !group
}

// hearAgain decides whether it is sure that who had an address has it still, and says so. It is not if the controllers
// have told since of another owner: then it claims the address.
func (b *bindings) hearAgain(at overlay.Address, was *Heard, answered bool, now, hold time.Duration) (claims bool) {
	told, said := b.told[at]
	switch {
	case answered:
		was.settle()
	case said && now-told.Seen <= hold && told.Seen > was.Seen && told.MAC != was.MAC:
		was.Doubt = Doubt{Unverified: true, Unheard: was.Unheard, Asked: was.Asked}
		was.Rival, was.Changed = told.MAC, now
		return true
	case now-was.Seen > hold || was.over(now, hold): // it has the address anew, or nobody else has claimed it
		was.settle()
	}
	return false
}

// takeOver decides whether the address is contested that another MAC had until now, and whether it is sure that the
// next one has it: by its answer alone, if this tunnel would have heard that of the one before as well.
func (b *bindings) takeOver(next, was *Heard, answered bool, now, hold time.Duration) bool {
	next.Rival, next.Changed, next.Contested = was.MAC, now, was.Contested
	next.Unverified, next.Unheard = !answered || was.Here, was.Here
	if was.Changed == 0 || was.Rival != next.MAC || now-was.Changed > hold {
		return false
	}
	next.Turns = was.Turns
	if answered {
		next.Turns = min(was.Turns+1, 255)
	}
	if next.Turns < 2 && now-was.Changed > abi.DefenceTime*time.Second {
		return false
	}
	next.Contested = now + hold
	b.counts.Contested++
	return true
}

func (b *bindings) shareOf(who Station, now time.Duration) *Share {
	used := b.shares[who]
	if used == nil {
		used = &Share{Since: now}
		b.shares[who] = used
	}
	if now-used.Since >= time.Second {
		used.Since, used.Answers, used.Bindings = now, 0, 0
	}
	return used
}

// find says who has an address that a MAC asks for; Contested where that is not known because two MACs claim it, and
// Unverified where it is not sure. Then the question passes, and is noted.
func (b *bindings) find(at overlay.Address, asker plan.MAC, now, hold time.Duration) Question {
	q := Question{Asked: at.IP}
	b.recall(at)
	heard := b.heard[at]
	if heard != nil && heard.Contested > now {
		q.Owner, q.Contested = Owner{MAC: heard.MAC, Rival: heard.Rival, Age: now - heard.Seen}, true
		return q
	}
	if heard != nil && now-heard.Seen > hold {
		heard = nil
	}
	if told, said := b.told[at]; said && now-told.Seen <= hold && (heard == nil || told.Seen > heard.Seen) {
		q.Owner, q.Known = Owner{MAC: told.MAC, Advertised: true, Told: true, Age: now - told.Seen}, true
		return q
	}
	if heard == nil {
		return q
	}
	q.Owner = Owner{MAC: heard.MAC, Rival: heard.Rival, Here: heard.Here, Advertised: heard.Advertised,
		Router: heard.Router, Age: now - heard.Seen}
	q.Known = heard.MAC == asker || heard.sure(now, hold)
	q.Unverified = !q.Known
	return q
}

// sweep forgets what is out of force, and everything of segments that the switch has not.
func (b *bindings) sweep(has map[Segment]bool, now, hold time.Duration) {
	there := func(at overlay.Address) bool { return has[Segment{VNI: at.VNI, VLAN: at.VLAN}] }
	for at, h := range b.heard {
		if !there(at) || now-h.Seen > hold && h.Contested <= now {
			delete(b.heard, at)
		}
	}
	for at := range b.told {
		if !there(at) {
			delete(b.told, at)
		}
	}
}

// Bind takes in what controllers say of addresses: which MACs have which, and of which that is not known any more;
// these are forgotten also where the tunnel has heard them from other hosts. With all, put is everything. What is said
// of segments that the switch has not is ignored.
func (c *Crossing) Bind(all bool, put []overlay.Binding, removed []overlay.Address, now time.Duration) {
	b, want := &c.memory.bindings, map[overlay.Address]bool{}
	for _, p := range put {
		if c.has[Segment{VNI: p.VNI, VLAN: p.VLAN}] {
			want[p.Address] = true
			b.told[p.Address] = Told{MAC: p.MAC, Seen: max(now-p.Age, time.Millisecond)}
		}
	}
	for _, at := range removed {
		if want[at] {
			continue
		}
		delete(b.told, at)
		if h := b.heard[at]; h != nil && !h.Here {
			delete(b.heard, at)
		}
	}
	for at := range b.told {
		if all && !want[at] {
			delete(b.told, at)
		}
	}
}
