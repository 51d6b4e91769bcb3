package migration

import (
	"cmp"
	"fmt"
	"time"

	"heddle/internal/agent/moves"
	"heddle/internal/agent/state"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// sight is what the host sees of a port's guest: the zero value for a port that is gone.
type sight struct {
	guest moves.Guest
	wait  uint32 // the number of the port's last wait
	// arrives: the port waits for its guest to arrive.
	arrives bool
}

// Look compares the moves with the ports and their waits. It is called after everything that may have changed where a
// guest runs, and does nothing where nothing changed.
func (mv *Part) Look() {
	if mv.looking {
		return
	}
	mv.looking = true
	defer func() { mv.looking = false; clear(mv.packed) }()
	changed, there := false, map[*state.Travel]bool{}
	for _, a := range mv.host.Adapters() {
		t := mv.records.of(a)
		t.Port, there[t] = a.Port, true
		changed = mv.lookAt(t, mv.see(a.Port)) || changed
	}
	for _, t := range mv.records.all() {
		if (t.Serves || t.Open()) && !there[t] {
			changed = mv.lookAt(t, sight{guest: moves.GuestGone}) || changed
		}
	}
	if changed || mv.stale {
		mv.stale = false
		mv.follow()
	}
}

// see is what the host sees of a connected port's guest.
func (mv *Part) see(id plan.PortID) sight {
	w := mv.host.Wait(id)
	s := sight{guest: moves.GuestRuns}
	if w != nil {
		s.wait = w.Number
	}
	switch {
	case !mv.host.HasDevice(id): // its device is gone, and the guest with it
		return sight{guest: moves.GuestGone, wait: s.wait}
	case w == nil:
	case w.Unsure(): // its hypervisor says that it has left, and is asked again
		s.guest = moves.GuestUnsure
	case !w.Silent():
	case w.Doubt, w.Unstarted():
		s.guest = moves.GuestUnsure
	case w.Left:
		s.guest = moves.GuestLeft
	default:
		s.guest, s.arrives = moves.GuestGone, w.InPlaceOf == ""
	}
	return s
}

// lookAt takes in what is seen of one port.
func (mv *Part) lookAt(t *state.Travel, s sight) (changed bool) {
	now, before := time.Now(), marked(t)
	var heard uint64
	if t.Here != nil {
		heard = t.Here.Known
	}
	if a := t.Away; a != nil {
		heard = max(heard, a.Heard)
		saw, pack := a.See(s.guest, s.wait, t.Generation, now)
		if changed = changed || saw; pack {
			a.Packed(mv.packs(t), now)
		}
	}
	serves := t.Serves
	raised := t.Look(s.guest == moves.GuestRuns, s.wait, heard, t.Here.Came())
	changed = changed || raised || serves != t.Serves
	if s.arrives && (t.Here == nil || t.Here.Wait != s.wait) {
		mv.begins(t, s.wait, now)
		changed = true
	}
	if t.Here != nil {
		changed = mv.lookHere(t, s, now) || changed
	}
	mv.tell(t, before)
	return changed
}

// lookHere takes in what is seen of a port to which its guest moves.
func (mv *Part) lookHere(t *state.Travel, s sight, now time.Time) (changed bool) {
	h := t.Here
	switch s.guest {
	case moves.GuestRuns:
		arrived := h.Arrived()
		if changed = h.Activated(now, "the guest runs here"); changed && !arrived {
			mv.installs(t)
		}
	case moves.GuestLeft:
		changed = h.Parts()
	case moves.GuestGone:
		if !s.arrives && !h.Over() {
			h.Gone(now, "the port is gone here")
			h.Wait, changed = 0, true // a port that is back waits for its guest anew
		}
	}
	return changed
}

// installs gives a port what came with it, since its guest runs here.
func (mv *Part) installs(t *state.Travel) {
	if mv.baggage == nil {
		return
	}
	if err := mv.baggage.Install(t.Port); err != nil {
		t.Here.Problem = err.Error()
		mv.host.Complain("give a port what came with it", err)
	}
}

// OtherHost returns the host to which a port's guest has left, or from which it comes: its name or, without one, its
// id. "" if no move says so. arrived reports whether that host has said that the guest runs there.
func (mv *Part) OtherHost(port string, left bool) (host string, arrived bool) {
	t := mv.travelOf(port)
	if t == nil {
		return "", false
	}
	var m moves.Track
	switch {
	case left && t.Away != nil:
		m = t.Away.Track
	case !left && t.Here != nil:
		m = t.Here.Track
	}
	return cmp.Or(m.HostName, m.Host), m.Phase == moves.Active || m.Phase == moves.Released
}

// mark is how far the moves of a port have come.
type mark struct {
	here, away *moves.Track
	steps      [2]moves.Phase
}

func marked(t *state.Travel) (m mark) {
	if t.Here != nil {
		m.here, m.steps[0] = &t.Here.Track, t.Here.Phase
	}
	if t.Away != nil {
		m.away, m.steps[1] = &t.Away.Track, t.Away.Phase
	}
	return m
}

// tell publishes the steps that came about since the mark.
func (mv *Part) tell(t *state.Travel, since mark) {
	now := marked(t)
	for i, track := range []*moves.Track{now.here, now.away} {
		was := []*moves.Track{since.here, since.away}[i]
		if track == nil || track == was && now.steps[i] == since.steps[i] || len(track.Steps) == 0 {
			continue
		}
		text := track.Steps[len(track.Steps)-1].Text
		mv.host.Events.Publish(event.Event{Kind: event.Migration, Switch: t.Port.Switch, Port: t.Port.Name,
			Text: fmt.Sprintf("port %s: move %.8s %s: %s", t.Port.Name, track.Move, track.Phase, text)})
		mv.host.Log.Info(string(event.Migration), "port", t.Port.String(), "move", track.Move, "phase",
			string(track.Phase), "peer", track.HostName, "what", text)
	}
}
