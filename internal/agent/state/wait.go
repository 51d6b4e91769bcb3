package state

import (
	"slices"
	"strings"
	"time"

	"heddle/internal/agent/presence"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Wait is a port's wait for a guest that runs elsewhere, and what the port lacks during it.
type Wait struct {
	ID plan.PortID `json:"id"`
	presence.Wait
	// MAC is the port's MAC, and Monitor the path of its QEMU monitor, which needs a MAC. They are kept here while
	// another port of the switch is configured with the same MAC.
	MAC     plan.MAC     `json:"mac,omitzero"`
	Monitor spec.Monitor `json:"monitor,omitzero"`
	// InPlaceOf is the name of the port whose guest will arrive at this port, which then takes that name.
	InPlaceOf string `json:"inPlaceOf,omitzero"`
}

// Problem returns the problem of the waiting port; none without a wait.
func (w *Wait) Problem() problem.Problem {
	switch {
	case w == nil:
		return problem.Problem{}
	case w.Doubt, w.Unstarted():
		return problem.Problem{Code: problem.GuestUnsure, Detail: w.Why.Text()}
	case w.Left:
		return problem.Problem{Code: problem.GuestLeft, Detail: w.Why.Text()}
	}
	return problem.Problem{Code: problem.GuestArrives, Detail: w.Why.Text()}
}

// Text describes what the port waits for.
func (w *Wait) Text() string { return w.Problem().Text() }

// longWait is how long a port may wait for its guest to arrive before that is shown as a problem. The port continues to
// wait.
const longWait = time.Minute

// Unstarted reports whether the port waits for its QEMU to start the guest, which moves from nowhere.
func (w *Wait) Unstarted() bool { return w.Silent() && !w.Left && w.Why == observe.WaitQEMUStarts }

// Overdue reports whether an arriving guest is so late that somebody should look. A guest that has left may stay away,
// and one that was not started yet may stay so.
func (w *Wait) Overdue(now time.Time) bool {
	return w != nil && !w.Awake && !w.Left && !w.Doubt && !w.Unstarted() && now.Sub(w.Since) >= longWait
}

// WaitOf returns the wait of a port, over or not; nil if there is none.
func (s *State) WaitOf(id plan.PortID) *Wait {
	for i := range s.Waits {
		if s.Waits[i].ID == id {
			return &s.Waits[i]
		}
	}
	return nil
}

// BeginWait starts a wait of a port and replaces its earlier one. The list is replaced, so that a caller that holds the
// earlier list can return to it.
func (s *State) BeginWait(w Wait) {
	s.LastWait++
	w.Number = s.LastWait
	s.PutWait(w)
}

// PutWait replaces the port's last wait.
func (s *State) PutWait(w Wait) { s.Waits = append(s.waitsBut(w.ID), w) }

// EndWait marks the wait of a port as over. unsure: from now on, its hypervisor is asked whether that is right.
func (s *State) EndWait(id plan.PortID, unsure bool) {
	s.Waits = slices.Clone(s.Waits)
	if w := s.WaitOf(id); w != nil {
		w.Awake, w.Doubt = true, unsure
		if unsure {
			w.Since = time.Now()
		}
	}
}

// DropWait removes the wait of a port.
func (s *State) DropWait(id plan.PortID) { s.Waits = s.waitsBut(id) }

// Succeed makes the successor take the place of port; the port that was there, if it still exists (had), gets the name
// left. What belongs to devices moves with the devices; what belongs to the ports' names stays.
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
	s.rename(rename)
	s.Waits = slices.Clone(s.Waits)
	for i := range s.Waits {
		s.Waits[i].ID = rename(s.Waits[i].ID)
	}
	s.Numbers = succeedNumbers(s.Numbers, port, successor, left, had)
}

// succeedNumbers: the port keeps its number, and the port that is renamed to left gets the successor's.
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

// endWaits removes all waits, because the QEMUs they were for are gone. The ports that stood beside others for a
// migration are gone too; other ports that lacked their MAC during the wait get it back.
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

// Take moves to the wait what a port's configuration cannot have while another port has its MAC.
func (w *Wait) Take(p *spec.Port) {
	if mac, err := plan.ParseMAC(p.MAC); err == nil {
		w.MAC, w.Monitor = mac, p.Monitor
		p.MAC, p.Monitor = "", spec.Monitor{}
	}
}

// Give returns to a port's configuration what Take moved to the wait.
func (w *Wait) Give(p *spec.Port) {
	if !w.MAC.IsZero() {
		p.MAC, p.Monitor = w.MAC.String(), w.Monitor
	}
	w.MAC, w.Monitor = plan.MAC{}, spec.Monitor{}
}

// Suffixes of the names of ports that stand beside another port during a migration within the host.
const (
	IncomingName = ":incoming"
	LeftName     = ":left"
)

// Beside reports whether the port stands beside the port of the same guest: it will replace that port, or was replaced
// by it.
func (w *Wait) Beside() bool {
	return w.InPlaceOf != "" || w.Left && strings.HasSuffix(w.ID.Name, LeftName)
}
