package state

import (
	"slices"
	"time"
)

// GivenUp is an adapter of a VM whose static port was given up by command. A claim that no controller answered in time
// may bind the port afterwards; it is given up again then, until the adapter is connected anew.
type GivenUp struct {
	VM        string `json:"vm"`
	Adapter   string `json:"adapter"`
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	// Answered is when a controller said that the adapter has no port; zero before.
	Answered time.Time `json:"answered,omitzero"`
}

// lateTime is for how long a claim may come late after a controller has answered: what claims ends with the host's
// conversation, but for a transaction of etcd that is under way.
const lateTime = 10 * time.Minute

// GiveUp remembers an adapter whose port is given up; at most most are remembered, the newest.
func (s *State) GiveUp(g GivenUp, most int) {
	s.TakeUp(g.VM, g.Adapter)
	s.GivenUp = append(slices.Clip(s.GivenUp), g)
	s.GivenUp = s.GivenUp[max(0, len(s.GivenUp)-most):]
}

// TakeUp forgets that the port of an adapter was given up: it is connected anew.
func (s *State) TakeUp(vm, adapter string) {
	s.GivenUp = slices.DeleteFunc(slices.Clone(s.GivenUp), func(g GivenUp) bool {
		return g.VM == vm && g.Adapter == adapter
	})
}

// NotGivenUp are the adapters of which it is still to be made sure that they have no port: nobody has answered yet, or
// a port is bound here nevertheless. Those of which nothing is to be heard any more are forgotten.
func (s *State) NotGivenUp(now time.Time) (list []GivenUp) {
	s.GivenUp = slices.DeleteFunc(slices.Clone(s.GivenUp), func(g GivenUp) bool {
		return !g.Answered.IsZero() && now.Sub(g.Answered) > lateTime
	})
	for _, g := range s.GivenUp {
		n := s.NIC(g.VM, g.Adapter)
		if n != nil && s.Connected(n) {
			continue
		}
		if g.Answered.IsZero() || n != nil && n.Bound {
			list = append(list, g)
		}
	}
	return list
}

// GaveUp records that a controller has answered that an adapter has no port.
func (s *State) GaveUp(vm, adapter string, now time.Time) {
	s.GivenUp = slices.Clone(s.GivenUp)
	for i := range s.GivenUp {
		if s.GivenUp[i].VM == vm && s.GivenUp[i].Adapter == adapter {
			s.GivenUp[i].Answered = now
		}
	}
}
