package lacp

import (
	"slices"
	"time"
)

// rxState is the state of a member's receive machine (802.1AX 6.4.12).
type rxState string

//	carrier                3 s                    3 s
//
// disabled ─────────▶ expired ─────────▶ defaulted
//
//	▲                 ▲  │ PDU              │ PDU
//	│ no carrier      │  ▼                  ▼
//	└──────────────── current ◀─────────────┘
//	             timeout │ ▲ PDU
//	                     └─┘
const (
	rxDisabled  rxState = "disabled"  // no carrier
	rxExpired   rxState = "expired"   // waits for the first PDU, or for another one
	rxDefaulted rxState = "defaulted" // there is no partner
	rxCurrent   rxState = "current"   // PDUs of the partner arrive
)

// member is one member's state machines.
type member struct {
	Member
	up      bool
	drained bool // it must carry nothing
	rx      rxState
	mux     muxState
	actor   State
	partner Info
	// selected: the member's partner is the LAG's.
	selected bool
	until    time.Time // end of the states expired and current
	waits    time.Time // end of the state muxWaiting
	periodAt time.Time // when the next periodic PDU is due; zero: none
	ntt      bool      // need to transmit
	sent     window
	answered window
	count    Counters
	changed  bool
}

// newMember returns a member in the state INITIALIZE: without a known partner and without carrier.
func newMember(c Member, cfg Config) *member {
	m := &member{Member: c, rx: rxDisabled, mux: muxDetached, actor: Aggregation}
	m.configure(cfg)
	m.recordDefault(cfg)
	return m
}

// configure applies those changes of the configuration that need no restart of the machines.
func (m *member) configure(cfg Config) {
	now := m.actor.with(Activity, cfg.Active).with(ShortTimeout, cfg.Fast)
	if now != m.actor {
		m.actor, m.ntt = now, true
	}
	m.drained = slices.Contains(cfg.Drained, m.Name)
	if m.actor.has(Defaulted) {
		m.recordDefault(cfg)
	}
}

// recordDefault replaces the partner with the default one. It is passive, so that a passive LAG stays silent towards it
// (S53), and asks for PDUs as often as we do, so that an active LAG keeps looking for a partner at its own rate.
func (m *member) recordDefault(cfg Config) {
	m.partner = Info{State: State(0).with(ShortTimeout, cfg.Fast)}
	m.actor |= Defaulted
}

func timeout(s State) time.Duration {
	if s.has(ShortTimeout) {
		return shortTimeout
	}
	return longTimeout
}

func (m *member) carrier(now time.Time, up bool, cfg Config) {
	m.up, m.changed = up, true
	m.partner.State &^= Synchronization
	if !up {
		m.rx = rxDisabled
		m.actor &^= Expired
		return
	}
	m.becomeExpired(now)
	m.periodAt, m.ntt = time.Time{}, true
}

func (m *member) becomeExpired(now time.Time) {
	m.rx, m.changed = rxExpired, true
	m.partner.State = m.partner.State&^Synchronization | ShortTimeout
	m.until = now.Add(shortTimeout)
	m.actor |= Expired
	m.ntt = true
}

// expire applies the timeouts that have passed. If the caller was away for long, both may have.
func (m *member) expire(now time.Time, cfg Config) {
	if m.rx == rxCurrent && !now.Before(m.until) {
		m.becomeExpired(m.until)
	}
	if m.rx == rxExpired && !now.Before(m.until) {
		m.rx, m.changed = rxDefaulted, true
		m.recordDefault(cfg)
		m.actor &^= Expired
		m.reselect()
		m.ntt = true
	}
}

// received processes a PDU on a member that has carrier. The notification of a carrier may come after the first PDU;
// that PDU is ignored, since there will be more.
func (l *LAG) received(now time.Time, m *member, p PDU) {
	m.count.In++
	if !m.up {
		return
	}
	if p.Actor.System.MAC == l.cfg.System.MAC && m.rx == rxCurrent && m.partner.System.MAC != l.cfg.System.MAC {
		return // our own PDU came back; it replaces no partner (S98)
	}
	if !sameLink(p.Actor, m.partner) {
		m.reselect()
	}
	own := m.info(l.cfg)
	if !l.knowsUs(own, p) {
		m.ntt = true
	}
	before := m.partner
	m.partner = p.Actor
	m.partner.State = m.partner.State.with(Synchronization, inSync(own, p))
	m.changed = m.changed || m.partner != before || m.rx != rxCurrent
	m.rx = rxCurrent
	m.actor &^= Defaulted | Expired
	m.until = now.Add(timeout(m.actor))
}

// sameLink reports whether two PDUs name the same partner (802.1AX update_Selected).
func sameLink(a, b Info) bool {
	return a.System == b.System && a.Key == b.Key && a.Port == b.Port && a.State&Aggregation == b.State&Aggregation
}

// knowsUs reports whether the sender's view of us is right; if not, it gets a PDU (802.1AX update_NTT).
func (l *LAG) knowsUs(own Info, p PDU) bool {
	const told = Activity | ShortTimeout | Synchronization | Aggregation
	return sameLink(own, p.Partner) && own.State&told == p.Partner.State&told
}

// inSync reports whether the partner is attached to an aggregator that fits ours and will announce when it leaves
// (802.1AX recordPDU).
func inSync(own Info, p PDU) bool {
	speaks := p.Actor.State.has(Activity) || own.State.has(Activity) && p.Partner.State.has(Activity)
	fits := sameLink(own, p.Partner) || !p.Actor.State.has(Aggregation)
	return speaks && fits && p.Actor.State.has(Synchronization)
}

// info returns what the member sends about itself.
func (m *member) info(cfg Config) Info {
	return Info{System: cfg.System, Key: cfg.Key, Port: m.Port, State: m.actor}
}
