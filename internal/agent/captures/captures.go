package captures

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// Times of a capture.
const (
	// countsEvery is how often a client is sent the number of frames it has lost.
	countsEvery = time.Second
	// nameFor is how long a port's name is used before it is looked up again: slots are reused by other ports.
	nameFor = time.Second
	// captureTurn bounds one wait for frames.
	captureTurn = 100 * time.Millisecond
	// leftOver bounds how long frames are read after the end of a capture if the ring still fills as fast as it is
	// read.
	leftOver = 2 * time.Second
)

// Host is what captures need from their agent.
type Host struct {
	Log *slog.Logger
	// Source captures in the kernel.
	Source *dataplane.Captures
	// Look calls f, in the loop, with the active plan.
	Look func(ctx context.Context, f func(*plan.Plan) error) error
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
			watch = cs.watch(p, &s)
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
	c := &capture{run: run, of: cs.host.Source, emit: emit, uplinks: uplinks, names: map[uint16]named{}, watch: watch}
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

// capture is one client's capture.
type capture struct {
	run     *dataplane.Capture
	of      *dataplane.Captures
	emit    func(api.CaptureEvent) error
	uplinks map[plan.PortID]bool
	watch   *watched
	names   map[uint16]named
	counts  api.CaptureCounts
	counted time.Time
	offset  int64 // from the kernel's clock to the wall clock, ns
}

// named is the last known name of a slot, and when it was looked up.
type named struct {
	id plan.PortID
	at time.Time
}

// follow sends the client the captured frames until the capture is ended, then the remaining frames, and the counts
// last.
func (c *capture) follow(ctx context.Context, end <-chan struct{}) error {
	if err := c.clock(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		select {
		case <-end:
			return c.finish(api.CaptureAsked)
		default:
		}
		if err := c.turn(time.Now().Add(captureTurn)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if c.watch.over() {
			return c.watch.why()
		}
		if time.Since(c.counted) >= countsEvery {
			if err := c.clock(); err != nil {
				return err
			}
			if err := c.count(""); err != nil {
				return err
			}
		}
	}
	return c.finish(api.CaptureAgentEnds)
}

// turn sends frames until the deadline, or until one captureTurn has passed without any.
func (c *capture) turn(deadline time.Time) error {
	for time.Now().Before(deadline) {
		f, err := c.run.Next(deadline)
		if err != nil {
			return err
		}
		if c.watch.over() { // it may be of the other port group
			return c.watch.why()
		}
		if err := c.frame(f); err != nil {
			return err
		}
	}
	return nil
}

func (c *capture) finish(why api.CaptureEnd) error {
	if err := c.run.Stop(); err != nil {
		return err
	}
	// Runs of the program that had already selected a frame have written it to the ring in the meantime.
	for until := time.Now().Add(leftOver); time.Now().Before(until); {
		err := c.turn(time.Now().Add(captureTurn))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return err
		}
	}
	return c.count(why)
}

func (c *capture) count(ended api.CaptureEnd) error {
	selected, lost, err := c.run.Counts()
	if err != nil {
		return err
	}
	c.counts, c.counted = api.CaptureCounts{Selected: selected, Lost: lost, Ended: ended}, time.Now()
	return c.emit(api.CaptureEvent{Counts: &c.counts})
}

// clockTries and clockGap bound how often the clocks are read until nothing came between the two readings.
const (
	clockTries = 10
	clockGap   = 20 * time.Microsecond
)

// clock measures the offset between the kernel's clock and the wall clock, which is set now and then. Frames of several
// hosts are put in order by it, so that a reading counts between which the process did not have to wait.
func (c *capture) clock() error {
	best := time.Duration(math.MaxInt64)
	for range clockTries {
		var before, after unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
		wall := time.Now().UnixNano()
		if err = errors.Join(err, unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)); err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		gap := after.Nano() - before.Nano()
		if time.Duration(gap) < best {
			best, c.offset = time.Duration(gap), wall-before.Nano()-gap/2
		}
		if best <= clockGap {
			break
		}
	}
	return nil
}

func (c *capture) frame(f dataplane.Captured) error {
	for _, slot := range []uint16{f.Slot, f.Other} {
		if slot != 0 {
			if err := c.name(slot); err != nil {
				return err
			}
		}
	}
	shown := view.Captured(f, c.offset)
	return c.emit(api.CaptureEvent{Frame: &shown})
}

// name sends the client the name of a slot if the client does not know it.
func (c *capture) name(slot uint16) error {
	have, ok := c.names[slot]
	now := time.Now()
	if ok && now.Sub(have.at) < nameFor {
		return nil
	}
	id, err := c.of.Name(slot)
	if err != nil {
		return err
	}
	if id == (plan.PortID{}) {
		id = have.id // the port is gone since it sent the frame
	}
	c.names[slot] = named{id, now}
	if ok && have.id == id {
		return nil
	}
	return c.emit(api.CaptureEvent{Port: &api.CapturePort{Number: slot, Switch: id.Switch, Name: id.Name,
		Uplink: c.uplinks[id]}})
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
