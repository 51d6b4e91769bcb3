package linkstates

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/host/guestlinks"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
)

// Host is what the part needs of its host.
type Host struct {
	Log *slog.Logger
	// Ask has the reconcile follow what the part wants by now.
	Ask func()
	// Post runs a function in the loop, unless done is closed first.
	Post func(done <-chan struct{}, f func())
}

// Links says which ports' links are down because libvirt says so. Only the agent's loop uses it.
type Links struct {
	watcher *guestlinks.Watcher
	down    map[string]guestlinks.Domain // by UUID; nobody changes it
	// made is the plan that is being made, then that is active: a port whose link is down never comes up first.
	made  *plan.Plan
	begun bool
}

// New returns the part; dir is the directory in which libvirt is while it runs.
func New(h Host, dir string) *Links {
	l := &Links{}
	tell := func(ctx context.Context, down map[string]guestlinks.Domain) {
		h.Post(ctx.Done(), func() {
			l.down = down
			h.Ask()
		})
	}
	l.watcher = guestlinks.Watch(filepath.Join(dir, "qemu"), tell, func(err error) {
		h.Log.Warn("follow the links of libvirt's domains", "err", err)
	})
	return l
}

// Close ends following.
func (l *Links) Close() error { return l.watcher.Close() }

// Prepare takes in the plan that is being made. The first time that a port is of one of libvirt's domains, it reads
// which links are down: after a start of the agent the port must not come up until that is read.
func (l *Links) Prepare(now *active.Draft) {
	l.made = now.Plan
	if !l.begun && ofDomains(now.Plan) {
		l.begun, l.down = true, l.watcher.First()
	}
}

// Settled has libvirt followed while a port is of one of its domains: a host without such ports watches nothing.
func (l *Links) Settled(now *active.Value) { l.watcher.Want(ofDomains(now.Plan)) }

// ofDomains reports whether a port is of a domain of libvirt's.
func ofDomains(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Switches, func(sw *plan.Switch) bool {
		return slices.ContainsFunc(sw.Ports, func(p *plan.Port) bool { return p.Domain != "" })
	})
}

// Want returns the ports whose links are down. A port is known by the UUID of its domain and by its device, which the
// domain has.
func (l *Links) Want(*active.Value) (w active.Want) {
	if len(l.down) == 0 || l.made == nil {
		return w
	}
	w.Down = map[plan.PortID]problem.Problem{}
	for _, sw := range l.made.Switches {
		for _, p := range sw.Ports {
			d, is := l.down[p.Domain]
			if is && p.Domain != "" && slices.Contains(d.Down, p.Device) {
				w.Down[p.ID] = problem.Problem{Code: problem.LinkSetDown, Device: p.Device, Peer: d.Name}
			}
		}
	}
	return w
}
