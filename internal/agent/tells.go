package agent

import (
	"errors"
	"fmt"
	"os"
	"time"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/event"
	"heddle/internal/plan"
)

// repeatAfter is how long a port may go on being at its limit, or being refused the same, before that is an event again.
const repeatAfter = time.Minute

// tells follows what the switch program tells and publishes it.
type tells struct {
	a      *Agent
	kernel *dataplane.Kernel
	stream *dataplane.Tells
	done   chan struct{}
	last   map[repeated]time.Time // in the loop only
}

// repeated is what is not told over and over.
type repeated struct {
	port   plan.PortID
	kind   uint32
	reason abi.Reason
}

// followTells starts to read; the loop must run soon.
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
		if !t.a.post(func() { t.publish(t.kernel.Name(batch)) }) {
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
	for _, e := range list {
		if t.isNews(e) {
			t.a.events.Publish(toldEvent(e))
		}
	}
}

func (t *tells) isNews(e dataplane.Told) bool {
	if e.Kind != abi.TellLimit && e.Kind != abi.TellRefused {
		return true
	}
	key := repeated{e.Port, e.Kind, e.Reason}
	if last, ok := t.last[key]; ok && e.At.Sub(last) < repeatAfter {
		return false
	}
	if len(t.last) > 2*abi.MaxPorts { // ports that are gone; each has two entries at most
		clear(t.last)
	}
	t.last[key] = e.At
	return true
}

// toldEvent is what was told as an event.
func toldEvent(e dataplane.Told) event.Event {
	out := event.Event{Time: e.At, Switch: e.Port.Switch, Port: e.Port.Name, MAC: e.MAC.String(),
		VLAN: vlanText(dataplane.MACEntry{VLAN: e.VLAN, AD: e.AD})}
	where := "VLAN " + out.VLAN
	if e.VLAN == 0 {
		where = "the untagged segment"
	}
	switch e.Kind {
	case abi.TellLearned:
		out.Kind, out.Text = event.Learned, fmt.Sprintf("%s learned in %s on port %s", out.MAC, where, out.Port)
	case abi.TellMoved:
		out.Kind, out.From, out.To = event.Moved, e.Was.Name, out.Port
		out.Text = fmt.Sprintf("%s in %s moved from port %s to port %s", out.MAC, where, orElse(e.Was.Name, "one that is gone"), out.Port)
	case abi.TellLimit:
		out.Kind = event.LimitReached
		out.Text = fmt.Sprintf("port %s holds as many learned MACs as it may; %s in %s is not learned", out.Port, out.MAC, where)
	default:
		out.Kind, out.VLAN = event.Violation, ""
		out.Text = fmt.Sprintf("port %s sent a frame from %s that its policy refuses: %s", out.Port, out.MAC, e.Reason)
	}
	if e.Untold > 0 {
		out.Text += fmt.Sprintf(" (%d events of this port before it were too many to be told)", e.Untold)
	}
	return out
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
