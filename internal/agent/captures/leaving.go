package captures

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"heddle/internal/api"
	"heddle/internal/api/lookscope"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// watched are the port groups of the ports that somebody captures who came by way of a controller: their right is that
// of the port groups, which the controller judged when the capture began.
type watched struct {
	groups map[plan.PortID]string
	// leaves is nil until a port is in another port group, or is about to be.
	leaves atomic.Pointer[leaving]
}

// leaving is a plan that has a port in another port group.
type leaving struct {
	port  plan.PortID
	group string
	// from is an instant of CLOCK_MONOTONIC before the plan was active, in nanoseconds: what was captured until then is
	// of the port group that the capture began with.
	from int64
	// known is closed once it is known whether the plan is active, which active says then.
	known  chan struct{}
	active bool
}

// mayWatch watches the ports of a selection, in the loop, unless one of them is in another port group than the
// controller judged: by the plan that is wanted, or by the one that the kernel has still.
func (cs *Captures) mayWatch(ctx context.Context, p *plan.Plan, s *dataplane.Selection) (*watched, error) {
	w := cs.watch(p, s)
	if l := w.elsewhere(ctx, cs.host.Applied()); l != nil {
		cs.unwatch(w)
		return nil, l.notBegun()
	}
	return w, nil
}

// watch begins to watch the ports of a selection, in the loop. It ends with unwatch.
func (cs *Captures) watch(p *plan.Plan, s *dataplane.Selection) *watched {
	w := watchedOf(p, s)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.watched = append(cs.watched, w)
	return w
}

func watchedOf(p *plan.Plan, s *dataplane.Selection) *watched {
	w := &watched{groups: map[plan.PortID]string{}}
	for _, id := range s.Ports {
		if port := p.Port(id); port != nil {
			w.groups[id] = port.PortGroup
		}
	}
	return w
}

func (cs *Captures) unwatch(w *watched) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.watched = slices.DeleteFunc(cs.watched, func(o *watched) bool { return o == w })
}

// Activating notes, in the loop, for captures by way of a controller whose ports are in other port groups by a plan
// that becomes active now, which frames were captured before it. Until Activated says whether it is active, no later
// frame of them is shown.
func (cs *Captures) Activating(next *plan.Plan) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, w := range cs.watched {
		if err := w.activating(next); err != nil {
			return err
		}
	}
	return nil
}

// Activated ends, in the loop, the captures whose ports are in other port groups now, or has them go on if the plan
// did not become active.
func (cs *Captures) Activated(done bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, w := range cs.watched {
		w.activated(done)
	}
}

func (w *watched) activating(next *plan.Plan) error {
	if w.leaves.Load() != nil {
		return nil
	}
	l := w.compare(next)
	if l == nil {
		return nil
	}
	if err := l.begins(); err != nil {
		return err
	}
	w.leaves.Store(l)
	return nil
}

func (w *watched) activated(done bool) {
	if l := w.leaves.Load(); l != nil && l.decided(done) && !done {
		w.leaves.Store(nil)
	}
}

// compare returns that a port is in another port group by a plan; nil if none is.
func (w *watched) compare(p *plan.Plan) *leaving {
	for id, group := range w.groups {
		if port := p.Port(id); port != nil && port.PortGroup != group {
			return &leaving{port: id, group: port.PortGroup, known: make(chan struct{})}
		}
	}
	return nil
}

// elsewhere returns that a port is in another port group by the plan that the kernel has, or than the controller
// judged; nil if none is.
func (w *watched) elsewhere(ctx context.Context, applied *plan.Plan) *leaving {
	if l := w.compare(applied); l != nil {
		return l
	}
	groups, some := lookscope.Of(ctx)
	for id, group := range w.groups {
		if some && !slices.Contains(groups, lookscope.Group{Switch: id.Switch, PortGroup: group}) {
			return &leaving{port: id, group: group}
		}
	}
	return nil
}

// allows reports whether a frame that was captured at that instant is of the port groups that the capture began with.
// While a plan becomes active that has another one, it waits for that; nobody is watched where w is nil.
func (w *watched) allows(at int64) bool {
	if w == nil {
		return true
	}
	l := w.leaves.Load()
	return l == nil || l.allows(at)
}

// over reports whether a port is in another port group.
func (w *watched) over() bool {
	if w == nil {
		return false
	}
	l := w.leaves.Load()
	return l != nil && l.over()
}

// why is the error of a capture that is over, of which so many frames were captured too late.
func (w *watched) why(late uint64) error { return w.leaves.Load().ended(late) }

// begins notes the instant right before the plan is active.
func (l *leaving) begins() (err error) {
	l.from, err = dataplane.Monotonic()
	return err
}

// settled reports whether it is known if the plan is active.
func (l *leaving) settled() bool {
	select {
	case <-l.known:
		return true
	default:
		return false
	}
}

// decided takes in whether the plan is active; first is false where that was known.
func (l *leaving) decided(active bool) (first bool) {
	if l.settled() {
		return false
	}
	l.active = active
	close(l.known)
	return true
}

func (l *leaving) allows(at int64) bool {
	if at < l.from {
		return true
	}
	<-l.known
	return !l.active
}

func (l *leaving) over() bool { return l.settled() && l.active }

func (l *leaving) ended(late uint64) error {
	text := fmt.Sprintf("port %s is in port group %s now, so that this capture ends: begin it again if you may "+
		"capture there", l.port.Name, l.group)
	switch {
	case late == 1:
		text += "; one frame that was captured since is not shown"
	case late > 1:
		text += fmt.Sprintf("; %d frames that were captured since are not shown", late)
	}
	return api.NewError(api.Invalid, text)
}

func (l *leaving) notBegun() error {
	return api.NewError(api.Invalid, fmt.Sprintf("port %s goes to another port group, and is in %s now: ask again, if "+
		"you may capture there", l.port.Name, l.group))
}
