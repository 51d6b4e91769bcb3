package captures

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
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

// capture is one client's capture.
type capture struct {
	run     source
	nameOf  func(slot uint16) (plan.PortID, error)
	emit    func(api.CaptureEvent) error
	uplinks map[plan.PortID]bool
	watch   *watched
	names   map[uint16]named
	counts  api.CaptureCounts
	counted time.Time
	offset  int64 // from the kernel's clock to the wall clock, ns
	// shown and late are the frames that the client was sent, and those that it was not as they were captured when one
	// of the ports was in another port group.
	shown, late uint64
}

// source is a capture in the kernel.
type source interface {
	Next(deadline time.Time) (dataplane.Captured, error)
	Counts() (selected, lost uint64, err error)
	Stop() error
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
			return c.left()
		}
		if time.Since(c.counted) >= countsEvery {
			if err := c.clock(); err != nil {
				return err
			}
			if err := c.count(); err != nil {
				return err
			}
		}
	}
	return c.finish(api.CaptureAgentEnds)
}

// left sends the frames that were captured before one of the ports was in another port group, and says so.
func (c *capture) left() error {
	if err := c.finish(""); err != nil { // why it ends follows, as an error
		return err
	}
	return c.watch.why(c.late)
}

// turn sends frames until the deadline, or until one captureTurn has passed without any.
func (c *capture) turn(deadline time.Time) error {
	for time.Now().Before(deadline) {
		f, err := c.run.Next(deadline)
		if err != nil {
			return err
		}
		if !c.watch.allows(int64(f.At)) {
			c.late++
			continue
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
	return c.tell(why, true)
}

// count sends the counts so far.
func (c *capture) count() error { return c.tell("", false) }

// tell sends the counts, at last those of a capture of which nothing more follows.
func (c *capture) tell(ended api.CaptureEnd, last bool) error {
	selected, lost, err := c.run.Counts()
	if err != nil {
		return err
	}
	if last { // what was not sent is lost, whatever the reason
		lost = selected - min(c.shown, selected)
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
	c.shown++
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
	id, err := c.nameOf(slot)
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
