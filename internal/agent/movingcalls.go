package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"heddle/internal/agent/moves"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/guest"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// movers answer the calls about moves.
type movers struct {
	*moving
	commands *commands
}

// copyTime bounds how long a caller waits for a copy to be confirmed.
const copyTime = 15 * time.Second

// PortMoves lists the moves that the host takes part in, and the last ones that are over, the oldest first.
func (m movers) PortMoves(ctx context.Context, q api.PortMoveOf) (out []api.PortMove, err error) {
	out = []api.PortMove{}
	var last []api.PortMove // the last ones to and from here, behind those that were in their place for a while
	return out, m.Do(ctx, func() error {
		for _, t := range m.state.Travels {
			if q.Port != "" && t.Port.Name != q.Port || !isOf(t, q.Of) {
				continue
			}
			for _, p := range t.Past {
				out = append(out, viewMove(t, p))
			}
			for _, a := range t.Aside {
				out = append(out, viewMove(t, a.Track))
			}
			if t.Here != nil {
				last = append(last, viewMove(t, t.Here.Track))
			}
			if t.Away != nil {
				last = append(last, viewMove(t, t.Away.Track))
			}
		}
		for _, list := range [][]api.PortMove{out, last} {
			slices.SortStableFunc(list, func(a, b api.PortMove) int { return beganAt(a).Compare(beganAt(b)) })
		}
		out = append(out, last...)
		if len(out) == 0 && q.Port != "" && planned(m.Active().Plan, q.Port) == nil {
			return m.ports.noPort(q.Port)
		}
		return nil
	})
}

func beganAt(m api.PortMove) (at time.Time) {
	if len(m.Steps) > 0 {
		at = m.Steps[0].At
	}
	return at
}

// viewMove is a move as it is shown.
func viewMove(t *state.Travel, m moves.Track) api.PortMove {
	out := api.PortMove{Move: m.Move, Switch: t.Port.Switch, Port: t.Port.Name, VM: t.VM, Adapter: t.Adapter,
		Side: api.MoveSide(m.Side), Phase: api.MovePhase(m.Phase), Peer: m.HostName, Generation: t.Generation,
		Copies: m.Confirmed, Last: m.Last, Problem: m.Problem, Copied: m.Copied, Steps: []api.MoveStep{}}
	for _, s := range m.Steps {
		out.Steps = append(out.Steps, api.MoveStep{Phase: api.MovePhase(s.Phase), At: s.At, Text: s.Text})
	}
	return out
}

// CopyMovingPort has a copy made now, and returns when the target has it.
func (m movers) CopyMovingPort(ctx context.Context, q api.PortMoveOf) (out *api.PortMove, err error) {
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	var after uint64
	var news chan struct{}
	err = m.Do(ctx, func() error {
		t, err := m.leavingBy(q)
		if err != nil {
			return err
		}
		after = t.Away.Sent
		if f := m.ferries[keyOf(t.VM, t.Adapter)]; f != nil {
			f.again()
		}
		return nil
	})
	for err == nil {
		done := false
		err = m.Do(ctx, func() error {
			t, err := m.leavingBy(q)
			if err != nil {
				return err
			}
			news, done = m.news, t.Away.Last || t.Away.Confirmed > after
			view := viewMove(t, t.Away.Track)
			out = &view
			return nil
		})
		if done || err != nil {
			return out, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, api.NewError(api.Invalid, fmt.Sprintf("host %s does not confirm a copy of port %s (%s)",
				out.Peer, q.Port, problemOr(out.Problem, "it has not answered yet")))
		}
	}
	return nil, err
}

func problemOr(problem, otherwise string) string {
	if problem != "" {
		return problem
	}
	return otherwise
}

// leavingBy returns the record of a port that leaves this host.
func (m movers) leavingBy(q api.PortMoveOf) (*state.Travel, error) {
	port := q.Port
	if err := m.commands.meant().refuses(port, q.Of); err != nil {
		return nil, err
	}
	t := m.travelOf(port)
	switch {
	case planned(m.Active().Plan, port) == nil:
		return nil, m.ports.noPort(port)
	case t == nil:
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s can't move to another host: nobody said whose it "+
			"is (heddle port connect --vm-uuid, --adapter)", port))
	case t.Away == nil || t.Away.Over():
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s moves nowhere: no host waits for its guest, or no "+
			"controller has named the host yet", port))
	}
	return t, nil
}

// SilencePort makes a port silent whose guest has stopped to go on elsewhere. The guest may run there as soon as it
// returns, so that it doesn't wait for the disk.
func (m movers) SilencePort(ctx context.Context, q api.PortMoveOf) (out *api.PortMove, err error) {
	out = &api.PortMove{Steps: []api.MoveStep{}}
	return out, m.Do(ctx, func() error {
		p := planned(m.Active().Plan, q.Port)
		if p == nil {
			return m.ports.noPort(q.Port)
		}
		if err := m.commands.meant().refuses(q.Port, q.Of); err != nil {
			return err
		}
		if err := m.waiting.silence(p); err != nil {
			return err
		}
		if t := m.travelOf(q.Port); t != nil && t.Away != nil {
			*out = viewMove(t, t.Away.Track)
		}
		return nil
	})
}

// silence begins the wait of a port because somebody says that its guest has left. What its hypervisor says counts
// first.
func (wt *waiting) silence(p *plan.Port) error {
	w, now := wt.state.WaitOf(p.ID), wt.adapters[p.Monitor.Socket].Run
	by := "its QEMU at " + p.Monitor.Socket
	if now == guest.RunUnknown && wt.domains[p.Domain] != guest.RunUnknown {
		now, by = wt.domains[p.Domain], "libvirt"
	}
	step, believed := presence.Silenced(presenceOf(w), now)
	switch {
	case !believed && presenceOf(w).Silent():
		return api.NewError(api.Invalid, fmt.Sprintf("port %s is silent already: it waits for its guest to arrive here",
			p.ID.Name))
	case !believed:
		return api.NewError(api.Invalid, fmt.Sprintf("port %s is not silenced: %s says that its guest runs here",
			p.ID.Name, by))
	}
	return wt.silenced(p.ID, wt.take(p.ID, w, step))
}

// silenced makes a port silent whose record says so, for a caller that waits for it: the disk, and all that takes
// longer, follow the answer. An agent that dies in between leaves the wait in the kernel, where the next one finds it.
// It fails where the port may speak even so.
func (wt *waiting) silenced(id plan.PortID, changed bool) error {
	if changed {
		wt.activateWaits()
		wt.followed()
		wt.settler.settleNext()
	}
	if wt.isSilent(id) {
		return nil
	}
	if wt.settler.settle(); wt.isSilent(id) {
		return nil
	}
	return fmt.Errorf("port %s is not silent yet, the host tries it again: %s", id.Name, wt.settler.Complaint())
}

// isSilent reports whether nothing passes a port by what is active in the kernel.
func (wt *waiting) isSilent(id plan.PortID) bool {
	d := wt.Active().Applied
	if d == nil || wt.effect.redo {
		return false
	}
	f := d.Facts[id]
	return !f.Up || f.Waits()
}

// CancelMove removes a port that waits for its guest to arrive. What the source has stays as it is. One that is
// cancelled already is no error.
func (m movers) CancelMove(ctx context.Context, q api.PortMoveOf) error {
	return m.ends(ctx, q, func(t *state.Travel) bool { return t.Here != nil && t.Here.Phase == moves.Cancelled },
		func(w *state.Wait) string {
			if w.Silent() && !w.Left {
				return ""
			}
			return fmt.Sprintf("port %s does not wait for its guest to arrive: there is nothing to cancel", q.Port)
		})
}

// ReleaseMovedPort removes a port whose guest has left. One that is released already is no error.
func (m movers) ReleaseMovedPort(ctx context.Context, q api.PortMoveOf) error {
	return m.ends(ctx, q, func(t *state.Travel) bool { return t.Away != nil && t.Away.Left },
		func(w *state.Wait) string {
			if w.Silent() && w.Left {
				return ""
			}
			return fmt.Sprintf("port %s is not released: its guest has not left (heddle port disconnect %s removes it "+
				"even so)", q.Port, printable.ShellWord(q.Port))
		})
}

// ends removes the port of a move unless its wait says why not, which is asked in the same turn of the loop: a guest
// that arrives in between keeps its port. Without a port, it is no error where the move has ended so before.
func (m movers) ends(ctx context.Context, q api.PortMoveOf, ended func(*state.Travel) bool,
	why func(*state.Wait) string) error {
	over := false
	judge := func(id plan.PortID) error {
		if err := m.commands.meant().refuses(q.Port, q.Of); err != nil {
			return err
		}
		var w *state.Wait
		if w = m.state.WaitOf(id); w == nil {
			w = &state.Wait{Wait: presence.Wait{Awake: true}}
		}
		if text := why(w); text != "" {
			return api.NewError(api.Invalid, text)
		}
		return nil
	}
	err := m.Do(ctx, func() error {
		p := planned(m.Active().Plan, q.Port)
		if p != nil {
			return judge(p.ID) // of a port of the file, too
		}
		over = slices.ContainsFunc(m.state.Travels, func(t *state.Travel) bool {
			return t.Port.Name == q.Port && isOf(t, q.Of) && ended(t)
		})
		if !over {
			return m.ports.noPort(q.Port)
		}
		return nil
	})
	if err != nil || over {
		return err
	}
	return m.commands.disconnectIf(ctx, api.Disconnect{Port: q.Port}, func(p spec.Port) error {
		return judge(plan.PortID{Switch: p.Switch, Name: p.Name})
	})
}
