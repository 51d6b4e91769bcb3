package uplinks

import (
	"fmt"
	"sync"
	"time"

	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/storms"
)

// Storms says at which uplinks broadcasts arrive as in a storm: a loop of the physical network, or a host that sends
// without end (S169). Guests lose frames then, and nothing else of the switch is wrong. Nothing is blocked: the uplink
// of a storm still carries what arrives.
type Storms struct {
	host  Host
	meter UplinkMeter
	watch storms.Watch // in the loop only
	done  chan struct{}
	ticks sync.WaitGroup
}

// UplinkMeter reads counters of uplinks; it is used only in the loop.
type UplinkMeter interface {
	// Uplinks returns the counters of all uplinks that have some.
	Uplinks() (map[plan.PortID]observe.Counters, error)
	// Complain reports a failure once.
	Complain(what string, err error)
}

// stormLook is how often counters are read.
const stormLook = time.Second

// FollowStorms starts to look.
func FollowStorms(h Host, m UplinkMeter) *Storms {
	s := &Storms{host: h, meter: m, done: make(chan struct{})}
	s.ticks.Go(func() { h.every(stormLook, s.done, s.look) })
	return s
}

// Close ends the looking.
func (s *Storms) Close() error {
	close(s.done)
	s.ticks.Wait()
	return nil
}

// Settled has nothing to do: which uplinks there are is seen at the next look.
func (s *Storms) Settled(InForce) {}

// Why returns the storm at an uplink as a problem; none if there is none.
func (s *Storms) Why(uplink plan.PortID) problem.Problem {
	storm, ok := s.watch.Storm(uplink)
	if !ok {
		return problem.Problem{}
	}
	p := problem.Problem{Code: problem.StormOutside, Have: storm.Rate, Since: storm.Since}
	if storm.Loop() {
		p.Want = storm.Own
	}
	return p
}

func (s *Storms) look(now time.Time) {
	counters, err := s.meter.Uplinks()
	if err != nil {
		s.meter.Complain("look for storms at the uplinks", err)
		return
	}
	samples := make(map[plan.PortID]storms.Sample, len(counters))
	for id, c := range counters {
		samples[id] = storms.Sample{Broadcasts: c.PacketsIn[abi.ClassBroadcast],
			Reflected: c.Drops[abi.ReasonReflected]}
	}
	for _, c := range s.watch.Look(now, samples) {
		e := event.Event{Kind: event.Network, Switch: c.Uplink.Switch, Uplink: c.Uplink.Name}
		e.To = "storm"
		e.Text = fmt.Sprintf("uplink %s: %s", c.Uplink.Name, s.Why(c.Uplink).Text())
		if c.Over {
			e.From, e.To = e.To, ""
			e.Text = fmt.Sprintf("uplink %s: the storm of the physical network is over", c.Uplink.Name)
		}
		s.host.Events.Publish(e)
		s.host.Log.Warn(e.Text, "switch", c.Uplink.Switch)
	}
}
