package lacp

import "time"

// muxState is the state of a member's mux machine (802.1AX 6.4.15, independent control: a member sends only to a
// partner that is collecting, and collects before its partner sends).
type muxState string

const (
	muxDetached     muxState = "detached"     // not in the LAG
	muxWaiting      muxState = "waiting"      // will be, when others had time to find their partner
	muxAttached     muxState = "attached"     // in the LAG; its partner is not yet
	muxCollecting   muxState = "collecting"   // takes frames
	muxDistributing muxState = "distributing" // takes and sends frames
)

// group identifies what members of one LAG must have in common: their partner. A partner that is individual forms a
// group alone.
type group struct {
	system System
	key    uint16
	alone  string // the member's name if its partner is individual
}

// group returns the member's group; ok is false if there is no partner, if the partner is this system itself, or if the
// member is drained.
func (m *member) group(own System) (group, bool) {
	if !m.up || m.drained || m.actor.has(Defaulted) || m.partner.System.MAC == own.MAC {
		return group{}, false
	}
	g := group{system: m.partner.System, key: m.partner.Key}
	if !m.partner.State.has(Aggregation) {
		g.alone = m.Name
	}
	return g, true
}

// reselect takes the member out of the LAG; it may return at once, through the waiting state.
func (m *member) reselect() {
	m.selected = false
	m.detach()
}

func (m *member) detach() {
	if m.mux != muxDetached {
		m.enter(muxDetached)
	}
}

// selectMembers chooses the LAG's partner and selects the members that have it. A partner stays chosen as long as a
// member is attached to it; otherwise the partner with the most members is chosen, and among equals the first in order.
func (l *LAG) selectMembers() {
	votes, attached := map[group]int{}, map[group]bool{}
	for _, m := range l.members {
		if g, ok := m.group(l.cfg.System); ok {
			votes[g]++
			attached[g] = attached[g] || m.mux != muxDetached && m.mux != muxWaiting
		}
	}
	if l.choice == nil || !attached[*l.choice] {
		l.choice = nil
		for _, m := range l.members {
			g, ok := m.group(l.cfg.System)
			if ok && (l.choice == nil || weight(votes[g], attached[g]) > weight(votes[*l.choice],
				attached[*l.choice])) {
				l.choice = &g
			}
		}
	}
	for _, m := range l.members {
		g, ok := m.group(l.cfg.System)
		m.selected = ok && l.choice != nil && g == *l.choice
	}
}

// weight ranks partners. After a restart members are attached before a partner is chosen: one attached member outweighs
// any number of others.
func weight(votes int, attached bool) int {
	if attached {
		return votes + 1<<16
	}
	return votes
}

// stepMux makes at most one transition.
func (m *member) stepMux(now time.Time) (moved bool) {
	next := m.nextMux(now)
	if next == m.mux {
		return false
	}
	if next == muxWaiting {
		m.waits = now.Add(aggregateWait)
	}
	m.enter(next)
	return true
}

func (m *member) nextMux(now time.Time) muxState {
	sync, takes := m.partner.State.has(Synchronization), m.partner.State.has(Collecting)
	switch {
	case !m.selected:
		return muxDetached
	case m.mux == muxDetached:
		return muxWaiting
	case m.mux == muxWaiting && now.Before(m.waits):
		return muxWaiting
	case !sync || m.mux == muxWaiting:
		return muxAttached
	case m.mux == muxAttached || !takes:
		return muxCollecting
	}
	return muxDistributing
}

// enter sets the state that is announced to the partner.
func (m *member) enter(s muxState) {
	m.mux, m.changed, m.ntt = s, true, true
	m.actor = m.actor.
		with(Synchronization, s == muxAttached || s == muxCollecting || s == muxDistributing).
		with(Collecting, s == muxCollecting || s == muxDistributing).
		with(Distributing, s == muxDistributing)
}
