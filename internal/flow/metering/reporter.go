package metering

import (
	"time"

	"heddle/internal/flow/export"
	"heddle/internal/observe/event"
)

// reporter publishes the state changes of a switch's collectors. A rate limiter holds back a collector that appears and
// disappears all the time.
type reporter struct {
	sw      string
	publish func(event.Event)
	limit   event.Limiter[export.Collector]
	states  map[export.Collector]export.State
}

// The rate limit of each collector.
const (
	reportBurst = 20
	reportEvery = 30 * time.Second
)

func newReporter(sw string, publish func(event.Event)) reporter {
	return reporter{sw, publish, event.Limiter[export.Collector]{Burst: reportBurst, Every: reportEvery},
		map[export.Collector]export.State{}}
}

// report publishes the states that have changed.
func (t *reporter) report(all []export.Status, now time.Time) {
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

// forget makes report publish all states again.
func (t *reporter) forget() { clear(t.states) }
