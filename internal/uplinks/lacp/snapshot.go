package lacp

import "time"

// Snapshot is the state of a LAG that outlives its process, so that the next process continues from it.
type Snapshot struct {
	System  System           `json:"system"`
	Key     uint16           `json:"key"`
	Members []MemberSnapshot `json:"members"`
}

// MemberSnapshot is the remembered state of one member.
type MemberSnapshot struct {
	Name    string `json:"name"`
	Port    Port   `json:"port"`
	Receive string `json:"receive"`
	Mux     string `json:"mux"`
	Actor   State  `json:"actor"`
	Partner Info   `json:"partner"`
}

// Snapshot returns the present state of the LAG. It changes only when Effects say Changed.
func (l *LAG) Snapshot() Snapshot {
	s := Snapshot{System: l.cfg.System, Key: l.cfg.Key}
	for _, m := range l.members {
		s.Members = append(s.Members, MemberSnapshot{Name: m.Name, Port: m.Port, Receive: string(m.rx),
			Mux: string(m.mux), Actor: m.actor, Partner: m.partner})
	}
	return s
}

// Restore sets a new LAG to the state of s: a member that was usable is usable, until its link or its partner shows
// otherwise, or the partner is silent for a whole timeout from now on. A snapshot of another system, key or port is
// ignored. Each member sends at once.
func (l *LAG) Restore(now time.Time, s Snapshot) Effects {
	if s.System == l.cfg.System && s.Key == l.cfg.Key {
		for _, was := range s.Members {
			if m := l.member(was.Name); m != nil && m.Port == was.Port {
				m.restore(now, was, l.cfg)
			}
		}
	}
	return l.settle(now)
}

func (m *member) restore(now time.Time, was MemberSnapshot, cfg Config) {
	m.up, m.changed, m.ntt = true, true, true
	switch rxState(was.Receive) {
	case rxCurrent:
		m.rx, m.until = rxCurrent, now.Add(timeout(m.actor))
	case rxExpired:
		m.rx, m.until = rxExpired, now.Add(shortTimeout)
		m.actor |= Expired
	case rxDefaulted:
		m.rx = rxDefaulted
		return // the partner stays as newMember set it
	default:
		m.up = false
		return
	}
	if was.Actor.has(Defaulted) {
		return
	}
	m.partner = was.Partner
	m.actor &^= Defaulted
	switch mux := muxState(was.Mux); mux {
	case muxAttached, muxCollecting, muxDistributing:
		m.enter(mux)
	}
}
