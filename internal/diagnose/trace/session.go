package trace

import (
	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// Session sends frames into one state of the switches, which may be given another plan in between. It is for one
// goroutine.
type Session struct{ t *tracer }

// NewSession begins with the state that a trace of that host would begin with.
func NewSession(h *Host) *Session {
	s := &Session{newTracer(h)}
	s.t.model.Explain(false)
	return s
}

// Change puts the plan and the facts of a host in force, as the kernel would: what was learned stays where the plan
// allows it.
func (s *Session) Change(h *Host) {
	s.t = &tracer{Host: h, model: s.t.model, places: placesOf(h.Plan), as: map[*place]identity{}}
	s.t.reach()
}

// Send sends a frame; an empty result is that of a port that is not connected.
func (s *Session) Send(at plan.PortID, frame []byte) model.Result {
	return s.t.model.Frame(at, frame, s.t.Now)
}

// Why explains why a frame was dropped or, if to has a name, why that port or uplink got no copy.
func (s *Session) Why(at, to plan.PortID, frame []byte, res *model.Result) []diagnose.Cause {
	from := s.t.places[at]
	if from == nil {
		return nil
	}
	return s.t.causes(from, s.t.places[to], frame, res)
}

// MACOf is the MAC that a port is known by; zero for none.
func (s *Session) MACOf(id plan.PortID) plan.MAC { return s.t.model.MACOf(id) }

// FrameOf makes a frame of fields that are all given: with its source, its destination and its tags.
func FrameOf(f *diagnose.Fields) ([]byte, error) {
	if err := check(f); err != nil {
		return nil, err
	}
	p := &packet{fields: f}
	if f.SrcMAC != nil {
		p.src = *f.SrcMAC
	}
	if f.DstMAC != nil {
		p.dst = *f.DstMAC
	}
	if f.Outer != nil {
		p.tags = append(p.tags, typeAD<<16|uint32(*f.Outer))
	}
	if f.VLAN != nil {
		p.tags = append(p.tags, typeQ<<16|uint32(*f.VLAN))
	}
	return p.bytes()
}
