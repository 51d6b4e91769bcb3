package captures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// Host is what captures need from their agent.
type Host struct {
	Log *slog.Logger
	// Source captures in the kernel.
	Source *dataplane.Captures
	// Look calls f, in the loop, with the active plan.
	Look func(ctx context.Context, f func(*plan.Plan) error) error
	// Applied returns, in the loop, the plan that the kernel has: another one than Look gives while that could not be
	// made active.
	Applied func() *plan.Plan
	// Ends returns the ends of a switch's tunnel at present.
	Ends func(ctx context.Context, sw string) (Ends, error)
	// InLoop runs f in the loop. After the loop has ended it does nothing: closing the kernel's objects has the same
	// effect as f.
	InLoop func(f func() error) error
}

// Captures are the captures that are running, by the number with which a client ends them.
type Captures struct {
	host Host
	mu   sync.Mutex
	last uint64
	end  map[uint64]chan struct{}
	// watched are the ports of those that came by way of a controller.
	watched []*watched
}

// New returns a Captures without running captures.
func New(h Host) *Captures { return &Captures{host: h, end: map[uint64]chan struct{}{}} }

func (cs *Captures) begin() (id uint64, end <-chan struct{}) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.last++
	ch := make(chan struct{})
	cs.end[cs.last] = ch
	return cs.last, ch
}

// over closes the capture's channel, once; it returns false if there is no such capture.
func (cs *Captures) over(id uint64) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	ch, ok := cs.end[id]
	if ok {
		close(ch)
		delete(cs.end, id)
	}
	return ok
}

// EndCapture ends a capture; frames that the kernel has captured until then still reach its client.
func (cs *Captures) EndCapture(_ context.Context, q api.EndCapture) error {
	if !cs.over(q.ID) {
		return api.NewError(api.NotFound, fmt.Sprintf("there is no capture %d", q.ID))
	}
	return nil
}

// Capture captures for one client. It runs beside the loop, and needs the loop only at the instant when the devices get
// another program.
func (cs *Captures) Capture(ctx context.Context, q api.Capture, emit func(api.CaptureEvent) error) error {
	if q.Outer {
		return cs.captureOuter(ctx, q, emit)
	}
	var s dataplane.Selection
	var uplinks map[plan.PortID]bool
	var watch *watched // nil for somebody on the host
	err := cs.host.Look(ctx, func(p *plan.Plan) (err error) {
		uplinks = uplinksOf(p)
		s, err = selection(p, q)
		if err == nil && api.CameByController(ctx) {
			watch, err = cs.mayWatch(ctx, p, &s)
		}
		return err
	})
	if err != nil {
		return err
	}
	if watch != nil {
		defer cs.unwatch(watch)
	}
	run, err := cs.host.Source.Start(s, cs.host.InLoop)
	if errors.Is(err, dataplane.ErrTooManyCaptures) {
		return api.NewError(api.Invalid, err.Error()+": end one of them")
	}
	if err != nil {
		return err
	}
	id, end := cs.begin()
	defer cs.over(id)
	cs.host.Log.Info("capture begins", "capture", id, "ports", len(s.Ports), "segments", len(s.Segments), "filter",
		len(s.Filter))
	c := &capture{run: run, nameOf: cs.host.Source.Name, emit: emit, uplinks: uplinks, names: map[uint16]named{},
		watch: watch}
	err = emit(api.CaptureEvent{Started: &api.CaptureStarted{ID: id}})
	if err == nil {
		err = c.follow(ctx, end)
	}
	cs.host.Log.Info("capture ends", "capture", id, "selected", c.counts.Selected, "lost", c.counts.Lost)
	if errClose := run.Close(); errClose != nil {
		cs.host.Log.Error("end a capture", "err", errClose)
	}
	return err
}

func uplinksOf(p *plan.Plan) map[plan.PortID]bool {
	all := map[plan.PortID]bool{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			all[u.ID] = true
		}
		if sw.Tunnel != nil {
			all[sw.Tunnel.ID] = true
		}
	}
	return all
}
