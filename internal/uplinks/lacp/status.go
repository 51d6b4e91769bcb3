package lacp

import "heddle/internal/plan/problem"

// Counters count one member's frames since the agent started.
type Counters struct {
	In      uint64 // LACPDUs received
	Out     uint64 // LACPDUs sent
	Bad     uint64 // malformed slow protocol frames
	Markers uint64 // marker PDUs received
}

// Status is the state of a LAG.
type Status struct {
	// Partner is the system to which the members in use are attached, PartnerKey its key; nil if there is none.
	Partner    *System
	PartnerKey uint16
	Members    []MemberStatus // in the order of the configuration
}

// MemberStatus is the state of one member.
type MemberStatus struct {
	Name string
	// Usable: frames may be sent on it.
	Usable bool
	// Single: the member is usable alone, as a link without a partner (FallbackSingle).
	Single bool
	// Reason is why the member is not usable; none if it is.
	Reason   problem.Problem
	Receive  string // state of the receive machine: disabled, expired, defaulted or current
	Mux      string // state of the mux machine: detached, waiting, attached, collecting or distributing
	Actor    Info
	Partner  Info
	Counters Counters
}

// Status returns the present state of the LAG.
func (l *LAG) Status() Status {
	var s Status
	if l.choice != nil {
		s.Partner, s.PartnerKey = &l.choice.system, l.choice.key
	}
	single := l.single()
	for _, m := range l.members {
		s.Members = append(s.Members, MemberStatus{
			Name: m.Name, Usable: m.mux == muxDistributing || m == single, Single: m == single,
			Reason:  l.reason(m, single),
			Receive: string(m.rx), Mux: string(m.mux), Actor: m.info(l.cfg), Partner: m.partner, Counters: m.count,
		})
	}
	return s
}

// single returns the member that is used alone, nil if any member has a partner or may still hear the one that it had.
func (l *LAG) single() *member {
	if l.cfg.Fallback != FallbackSingle {
		return nil
	}
	var first *member
	for _, m := range l.members {
		switch {
		case m.up && !m.actor.has(Defaulted):
			return nil
		case m.rx == rxDefaulted && first == nil && !m.drained:
			first = m
		}
	}
	return first
}

// reason returns why a member is not usable, none if it is.
func (l *LAG) reason(m, single *member) problem.Problem {
	switch {
	case m == single || m.mux == muxDistributing:
		return problem.Problem{}
	case !m.up:
		return problem.Of(problem.LACPNoCarrier)
	case m.drained:
		return problem.Of(problem.Drained)
	case m.actor.has(Defaulted) && single != nil:
		return problem.Problem{Code: problem.LACPSingleOther, Peer: single.Name}
	case m.rx == rxExpired && m.actor.has(Defaulted):
		return problem.Of(problem.LACPNoPartnerYet)
	case m.actor.has(Defaulted):
		return problem.Of(problem.LACPNoPartner)
	case m.partner.System.MAC == l.cfg.System.MAC:
		return problem.Of(problem.LACPLoop)
	case !m.selected:
		return l.unlike(m)
	case m.rx == rxExpired:
		return problem.Of(problem.LACPSilent)
	case m.mux == muxWaiting:
		return problem.Of(problem.LACPWaiting)
	case m.mux == muxAttached:
		return problem.Of(problem.LACPNotInSync)
	}
	return problem.Of(problem.LACPNotReady)
}

// unlike returns how a member's partner differs from the LAG's.
func (l *LAG) unlike(m *member) problem.Problem {
	switch {
	case l.choice == nil:
		return problem.Of(problem.LACPNoPartner)
	case m.partner.System == l.choice.system && m.partner.Key == l.choice.key:
		return problem.Of(problem.LACPIndividual)
	}
	return problem.Problem{Code: problem.LACPOtherPartner, Peer: m.partner.System.String(), Have: int(m.partner.Key),
		Other: l.choice.system.String(), Want: int(l.choice.key)}
}
