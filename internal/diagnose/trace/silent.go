package trace

import (
	"fmt"
	"time"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
)

// Silence is what is known about a port that is silent because its guest runs elsewhere (S99).
type Silence struct {
	// Why says what the port waits for, and by which evidence that is known.
	Why   string
	Since time.Time
	// Host is the host where the guest runs or comes from, "" if that is not known.
	Host string
	// Arrived: that host has said that the guest runs there.
	Arrived bool
}

// silent explains that a port gets no copy because its guest runs elsewhere; nil if the port is not silent.
func (s *subject) silent(at *place) *diagnose.Cause {
	f, connected := s.Facts[at.id]
	if !connected || !f.Waits() || s.Awake[at.id] >= f.Wait {
		return nil
	}
	why := abi.ReasonReceiverWaiting
	if f.Left {
		why = abi.ReasonGuestElsewhere
	}
	c := s.explain(at, why)
	return &c
}

// waits completes the cause of a copy that a silent port refuses: who is active instead, and by which evidence.
func (s *subject) waits(c *diagnose.Cause, at *place) {
	c.From, c.Command = "the guest's migration", s.command(at.id, "port activate")
	c.Why = fmt.Sprintf("port %s is silent: its guest runs elsewhere", at.id.Name)
	known, ok := s.Silent[at.id]
	if !ok {
		return
	}
	c.Why = fmt.Sprintf("port %s is silent since %s: %s", at.id.Name, known.Since.Format(time.TimeOnly), known.Why)
	switch {
	case known.Host == "":
	case s.Facts[at.id].Left && !known.Arrived:
		c.Why += "; it goes to host " + known.Host + ", which has not said yet that it runs there"
	case s.Facts[at.id].Left:
		c.Why += "; it runs on host " + known.Host
	default:
		c.Why += "; it comes from host " + known.Host
	}
}
