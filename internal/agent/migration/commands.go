package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/agent/moves"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec/printable"
)

// Calls are what the commands need of the agent beside what the part needs. They are called in the loop, but for
// Disconnect.
type Calls struct {
	// Meant says by an error that the port of that name is another than the one that is meant; nil where it is that
	// one.
	Meant func(port string, of *api.PortIdentity) error
	// NoPort is the error for a port that does not exist.
	NoPort func(port string) error
	// Silence begins the wait of a port because somebody says that its guest has left.
	Silence func(*plan.Port) error
	// Disconnect ends a port unless judge says by an error why not, in the turn in which it ends.
	Disconnect func(ctx context.Context, port string, judge func(plan.PortID) error) error
}

// Commands answers the calls about moves.
type Commands struct {
	part  *Part
	calls Calls
}

// NewCommands returns what answers the calls about the moves of a part.
func NewCommands(p *Part, c Calls) Commands { return Commands{p, c} }

// copyTime bounds how long a caller waits for a copy to be confirmed.
const copyTime = 15 * time.Second

// PortMoves lists the moves that the host takes part in, and the last ones that are over, the oldest first.
func (m Commands) PortMoves(ctx context.Context, q api.PortMoveOf) (out []api.PortMove, err error) {
	out = []api.PortMove{}
	var last []api.PortMove // the last ones to and from here, behind those that were in their place for a while
	return out, m.part.host.Loop.Do(ctx, func() error {
		for _, t := range m.part.records.all() {
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
		if len(out) == 0 && q.Port != "" && m.planned(q.Port) == nil {
			return m.calls.NoPort(q.Port)
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
func (m Commands) CopyMovingPort(ctx context.Context, q api.PortMoveOf) (out *api.PortMove, err error) {
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	var after uint64
	var news chan struct{}
	err = m.part.host.Loop.Do(ctx, func() error {
		t, err := m.leavingBy(q)
		if err != nil {
			return err
		}
		after = t.Away.Sent
		if f := m.part.transfers[keyOf(t.VM, t.Adapter)]; f != nil {
			f.again()
		}
		return nil
	})
	for err == nil {
		done := false
		err = m.part.host.Loop.Do(ctx, func() error {
			t, err := m.leavingBy(q)
			if err != nil {
				return err
			}
			news, done = m.part.news, t.Away.Last || t.Away.Confirmed > after
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
func (m Commands) leavingBy(q api.PortMoveOf) (*state.Travel, error) {
	port := q.Port
	if err := m.calls.Meant(port, q.Of); err != nil {
		return nil, err
	}
	t := m.part.travelOf(port)
	switch {
	case m.planned(port) == nil:
		return nil, m.calls.NoPort(port)
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
func (m Commands) SilencePort(ctx context.Context, q api.PortMoveOf) (out *api.PortMove, err error) {
	out = &api.PortMove{Steps: []api.MoveStep{}}
	return out, m.part.host.Loop.Do(ctx, func() error {
		p := m.planned(q.Port)
		if p == nil {
			return m.calls.NoPort(q.Port)
		}
		if err := m.calls.Meant(q.Port, q.Of); err != nil {
			return err
		}
		if err := m.calls.Silence(p); err != nil {
			return err
		}
		if t := m.part.travelOf(q.Port); t != nil && t.Away != nil {
			*out = viewMove(t, t.Away.Track)
		}
		return nil
	})
}

// CancelMove removes a port that waits for its guest to arrive. What the source has stays as it is. One that is
// cancelled already is no error.
func (m Commands) CancelMove(ctx context.Context, q api.PortMoveOf) error {
	return m.ends(ctx, q, func(t *state.Travel) bool { return t.Here != nil && t.Here.Phase == moves.Cancelled },
		func(w *state.Wait) string {
			if w.Silent() && !w.Left {
				return ""
			}
			return fmt.Sprintf("port %s does not wait for its guest to arrive: there is nothing to cancel", q.Port)
		})
}

// ReleaseMovedPort removes a port whose guest has left. One that is released already is no error.
func (m Commands) ReleaseMovedPort(ctx context.Context, q api.PortMoveOf) error {
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
func (m Commands) ends(ctx context.Context, q api.PortMoveOf, ended func(*state.Travel) bool,
	why func(*state.Wait) string) error {
	over := false
	judge := func(id plan.PortID) error {
		if err := m.calls.Meant(q.Port, q.Of); err != nil {
			return err
		}
		var w *state.Wait
		if w = m.part.host.Wait(id); w == nil {
			w = &state.Wait{Wait: presence.Wait{Awake: true}}
		}
		if text := why(w); text != "" {
			return api.NewError(api.Invalid, text)
		}
		return nil
	}
	err := m.part.host.Loop.Do(ctx, func() error {
		p := m.planned(q.Port)
		if p != nil {
			return judge(p.ID) // of a port of the file, too
		}
		over = slices.ContainsFunc(m.part.records.all(), func(t *state.Travel) bool {
			return t.Port.Name == q.Port && isOf(t, q.Of) && ended(t)
		})
		if !over {
			return m.calls.NoPort(q.Port)
		}
		return nil
	})
	if err != nil || over {
		return err
	}
	return m.calls.Disconnect(ctx, q.Port, judge)
}

// planned is the port of that name, nil for none.
func (m Commands) planned(name string) *plan.Port {
	for _, sw := range m.part.host.Active().Plan.Switches {
		for _, p := range sw.Ports {
			if p.ID.Name == name {
				return p
			}
		}
	}
	return nil
}

// isOf reports whether a move is one of the adapter that is meant, nil for any.
func isOf(t *state.Travel, of *api.PortIdentity) bool {
	return of == nil || t.VM == strings.ToLower(of.VM) && t.Adapter == of.Adapter
}
