package agent

import (
	"fmt"
	"slices"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/teaming/teams"
)

// moved is called when teams have become active: it publishes which ports moved where, and announces every port that
// moved, was connected, or is in other VLANs now (S47, S49, S50).
func (t *teaming) moved(now *teams.Teams) {
	c := teams.Compare(t.formed(), now, t.Active().Applied, t.linkState)
	t.inForce = now
	t.announce(c.Announced, now)
	took := t.sinceNoted()
	t.makeReady()
	for _, m := range c.Moves {
		t.publishMove(m, c.Ports[m], took)
	}
}

// sinceNoted returns the time from the notification until the present change was active; 0 if there was no
// notification.
func (t *teaming) sinceNoted() time.Duration {
	if t.noted.IsZero() {
		return 0
	}
	clock, err := dataplane.Monotonic()
	if err != nil {
		return 0
	}
	return max(0, time.Since(t.noted)-time.Duration(clock-t.Active().Flip.After))
}

func (t *teaming) publishMove(m teams.Move, ports int, took time.Duration) {
	none := func(s string) string {
		if s == "" {
			return "no uplink"
		}
		return s
	}
	who := fmt.Sprintf("%d ports use", ports)
	if ports == 1 {
		who = "1 port uses"
	}
	after := ""
	if took > 0 {
		after = fmt.Sprintf(" after %.1f ms", took.Seconds()*1e3)
	}
	text := fmt.Sprintf("%s %s instead of %s%s: %s", who, none(m.To), none(m.From), after, m.Why.Text())
	t.events.Publish(event.Event{Kind: event.Failover, Switch: m.Switch, From: m.From, To: m.To, Ports: ports,
		Cause:       m.Why.Kind.Cause(),
		TookSeconds: took.Seconds(), Text: text})
	t.meters.FailedOver(m.Switch)
	t.log.Info("failover", "switch", m.Switch, "from", m.From, "to", m.To, "ports", ports, "what", text)
}

// announce sends the ports' MACs on the uplinks they use now, and asks their owners for their multicast groups. A
// port that may not send is no longer announced.
func (t *teaming) announce(list []teams.Subject, now *teams.Teams) {
	if t.announcer == nil || len(list) == 0 {
		return
	}
	at := time.Now()
	r := teams.NewRound(t.Active().Applied, now, t.speakersOf(list), t.kernel.Number)
	for _, p := range list {
		frames := r.Own(p)
		if t.ready.sentOwn(p.Port.ID, frames) {
			continue // when the port's wait ended
		}
		t.announcer.Change(func(q *announce.Queue) { q.Replace(p.Port.ID, at, frames...) })
	}
	t.announceLearned(list, r, at)
}

// speakersOf returns, from the kernel, the ports that send with MACs of others, if the list has a port that may do so.
func (t *teaming) speakersOf(list []teams.Subject) []observe.Speaker {
	if !slices.ContainsFunc(list, func(p teams.Subject) bool { return p.Port.Family() != "" }) {
		return nil
	}
	speakers, err := t.kernel.Speakers()
	if err != nil {
		t.Complain("announce MACs that ports share", err)
	}
	return speakers
}

// announceLearned adds the MACs that were learned behind the ports. It runs last, because listing them takes longer
// than everything else.
func (t *teaming) announceLearned(list []teams.Subject, r *teams.Round, at time.Time) {
	by := map[plan.PortID]teams.Subject{}
	for _, p := range list {
		if l := p.Port.Policy.Learning; l.Enabled.V && r.Speaks(p) {
			by[p.Port.ID] = p
		}
	}
	if len(by) == 0 {
		return
	}
	learned, err := t.kernel.MACs()
	if err != nil {
		t.Complain("announce learned MACs", err)
		return
	}
	done := map[plan.PortID]map[announce.Tag]bool{}
	for _, e := range learned {
		p, ok := by[e.Port]
		if !ok {
			continue
		}
		tag := announce.Tag{VID: e.VLAN, AD: e.AD}
		frames := t.ready.unsent(e.Port, r.Learned(p, e.MAC, tag, !done[e.Port][tag]))
		if done[e.Port] == nil {
			done[e.Port] = map[announce.Tag]bool{}
		}
		done[e.Port][tag] = true
		t.announcer.Change(func(q *announce.Queue) { q.Add(e.Port, at, frames...) })
	}
}
