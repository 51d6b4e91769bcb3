package agent

import (
	"errors"
	"os"
	"time"

	"heddle/internal/abi"
	"heddle/internal/agent/twins"
	"heddle/internal/agent/view"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
)

// repeatAfter is how long a port may stay at its limit, or be refused the same frames, before another event is
// published.
const repeatAfter = time.Minute

// tells reads the reports of the switch program and publishes them.
type tells struct {
	a      *Agent
	kernel *dataplane.Kernel
	stream *dataplane.Tells
	done   chan struct{}
	last   map[repeated]time.Time // in the loop only
	twins  twins.Ledger           // in the loop only
}

// repeated identifies reports that are not published again and again.
type repeated struct {
	port   plan.PortID
	kind   uint32
	reason abi.Reason
}

// followTells starts to read reports; the loop must run soon.
func (a *Agent) followTells(k *dataplane.Kernel) error {
	s, err := k.OpenTells()
	if err != nil {
		return err
	}
	t := &tells{a: a, kernel: k, stream: s, done: make(chan struct{}), last: map[repeated]time.Time{}}
	go t.run()
	a.closers = append(a.closers, t.close)
	return nil
}

func (t *tells) run() {
	defer close(t.done)
	for {
		batch, err := t.stream.Next()
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			t.a.log.Error("events of the switch program are no longer followed; restart the agent", "err", err)
			return
		}
		t.a.teaming.sawAwake(batch)
		if !t.a.Post(func() { t.publish(t.kernel.Name(batch)) }) {
			return
		}
	}
}

func (t *tells) close() error {
	err := t.stream.Close()
	<-t.done
	return err
}

func (t *tells) publish(list []dataplane.Told) {
	t.a.locating.Heard(list)
	for _, e := range list {
		switch e.Kind {
		case abi.TellSign, abi.TellProbe:
			t.a.loops.Heard(e)
			continue
		case abi.TellAwake:
			t.a.waiting.ToldAwake(e)
			continue
		case abi.TellRefused, abi.TellLimit:
			t.a.reporter.refused.Note(e)
		}
		t.a.moving.Learned(e)
		if t.isNews(e) {
			t.a.events.Publish(view.Told(e))
		}
	}
	t.a.loops.GoOn()
}

func (t *tells) isNews(e dataplane.Told) bool {
	if e.Kind != abi.TellLimit && e.Kind != abi.TellRefused {
		return e.Kind != abi.TellOutside || t.twins.Heard(e.Port, e.MAC, e.At)
	}
	key := repeated{e.Port, e.Kind, e.Reason}
	if last, ok := t.last[key]; ok && e.At.Sub(last) < repeatAfter {
		return false
	}
	if len(t.last) > 2*abi.MaxPorts { // ports that are gone; each has at most two entries
		clear(t.last)
	}
	t.last[key] = e.At
	return true
}
