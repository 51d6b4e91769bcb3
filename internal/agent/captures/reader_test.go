package captures

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// ring is a capture in the kernel whose frames are given by a test.
type ring struct {
	frames   chan dataplane.Captured
	selected atomic.Uint64
	stopped  bool
}

func (r *ring) Next(deadline time.Time) (dataplane.Captured, error) {
	select {
	case f := <-r.frames:
		return f, nil
	case <-time.After(time.Until(deadline)):
		return dataplane.Captured{}, os.ErrDeadlineExceeded
	}
}

func (r *ring) Counts() (selected, lost uint64, err error) { return r.selected.Load(), 0, nil }
func (r *ring) Stop() error                                { r.stopped = true; return nil }

// put has a frame of that length captured at an instant.
func (r *ring) put(at int64, length uint32) {
	f := dataplane.Captured{}
	f.At, f.Length = uint64(at), length
	r.selected.Add(1)
	r.frames <- f
}

// captured is a capture by way of a controller, with what its client was sent.
type captured struct {
	cs     *Captures
	ring   *ring
	end    chan struct{}
	shown  []uint32 // lengths of frames
	counts api.CaptureCounts
	err    chan error
}

func captures(t *testing.T) *captured {
	t.Helper()
	k := &captured{cs: New(Host{}), ring: &ring{frames: make(chan dataplane.Captured, 64)},
		end: make(chan struct{}), err: make(chan error, 1)}
	w := k.cs.watch(planOf("web"), &dataplane.Selection{Ports: []plan.PortID{{Switch: "lab", Name: "vm"}}})
	c := &capture{run: k.ring, watch: w, names: map[uint16]named{}, emit: func(e api.CaptureEvent) error {
		switch {
		case e.Frame != nil:
			k.shown = append(k.shown, e.Frame.Length)
		case e.Counts != nil:
			k.counts = *e.Counts
		}
		return nil
	}}
	go func() { k.err <- c.follow(context.Background(), k.end) }()
	return k
}

// now is the instant in the kernel's clock.
func now(t *testing.T) int64 {
	t.Helper()
	at, err := dataplane.Monotonic()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Frames that were captured before a port went to another port group reach the client although it reads them later;
// those after it do not, whenever they are read, and are counted.
func TestS117_FramesAreOfThePortGroupThatTheCaptureBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := captures(t)
		k.ring.put(now(t), 1)
		synctest.Wait()
		before := now(t)
		if err := k.cs.Activating(planOf("db")); err != nil {
			t.Fatal(err)
		}
		k.ring.put(before, 2)   // captured before, and read after
		k.ring.put(now(t), 100) // captured after
		synctest.Wait()
		if !slices.Equal(k.shown, []uint32{1, 2}) {
			t.Errorf("while the plan becomes active, frames %d are shown", k.shown)
		}
		k.cs.Activated(true)
		k.ring.put(now(t), 101)
		k.ring.put(before, 3) // another CPU's, which came to the ring later
		err := <-k.err
		if err == nil || !strings.Contains(err.Error(), "port vm is in port group db now") ||
			!strings.Contains(err.Error(), "2 frames that were captured since are not shown") {
			t.Error(err)
		}
		want := api.CaptureCounts{Selected: 5, Lost: 2}
		if !slices.Equal(k.shown, []uint32{1, 2, 3}) || k.counts != want || !k.ring.stopped {
			t.Errorf("frames %d, %+v, stopped %v", k.shown, k.counts, k.ring.stopped)
		}
	})
}

// A plan that does not become active ends no capture, and the frames that waited for it follow.
func TestS117_AFailedChangeEndsNoCapture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := captures(t)
		if err := k.cs.Activating(planOf("db")); err != nil {
			t.Fatal(err)
		}
		k.ring.put(now(t), 1)
		synctest.Wait()
		if len(k.shown) != 0 {
			t.Errorf("frames %d are shown before it is known", k.shown)
		}
		k.cs.Activated(false)
		k.ring.put(now(t), 2)
		synctest.Wait()
		close(k.end)
		if err := <-k.err; err != nil {
			t.Error(err)
		}
		want := api.CaptureCounts{Selected: 2, Ended: api.CaptureAsked}
		if !slices.Equal(k.shown, []uint32{1, 2}) || k.counts != want {
			t.Errorf("frames %d, %+v", k.shown, k.counts)
		}
	})
}
