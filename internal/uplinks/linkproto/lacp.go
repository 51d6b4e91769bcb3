package linkproto

import (
	"log/slog"
	"maps"
	"reflect"
	"sync"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/lacp"
)

// LAG is a LAG on which LACP runs.
type LAG struct {
	ID      plan.PortID // switch and LAG
	Config  lacp.Config
	Devices map[string]Uplink // by the member's name; a missing member has no device
	// Saved is the state that the previous process saved, for a LAG that this process does not have yet.
	Saved lacp.Snapshot
}

// LACPReport is a LAG that changed.
type LACPReport struct {
	ID       plan.PortID
	Status   lacp.Status
	Snapshot lacp.Snapshot
	Devices  map[string]uint32 // index of each member's device
}

// LACP runs LACP on LAGs. Its methods may be called from any goroutine and do not wait for the network.
type LACP struct {
	engine *engine
	log    *slog.Logger
	report func([]LACPReport)

	mu      sync.Mutex
	want    []LAG
	running map[plan.PortID]*runningLAG
	reports map[plan.PortID]LACPReport // not yet reported
}

type runningLAG struct {
	lag     *lacp.LAG
	config  lacp.Config
	devices map[string]Uplink
	next    time.Time
	faults  map[string]problem.Problem // members on which no socket could be opened, and why
}

// StartLACP starts without LAGs. Changes are passed to report, one call at a time, from a goroutine of its own.
func StartLACP(open Opener, log *slog.Logger, report func([]LACPReport)) *LACP {
	l := &LACP{engine: newEngine(newWires(open, log, hearsLACP())), log: log, report: report,
		running: map[plan.PortID]*runningLAG{}, reports: map[plan.PortID]LACPReport{}}
	l.engine.start(l, l.deliver)
	return l
}

// Want sets the LAGs. A LAG that stays keeps its state; one that is removed says goodbye.
func (l *LACP) Want(lags []LAG) {
	l.mu.Lock()
	l.want = lags
	l.mu.Unlock()
	signal(l.engine.poked)
}

// Own sets the addresses whose frames are ignored.
func (l *LACP) Own(own Own) { l.engine.wires.own.Store(&own) }

// Status returns the state of a LAG; ok is false if LACP has not started on it yet.
func (l *LACP) Status(id plan.PortID) (s lacp.Status, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.running[id]
	if !ok {
		return lacp.Status{}, false
	}
	return r.status(), true
}

// Close ends the goroutines. Each member sends once more, so that its partner waits a whole timeout for the next
// process.
func (l *LACP) Close() error {
	l.engine.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, r := range l.running {
		l.send(r, r.lag.Refresh(now).Send)
	}
	return l.engine.wires.close()
}

func (l *LACP) deliver() {
	l.mu.Lock()
	var out []LACPReport
	for _, r := range l.reports {
		out = append(out, r)
	}
	clear(l.reports)
	l.mu.Unlock()
	l.report(out)
}

// status returns the LAG's status, including members whose socket could not be opened.
func (r *runningLAG) status() lacp.Status {
	s := r.lag.Status()
	for i := range s.Members {
		if why, ok := r.faults[s.Members[i].Name]; ok {
			s.Members[i].Reason = why
		}
	}
	return s
}

// after carries out the effects of an event.
func (l *LACP) after(id plan.PortID, r *runningLAG, fx lacp.Effects) {
	l.send(r, fx.Send)
	r.next = fx.Next
	if fx.Changed {
		report := LACPReport{ID: id, Status: r.status(), Snapshot: r.lag.Snapshot(), Devices: map[string]uint32{}}
		for name, u := range r.devices {
			report.Devices[name] = u.Ifindex
		}
		l.reports[id] = report
		signal(l.engine.ripe)
	}
}

// send sends frames. A frame that cannot be sent counts as lost: the protocol repeats itself.
func (l *LACP) send(r *runningLAG, frames []lacp.Frame) {
	for _, f := range frames {
		if u, ok := r.devices[f.Member]; ok {
			if err := l.engine.wires.send(u, lacp.Destination, f.Payload); err != nil {
				l.log.Debug("LACPDU not sent", "uplink", f.Member, "err", err)
			}
		}
	}
}

// due returns when the first LAG must act.
func (l *LACP) due() time.Time {
	var next time.Time
	for _, r := range l.running {
		if !r.next.IsZero() && (next.IsZero() || r.next.Before(next)) {
			next = r.next
		}
	}
	return next
}

func (l *LACP) tick(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, r := range l.running {
		if !r.next.IsZero() && !r.next.After(now) {
			l.after(id, r, r.lag.Step(now, lacp.Tick{}))
		}
	}
	return l.due()
}

func (l *LACP) frame(now time.Time, h heard) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, r := range l.running {
		for member, u := range r.devices {
			if u.Ifindex == h.ifindex {
				if e := event(member, h); e != nil && (!h.own || r.isLoop(e)) {
					l.after(id, r, r.lag.Step(now, e))
				}
				return l.due()
			}
		}
	}
	return l.due()
}

// event converts a frame to an event; nil if it is to be ignored.
func event(member string, h heard) lacp.Event {
	p, m, err := lacp.Decode(h.payload)
	switch {
	case err != nil:
		return lacp.Bad{Member: member}
	case p != nil:
		return lacp.Received{Member: member, PDU: *p}
	case m != nil:
		return lacp.Asked{Member: member, Marker: *m}
	}
	return nil
}

// isLoop reports whether this LAG sent the PDU itself. Of its own frames this host accepts only these: if there is no
// partner, the LAG then reports the loop as the reason.
func (r *runningLAG) isLoop(e lacp.Event) bool {
	got, ok := e.(lacp.Received)
	return ok && got.PDU.Actor.System == r.config.System
}

// adopt replaces the LAGs by the wanted ones.
func (l *LACP) adopt(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	sockets, keep := map[uint32]bool{}, map[plan.PortID]bool{}
	for _, w := range l.want {
		keep[w.ID] = true
		for _, u := range w.Devices {
			sockets[u.Ifindex] = true
		}
	}
	for id, r := range maps.All(l.running) {
		if !keep[id] {
			l.send(r, r.lag.Goodbye())
			delete(l.running, id)
			delete(l.reports, id)
		}
	}
	for _, w := range l.want {
		l.adoptLAG(now, w)
	}
	if err := l.engine.wires.keep(sockets); err != nil {
		l.log.Warn("close LACP sockets", "err", err)
	}
	return l.due()
}

func (l *LACP) adoptLAG(now time.Time, w LAG) {
	r, known := l.running[w.ID]
	if !known {
		r = &runningLAG{lag: lacp.New(w.Config), config: w.Config}
		l.running[w.ID] = r
	}
	before, faultsBefore := r.devices, r.faults
	l.openAll(r, w.Devices)
	switch {
	case !known:
		fx := r.lag.Restore(now, w.Saved)
		fx.Changed = true
		l.after(w.ID, r, fx)
	case !reflect.DeepEqual(r.config, w.Config):
		fx := r.lag.Configure(now, w.Config)
		r.config = w.Config
		// A member that leaves says goodbye on its previous device.
		last := maps.Clone(before)
		maps.Copy(last, r.devices)
		l.send(&runningLAG{devices: last}, fx.Send)
		fx.Send = nil
		l.after(w.ID, r, fx)
	}
	for _, m := range w.Config.Members {
		u, ok := r.devices[m.Name]
		if was, had := before[m.Name]; known && had && ok && was.Ifindex != u.Ifindex { // another device: another link
			l.after(w.ID, r, r.lag.Step(now, lacp.Carrier{Member: m.Name}))
		}
		l.after(w.ID, r, r.lag.Step(now, lacp.Carrier{Member: m.Name, Up: ok && u.Up}))
	}
	if !maps.EqualFunc(r.faults, faultsBefore, problem.Problem.Same) {
		l.after(w.ID, r, lacp.Effects{Changed: true, Next: r.next})
	}
}

// openAll opens the members' sockets; a member whose socket fails is treated as if it had no device.
func (l *LACP) openAll(r *runningLAG, devices map[string]Uplink) {
	r.devices, r.faults = maps.Clone(devices), map[string]problem.Problem{}
	for name, u := range devices {
		if err := l.engine.wires.use(u.Ifindex); err != nil {
			r.faults[name] = problem.Failed(problem.LACPNoSocket, "", err)
			delete(r.devices, name)
		}
	}
	if len(r.faults) > 0 {
		l.log.Warn("no LACP on some members", "faults", r.faults)
	}
}
