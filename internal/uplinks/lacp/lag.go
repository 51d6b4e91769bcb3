package lacp

import (
	"slices"
	"time"
)

// Times of the protocol (802.1AX 6.4.4).
const (
	fastPeriod   = time.Second
	slowPeriod   = 30 * time.Second
	shortTimeout = 3 * fastPeriod
	longTimeout  = 3 * slowPeriod
	// aggregateWait is how long a member that has found its partner waits for others to do so.
	aggregateWait = 2 * time.Second
	// burst is how many LACPDUs a member may send per fastPeriod (802.1AX 6.4.16).
	burst = 3
	// answers is how many markers a member answers per second: slow protocols may send at most ten frames in a second.
	answers = 10
)

// Fallback says what happens to a LAG of which no member has a partner.
type Fallback string

// The fallbacks.
const (
	FallbackNone   Fallback = "none"   // no member is usable
	FallbackSingle Fallback = "single" // the first member that has carrier is usable, alone
)

// Config is the configuration of a LAG.
type Config struct {
	System   System
	Key      uint16 // distinguishes the LAGs of one system
	Active   bool   // sends unasked; otherwise only to a partner that does
	Fast     bool   // asks for a PDU every second, timeout 3 s; otherwise 30 s and 90 s
	Fallback Fallback
	Members  []Member // in order: FallbackSingle prefers the first
	// Drained names members that must carry nothing: they continue LACP, and announce that they are not in the LAG.
	Drained []string
}

// Member is one link of a LAG.
type Member struct {
	Name string // the uplink's name, unique in the LAG
	Port Port   // number unique in the LAG
}

// LAG is one aggregator and its members. Its methods must not run at the same time. Time comes from the caller, and
// never goes back.
type LAG struct {
	cfg     Config
	members []*member
	choice  *group // the partner of the members in use; nil if there is none
}

// Effects are what the caller must do after an event.
type Effects struct {
	// Send are the frames to send, in order.
	Send []Frame
	// Changed: something that Status shows, other than counters, may have changed.
	Changed bool
	// Next is when the next Tick is due at the latest; zero if nothing is due.
	Next time.Time
}

// Frame is a slow protocol frame for one member: the bytes after the Ethernet header.
type Frame struct {
	Member  string
	Payload []byte
}

// Event is something that happens to a LAG: a Tick, Carrier, Received, Asked or Bad.
type Event interface{ event() }

// Tick means that time has passed.
type Tick struct{}

// Carrier is the state of a member's link.
type Carrier struct {
	Member string
	Up     bool
}

// Received is a LACPDU that a member received.
type Received struct {
	Member string
	PDU    PDU
}

// Asked is a marker request that a member received.
type Asked struct {
	Member string
	Marker Marker
}

// Bad is a malformed frame that a member received.
type Bad struct{ Member string }

func (Tick) event()     {}
func (Carrier) event()  {}
func (Received) event() {}
func (Asked) event()    {}
func (Bad) event()      {}

// New returns a LAG whose members have no carrier yet.
func New(cfg Config) *LAG {
	l := &LAG{}
	l.Configure(time.Time{}, cfg)
	return l
}

// Configure changes the LAG to cfg. Members keep the state of their partners unless the system, the key or their own
// port changes. A member that is removed says goodbye.
func (l *LAG) Configure(now time.Time, cfg Config) Effects {
	cfg.Members, cfg.Drained = slices.Clone(cfg.Members), slices.Clone(cfg.Drained)
	var fx Effects
	same := l.cfg.System == cfg.System && l.cfg.Key == cfg.Key
	old := l.members
	l.members = nil
	for _, c := range cfg.Members {
		i := slices.IndexFunc(old, func(m *member) bool { return m.Member == c })
		if i >= 0 && same {
			l.members = append(l.members, old[i])
			old = slices.Delete(slices.Clone(old), i, i+1)
			continue
		}
		up := slices.ContainsFunc(old, func(m *member) bool { return m.Name == c.Name && m.up })
		l.members = append(l.members, newMember(c, cfg))
		if up {
			l.members[len(l.members)-1].carrier(now, true, cfg)
		}
	}
	for _, m := range old {
		fx.Send = append(fx.Send, l.goodbye(m)...)
	}
	l.cfg = cfg
	for _, m := range l.members {
		m.configure(cfg)
	}
	rest := l.settle(now)
	fx.Send, fx.Next, fx.Changed = append(fx.Send, rest.Send...), rest.Next, true
	return fx
}

// Step processes an event. Events of members that are not in the LAG are ignored.
func (l *LAG) Step(now time.Time, e Event) Effects {
	switch e := e.(type) {
	case Carrier:
		if m := l.member(e.Member); m != nil && m.up != e.Up {
			m.carrier(now, e.Up, l.cfg)
		}
	case Received:
		if m := l.member(e.Member); m != nil {
			l.received(now, m, e.PDU)
		}
	case Asked:
		if m := l.member(e.Member); m != nil {
			return l.asked(now, m, e.Marker)
		}
	case Bad:
		if m := l.member(e.Member); m != nil {
			m.count.Bad++
		}
	}
	return l.settle(now)
}

// Goodbye returns frames that announce to the partners that the members leave, so that the partners need not wait for
// their timeouts.
func (l *LAG) Goodbye() []Frame {
	var out []Frame
	for _, m := range l.members {
		out = append(out, l.goodbye(m)...)
	}
	return out
}

func (l *LAG) goodbye(m *member) []Frame {
	if !m.up || !m.speaks() {
		return nil
	}
	p := m.pdu(l.cfg)
	p.Actor.State &^= Synchronization | Collecting | Distributing | Aggregation
	m.count.Out++
	return []Frame{{Member: m.Name, Payload: p.Encode()}}
}

// Refresh makes every member send once, as far as its rate allows, so that the partners' timeouts start again.
func (l *LAG) Refresh(now time.Time) Effects {
	for _, m := range l.members {
		m.ntt = true
	}
	return l.settle(now)
}

func (l *LAG) member(name string) *member {
	for _, m := range l.members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// settle runs the machines until no state changes, then sends what is due.
func (l *LAG) settle(now time.Time) Effects {
	var fx Effects
	for _, m := range l.members {
		m.expire(now, l.cfg)
	}
	// Each turn moves at least one member by one state; a member passes each of the five states at most once after a
	// selection.
	for moved := true; moved; {
		l.selectMembers()
		moved = false
		for _, m := range l.members {
			moved = m.stepMux(now) || moved
		}
	}
	for _, m := range l.members {
		m.periodic(now)
		if p, ok := m.transmit(now, l.cfg); ok {
			fx.Send = append(fx.Send, Frame{Member: m.Name, Payload: p.Encode()})
		}
		fx.Next = soonest(fx.Next, m.due())
		fx.Changed = fx.Changed || m.changed
		m.changed = false
	}
	return fx
}

// soonest returns the earlier of two times, where zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (l *LAG) asked(now time.Time, m *member, k Marker) Effects {
	fx := l.settle(now)
	m.count.Markers++
	if k.Response || !m.up || !m.answered.allow(now, answers, time.Second) {
		return fx
	}
	fx.Send = append(fx.Send, Frame{Member: m.Name, Payload: k.Answer().Encode()})
	return fx
}
