package agent

import (
	"context"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// Events sends the events after seq, and then new ones until ctx ends or the follower has had enough.
func (an *answers) Events(ctx context.Context, q api.Follow, emit func(api.Events) error) error {
	after := q.After
	if last := an.events.Last(); q.Last >= 0 && uint64(q.Last) < last {
		after = max(after, last-uint64(q.Last))
	}
	for {
		if q.NoFollow && after >= an.events.Last() {
			return nil
		}
		list, missed, err := an.events.After(ctx, after)
		if err != nil {
			return nil // the follower has gone
		}
		if err := emit(api.Events{Started: an.started, Missed: missed, Events: list}); err != nil {
			return err
		}
		after = list[len(list)-1].Seq
	}
}

// about returns an event about a port or an uplink.
func about(what string, id plan.PortID) event.Event {
	e := event.Event{Switch: id.Switch}
	if what == "uplink" {
		e.Uplink = id.Name
	} else {
		e.Port = id.Name
	}
	return e
}
