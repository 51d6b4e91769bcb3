package lacp

import "time"

// Snapshot is what a LAG remembers beyond the end of its process, so that the next one goes on where it was.
type Snapshot struct {
	System  System           `json:"system"`
	Key     uint16           `json:"key"`
	Members []MemberSnapshot `json:"members"`
}

// MemberSnapshot is what is remembered of one member.
type MemberSnapshot struct {
	Name    string `json:"name"`
	Port    Port   `json:"port"`
	Receive string `json:"receive"`
	Mux     string `json:"mux"`
	Actor   State  `json:"actor"`
	Partner Info   `json:"partner"`
}

// Snapshot is the LAG as it is. It changes only when Effects say Changed.
func (l *LAG) Snapshot() Snapshot {
	s := Snapshot{System: l.cfg.System, Key: l.cfg.Key}
	for _, m := range l.members {
		s.Members = append(s.Members, MemberSnapshot{Name: m.Name, Port: m.Port, Receive: string(m.rx),
			Mux: string(m.mux), Actor: m.actor, Partner: m.partner})
	}
	return s
}

// Restore goes on where s was taken, on a LAG that is new: a member that was usable is usable, until its link or its
// partner says otherwise, or the partner is silent for a whole timeout from now on. A snapshot of another system, key
// or port says nothing. Each member speaks at once.
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
		return // what newMember made of the partner holds
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
