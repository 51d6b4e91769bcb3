package state

import (
	"slices"
	"strings"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Wait is a port's wait for a guest that runs elsewhere: one that is to arrive by a migration, or that has left by one
// and may come back. The record stays when the wait is over, so that the same migration begins no other.
type Wait struct {
	ID     plan.PortID `json:"id"`
	Number uint32      `json:"number"`
	// Left: the guest has left. Otherwise it is to arrive.
	Left bool `json:"left,omitzero"`
	// Awake: the wait is over.
	Awake bool `json:"awake,omitzero"`
	// Doubt: whether the guest runs here is not known yet. Its QEMU is asked.
	Doubt bool `json:"doubt,omitzero"`
	// Down: the device of a port whose guest has left has gone down since. When it comes up again, it belongs to
	// another guest.
	Down bool `json:"down,omitzero"`
	// Why is the evidence that it began by.
	Why   string    `json:"why"`
	Since time.Time `json:"since"`
	// MAC is the port's MAC, and Monitor its monitor, which needs one. They are kept here while another port of the
	// switch is configured with the same MAC.
	MAC     plan.MAC     `json:"mac,omitzero"`
	Monitor spec.Monitor `json:"monitor,omitzero"`
	// InPlaceOf is the name of the port whose guest is to arrive at this one, which then takes that name.
	InPlaceOf string `json:"inPlaceOf,omitzero"`
}

// Problem is the state in which the port is; none without a wait.
func (w *Wait) Problem() problem.Problem {
	switch {
	case w == nil:
		return problem.Problem{}
	case w.Doubt:
		return problem.Problem{Code: problem.GuestUnsure, Detail: w.Why}
	case w.Left:
		return problem.Problem{Code: problem.GuestLeft, Detail: w.Why}
	}
	return problem.Problem{Code: problem.GuestArrives, Detail: w.Why}
}

// Text says what the port waits for.
func (w *Wait) Text() string { return w.Problem().Text() }

// longWait is how long a port may wait for its guest to arrive before that is a problem to be shown. It goes on
// waiting.
const longWait = time.Minute

// Overdue says whether a guest that is to arrive has not for so long that somebody should look. One that has left may
// stay away.
func (w *Wait) Overdue(now time.Time) bool {
	return w != nil && !w.Awake && !w.Left && !w.Doubt && now.Sub(w.Since) >= longWait
}

// WaitOf is the wait of a port, over or not; nil for none.
func (s *State) WaitOf(id plan.PortID) *Wait {
	for i := range s.Waits {
		if s.Waits[i].ID == id {
			return &s.Waits[i]
		}
	}
	return nil
}

// BeginWait has a port wait from now on, in place of what was remembered of its waits. The list is another then, so
// that who keeps the one before can go back to it.
func (s *State) BeginWait(w Wait) {
	s.LastWait++
	w.Number = s.LastWait
	s.PutWait(w)
}

// PutWait puts a wait in the place of the port's last.
func (s *State) PutWait(w Wait) { s.Waits = append(s.waitsBut(w.ID), w) }

// EndWait notes that the wait of a port is over.
func (s *State) EndWait(id plan.PortID) {
	s.Waits = slices.Clone(s.Waits)
	if w := s.WaitOf(id); w != nil {
		w.Awake = true
	}
}

// DropWait forgets the wait of a port.
func (s *State) DropWait(id plan.PortID) { s.Waits = s.waitsBut(id) }

// Succeed lets a port take the place of another, which gets the name left: what belongs to their devices goes with
// these, what belongs to the ports' names stays. had: the other is still there.
func (s *State) Succeed(port, successor, left plan.PortID, had bool) {
	rename := func(id plan.PortID) plan.PortID {
		switch {
		case id == successor:
			return port
		case id == port && had:
			return left
		}
		return id
	}
	s.Held, s.Released, s.Waits = slices.Clone(s.Held), slices.Clone(s.Released), slices.Clone(s.Waits)
	s.whereIn = nil
	for i := range s.Held {
		s.Held[i].ID = rename(s.Held[i].ID)
	}
	for i := range s.Released {
		s.Released[i].ID = rename(s.Released[i].ID)
	}
	for i := range s.Waits {
		s.Waits[i].ID = rename(s.Waits[i].ID)
	}
	s.Numbers = succeedNumbers(s.Numbers, port, successor, left, had)
}

// succeedNumbers: the port keeps its number, and what gets the name left has the successor's.
func succeedNumbers(all []Number, port, successor, left plan.PortID, had bool) []Number {
	all = slices.Clone(all)
	for i := range all {
		switch {
		case all[i].ID != successor:
		case had:
			all[i].ID = left
		default:
			all[i].ID = port
		}
	}
	return all
}

func (s *State) waitsBut(id plan.PortID) []Wait {
	return slices.DeleteFunc(slices.Clone(s.Waits), func(w Wait) bool { return w.ID == id })
}

// endWaits forgets all waits: the QEMUs that they were of are gone. So are the ports that were to take the places of
// others, or had lost them; what else had to do without its MAC has it again.
func (s *State) endWaits() {
	for _, w := range s.Waits {
		i := slices.IndexFunc(s.Ports, func(p spec.Port) bool { return p.Name == w.ID.Name })
		switch {
		case i < 0:
		case w.Beside():
			s.Ports = slices.Delete(slices.Clone(s.Ports), i, i+1)
		case !w.MAC.IsZero():
			s.Ports = slices.Clone(s.Ports)
			w.Give(&s.Ports[i])
		}
	}
	s.Waits = nil
}

// Take keeps what a port's configuration can't have while another port has its MAC.
func (w *Wait) Take(p *spec.Port) {
	if mac, err := plan.ParseMAC(p.MAC); err == nil {
		w.MAC, w.Monitor = mac, p.Monitor
		p.MAC, p.Monitor = "", spec.Monitor{}
	}
}

// Give gives a port's configuration back what it had to do without.
func (w *Wait) Give(p *spec.Port) {
	if !w.MAC.IsZero() {
		p.MAC, p.Monitor = w.MAC.String(), w.Monitor
	}
	w.MAC, w.Monitor = plan.MAC{}, spec.Monitor{}
}

// Endings of the names of ports that stand beside the one that a migration within the host concerns.
const (
	IncomingName = ":incoming"
	LeftName     = ":left"
)

// Beside says whether the port stands beside the one that its guest belongs to: it is to take that one's place, or has
// lost it.
func (w *Wait) Beside() bool {
	return w.InPlaceOf != "" || w.Left && strings.HasSuffix(w.ID.Name, LeftName)
}
