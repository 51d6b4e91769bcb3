package metering

import (
	"time"

	"heddle/internal/flow/export"
	"heddle/internal/observe/event"
)

// told publishes the state changes of a switch's collectors. A rate limiter holds back a collector that appears and
// disappears all the time.
type told struct {
	sw      string
	publish func(event.Event)
	limit   event.Limiter[export.Collector]
	states  map[export.Collector]export.State
}

// The rate limit of each collector.
const (
	toldBurst = 20
	toldEvery = 30 * time.Second
)

func newTold(sw string, publish func(event.Event)) told {
	return told{sw, publish, event.Limiter[export.Collector]{Burst: toldBurst, Every: toldEvery},
		map[export.Collector]export.State{}}
}

// tell publishes the states that have changed.
func (t *told) tell(all []export.Status, now time.Time) {
	for i := range all {
		s := &all[i]
		before := t.states[s.Collector]
		if s.State == before || s.Why == "" && (s.State == export.Resolving || s.State == export.Connecting) ||
			!t.limit.Allow(s.Collector, now) {
			continue
		}
		t.states[s.Collector] = s.State
		name := nameOf(s.Collector)
		text := map[export.State]string{
			export.Sending:    "flow collector " + name + " is sent records",
			export.Away:       "flow collector " + name + " is away: " + s.Why,
			export.Resolving:  "flow collector " + name + " has no address: " + s.Why,
			export.Connecting: "flow collector " + name + " is being connected to: " + s.Why,
		}[s.State]
		t.publish(event.Event{Kind: event.Collector, Switch: t.sw, Collector: name, From: string(before),
			To: string(s.State), Text: text})
	}
}

// forget makes tell publish all states again.
func (t *told) forget() { clear(t.states) }
