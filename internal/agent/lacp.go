package agent

import (
	"fmt"
	"maps"
	"time"

	"heddle/internal/event"
	"heddle/internal/lacp"
	"heddle/internal/linkproto"
	"heddle/internal/plan"
	"heddle/internal/state"
)

// byLACP is who says that a member of a LAG is not used.
const byLACP = "lacp"

// lagPart runs LACP on the members of the LAGs (S52, S53). What it finds out is why members are not used; over which of the others a
// frame goes is the kernel's.
type lagPart struct {
	a    *Agent
	lacp *linkproto.LACP
	done chan struct{}
	// reports are the last of each LAG; in the loop only.
	reports map[plan.PortID]linkproto.LACPReport
	// told is how each member was when it was told of last; held says that one of them is another by now.
	told map[plan.PortID]lacp.MemberStatus
	held bool
}

func (a *Agent) followLAGs(open linkproto.Opener) {
	p := &lagPart{a: a, done: make(chan struct{}), reports: map[plan.PortID]linkproto.LACPReport{}, told: map[plan.PortID]lacp.MemberStatus{}}
	p.lacp = linkproto.StartLACP(open, a.log, func(r []linkproto.LACPReport) {
		a.postUnless(p.done, func() { p.reported(r) })
	})
	a.lags = p
	a.follow(p)
}

// postUnless has f run in the loop unless done is closed first.
func (a *Agent) postUnless(done <-chan struct{}, f func()) {
	select {
	case a.calls <- f:
	case <-a.stopped:
	case <-done:
	}
}

func (p *lagPart) close() error {
	close(p.done)
	return p.lacp.Close()
}

// judgeLAGs says which members are out, before the plan goes into force: what LACP reported last or, after a start, what it will go on
// from.
func (a *Agent) judgeLAGs(bounds []bound) {
	devices := map[plan.PortID]state.LAGDevice{}
	for _, b := range bounds {
		if b.uplink != nil {
			devices[b.id] = state.LAGDevice{Index: b.device.Index, MAC: b.device.MAC}
		}
	}
	a.state.KeepLAGs(a.plan, devices)
	for _, sw := range a.plan.Switches {
		for _, u := range sw.Uplinks {
			why := ""
			if g := sw.LAGOf(u.ID.Name); g != nil {
				why = a.lagReason(sw, g, u.ID, devices)
			}
			a.verdicts.set(u.ID, byLACP, why)
		}
	}
}

// lagReason is why a member is out, "" when it is in use.
func (a *Agent) lagReason(sw *plan.Switch, g *plan.LAG, id plan.PortID, devices map[plan.PortID]state.LAGDevice) string {
	lagID := plan.PortID{Switch: sw.Name, Name: g.Name}
	var status lacp.Status
	if r, ok := a.lagReport(lagID); ok {
		status = r.Status
	} else {
		st := a.state.LAG(lagID)
		l := lacp.New(st.Config(g))
		l.Restore(time.Now(), st.Saved(devices))
		status = l.Status()
	}
	for _, m := range status.Members {
		if m.Name == id.Name {
			return m.Reason
		}
	}
	return "lacp: no partner yet"
}

func (a *Agent) lagReport(id plan.PortID) (linkproto.LACPReport, bool) {
	if a.lags == nil {
		return linkproto.LACPReport{}, false
	}
	r, ok := a.lags.reports[id]
	return r, ok
}

// settled hands LACP the LAGs of the plan in force.
func (p *lagPart) settled(now inForce) {
	p.a.state.ForgetLAGs(now.plan)
	var want []linkproto.LAG
	devices := map[plan.PortID]state.LAGDevice{}
	for id, d := range now.devices {
		devices[id] = state.LAGDevice{Index: d.Index, MAC: d.MAC}
	}
	there := map[plan.PortID]bool{}
	for _, sw := range now.plan.Switches {
		for _, g := range sw.LAGs {
			st := p.a.state.LAG(plan.PortID{Switch: sw.Name, Name: g.Name})
			there[st.ID] = true
			if st.Snapshot.System.MAC.IsZero() { // no member has a device yet
				continue
			}
			lag := linkproto.LAG{ID: st.ID, Config: st.Config(g), Saved: st.Saved(devices), Devices: map[string]linkproto.Uplink{}}
			for _, u := range sw.Uplinks {
				d, ok := now.devices[u.ID]
				if ok && sw.LAGOf(u.ID.Name) == g {
					lag.Devices[u.ID.Name] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.facts[u.ID].Up && !u.Blocked}
				}
			}
			want = append(want, lag)
		}
	}
	for id := range p.reports {
		if !there[id] {
			delete(p.reports, id)
		}
	}
	maps.DeleteFunc(p.told, func(id plan.PortID, _ lacp.MemberStatus) bool {
		sw := now.plan.Switch(id.Switch)
		return sw == nil || sw.LAGOf(id.Name) == nil
	})
	p.lacp.Want(want)
}

// reported takes in what changed; it runs in the loop.
func (p *lagPart) reported(list []linkproto.LACPReport) {
	for _, r := range list {
		st := p.a.state.LAG(r.ID)
		if st == nil {
			continue
		}
		p.publish(r)
		p.reports[r.ID] = r
		st.Remember(r.Snapshot, r.Devices)
	}
	p.a.settleSoon()
}

// publish tells what changed of the members since they were told of last; of one that changes all the time, later.
func (p *lagPart) publish(r linkproto.LACPReport) {
	for _, m := range r.Status.Members {
		id := plan.PortID{Switch: r.ID.Switch, Name: m.Name}
		was, known := p.told[id]
		if known && was.Partner.System == m.Partner.System && was.Usable == m.Usable && was.Reason == m.Reason {
			continue
		}
		if !p.a.quiet.lags.Allow(id, time.Now()) {
			p.held = true
			continue
		}
		p.told[id] = m
		p.tell(r.ID, id, was, known, m)
	}
}

func (p *lagPart) tell(lag, uplink plan.PortID, was lacp.MemberStatus, known bool, m lacp.MemberStatus) {
	say := func(k event.Kind, from, to, text string) {
		e := p.a.at("uplink", uplink)
		e.Kind, e.From, e.To, e.Text = k, from, to, text
		p.a.events.Publish(e)
		p.a.log.Info(text, "switch", lag.Switch, "lag", lag.Name)
	}
	if m.Partner.System != was.Partner.System && !m.Partner.System.MAC.IsZero() {
		say(event.Neighbour, partnerText(was), partnerText(m), fmt.Sprintf("uplink %s: LACP partner %s", m.Name, partnerText(m)))
	}
	switch {
	case m.Usable && (!known || !was.Usable):
		say(event.Link, "out", "in use", fmt.Sprintf("uplink %s is used in LAG %s", m.Name, lag.Name))
	case !m.Usable && known && (was.Usable || was.Reason != m.Reason):
		say(event.Link, usedText(was), "out", fmt.Sprintf("uplink %s is not used in LAG %s: %s", m.Name, lag.Name, m.Reason))
	}
}

func usedText(m lacp.MemberStatus) string {
	if m.Usable {
		return "in use"
	}
	return "out"
}

// partnerText names a member's partner, "" for none.
func partnerText(m lacp.MemberStatus) string {
	if m.Partner.System.MAC.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s key %d", m.Partner.System, m.Partner.Key)
}
