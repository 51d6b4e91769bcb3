package captures

import (
	"fmt"
	"slices"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// watched are the port groups of the ports that somebody captures who came by way of a controller: their right is that
// of the port groups, which the controller judged when the capture began.
type watched struct {
	groups map[plan.PortID]string
	// left is closed when a port is in another one; port and group say which, and where.
	left  chan struct{}
	port  plan.PortID
	group string
}

// watch begins to watch the ports of a selection, in the loop. It ends with unwatch.
func (cs *Captures) watch(p *plan.Plan, s *dataplane.Selection) *watched {
	w := &watched{groups: map[plan.PortID]string{}, left: make(chan struct{})}
	for _, id := range s.Ports {
		if port := p.Port(id); port != nil {
			w.groups[id] = port.PortGroup
		}
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.watched = append(cs.watched, w)
	return w
}

func (cs *Captures) unwatch(w *watched) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.watched = slices.DeleteFunc(cs.watched, func(o *watched) bool { return o == w })
}

// Planned ends the captures by way of a controller whose ports are in other port groups by that plan. It is called in
// the loop, for every plan that is active.
func (cs *Captures) Planned(p *plan.Plan) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, w := range cs.watched {
		w.compare(p)
	}
}

func (w *watched) compare(p *plan.Plan) {
	if w.over() {
		return
	}
	for id, group := range w.groups {
		if port := p.Port(id); port != nil && port.PortGroup != group {
			w.port, w.group = id, port.PortGroup
			close(w.left)
			return
		}
	}
}

// over reports whether a port is in another port group; nobody is watched where w is nil.
func (w *watched) over() bool {
	if w == nil {
		return false
	}
	select {
	case <-w.left:
		return true
	default:
		return false
	}
}

// why is the error of a capture that is over.
func (w *watched) why() error {
	return api.NewError(api.Invalid, fmt.Sprintf("port %s is in port group %s now, so that this capture ends: begin "+
		"it again if you may capture there", w.port.Name, w.group))
}
