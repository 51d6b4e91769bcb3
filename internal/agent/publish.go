package agent

import (
	"context"
	"fmt"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
)

// Events gives the events after seq, and goes on with those to come until ctx ends or the follower does not want more.
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

// about is an event about a port or an uplink.
func about(what string, id plan.PortID) event.Event {
	e := event.Event{Switch: id.Switch}
	if what == "uplink" {
		e.Uplink = id.Name
	} else {
		e.Port = id.Name
	}
	return e
}

// publishChange publishes what the log says of a port or uplink.
func (rp *reporter) publishChange(what string, id plan.PortID, old, o observation, known bool) {
	say := func(k event.Kind, from, to, format string, args ...any) {
		e := about(what, id)
		e.Kind, e.From, e.To, e.Text = k, from, to, fmt.Sprintf(format, args...)
		rp.events.Publish(e)
	}
	subject := what + " " + id.Name
	if old.up != o.up && (known || o.up) {
		say(event.Link, upDown(old.up), upDown(o.up), "%s is %s", subject, upDown(o.up))
	}
	if old.blocked != o.blocked {
		word := map[bool]string{true: "blocked", false: "unblocked"}
		say(event.Blocked, word[old.blocked], word[o.blocked], "%s is %s", subject, word[o.blocked])
	}
	switch {
	case o.before != "" && old.before != o.before:
		say(event.Program, "", "", "%s: %s", subject, o.before)
	case o.before == "" && old.before != "":
		say(event.Program, "", "", "%s: no program runs before the switch any more", subject)
	}
	switch {
	case o.violation != "" && old.violation != o.violation:
		say(event.Violation, "", "", "%s: %s", subject, o.violation)
	case o.violation == "" && old.violation != "":
		say(event.Violation, "", "", "%s: the violation is over", subject)
	}
}

func upDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}
