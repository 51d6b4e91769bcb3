package uplinks

import (
	"fmt"
	"maps"
	"time"

	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/memory"
)

// byLACP is the name under which LACP gives its verdicts on members of LAGs.
const byLACP = "lacp"

// LAGs runs LACP on the members of the LAGs (S52, S53). Its result is which members are not used, and why; the kernel
// chooses among the other members for each frame.
type LAGs struct {
	host  Host
	lacp  *linkproto.LACP            // nil before Start
	limit event.Limiter[plan.PortID] // of reports about a member
	done  chan struct{}
	// reports are the last reports of each LAG; used only in the loop.
	reports map[plan.PortID]linkproto.LACPReport
	// told is the last reported state of each member; held is true if a member has changed since, and its report was
	// held back.
	told map[plan.PortID]lacp.MemberStatus
	held bool
}

// NewLAGs returns the LAGs of a starting agent: the remembered state counts until LACP, after Start, has newer
// information.
func NewLAGs(h Host) *LAGs {
	return &LAGs{host: h, limit: h.Limit, done: make(chan struct{}), reports: map[plan.PortID]linkproto.LACPReport{},
		told: map[plan.PortID]lacp.MemberStatus{}}
}

// Start starts LACP.
func (p *LAGs) Start(open linkproto.Opener) {
	p.lacp = linkproto.StartLACP(open, p.host.Log, func(r []linkproto.LACPReport) {
		p.host.Post(p.done, func() { p.reported(r) })
	})
}

// Status returns the LACP state of a LAG; false if LACP does not run on it.
func (p *LAGs) Status(id plan.PortID) (lacp.Status, bool) {
	if p.lacp == nil {
		return lacp.Status{}, false
	}
	return p.lacp.Status(id)
}

// Close ends LACP if it was started.
func (p *LAGs) Close() error {
	close(p.done)
	return p.lacp.Close()
}

// Judge determines which members are out of use, before the plan becomes active: by LACP's last report or, after a
// start, by the remembered state. devices are those of the uplinks.
func (p *LAGs) Judge(pl *plan.Plan, devices map[plan.PortID]memory.LAGDevice) {
	p.host.Memory.KeepLAGs(pl, devices)
	for _, sw := range pl.Switches {
		for _, u := range sw.Uplinks {
			why := problem.Problem{}
			if g := sw.LAGOf(u.ID.Name); g != nil {
				why = p.reason(sw, g, u.ID, devices)
			}
			p.host.Verdicts.Set(u.ID, byLACP, why)
		}
	}
}

// reason returns why a member is out of use, none if it is in use.
func (p *LAGs) reason(sw *plan.Switch, g *plan.LAG, id plan.PortID,
	devices map[plan.PortID]memory.LAGDevice) problem.Problem {
	lagID := plan.PortID{Switch: sw.Name, Name: g.Name}
	var status lacp.Status
	if r, ok := p.reports[lagID]; ok {
		status = r.Status
	} else {
		st := p.host.Memory.LAG(lagID)
		l := lacp.New(st.Config(sw, g))
		l.Restore(time.Now(), st.Saved(devices))
		status = l.Status()
	}
	for _, m := range status.Members {
		if m.Name == id.Name {
			return m.Reason
		}
	}
	return problem.Of(problem.LACPNoPartnerYet)
}

// Settled passes the LAGs of the active plan to LACP.
func (p *LAGs) Settled(now InForce) {
	p.host.Memory.ForgetLAGs(now.Plan)
	var want []linkproto.LAG
	devices := map[plan.PortID]memory.LAGDevice{}
	for id, d := range now.Devices {
		devices[id] = memory.LAGDevice{Index: d.Index, MAC: d.MAC}
	}
	there := map[plan.PortID]bool{}
	for _, sw := range now.Plan.Switches {
		for _, g := range sw.LAGs {
			st := p.host.Memory.LAG(plan.PortID{Switch: sw.Name, Name: g.Name})
			there[st.ID] = true
			if st.Snapshot.System.MAC.IsZero() { // no member has a device yet
				continue
			}
			lag := linkproto.LAG{ID: st.ID, Config: st.Config(sw, g), Saved: st.Saved(devices),
				Devices: map[string]linkproto.Uplink{}}
			for _, u := range sw.Uplinks {
				d, ok := now.Devices[u.ID]
				if ok && sw.LAGOf(u.ID.Name) == g {
					lag.Devices[u.ID.Name] = linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: now.Facts[u.ID].Up &&
						!u.Blocked}
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
		sw := now.Plan.Switch(id.Switch)
		return sw == nil || sw.LAGOf(id.Name) == nil
	})
	p.lacp.Own(now.own())
	p.lacp.Want(want)
}

// reported processes changed LAGs; it runs in the loop.
func (p *LAGs) reported(list []linkproto.LACPReport) {
	for _, r := range list {
		st := p.host.Memory.LAG(r.ID)
		if st == nil {
			continue
		}
		p.publish(r)
		p.reports[r.ID] = r
		st.Remember(r.Snapshot, r.Devices)
	}
	p.host.SettleSoon()
}

// TellHeld reports the present state of members whose reports were held back, if the rate limiter allows it by now.
func (p *LAGs) TellHeld() {
	if !p.held {
		return
	}
	p.held = false
	for _, r := range p.reports {
		p.publish(r)
	}
}

// publish reports what changed for the members since their last report; for a member that changes all the time, later.
func (p *LAGs) publish(r linkproto.LACPReport) {
	for _, m := range r.Status.Members {
		id := plan.PortID{Switch: r.ID.Switch, Name: m.Name}
		was, known := p.told[id]
		if known && was.Partner.System == m.Partner.System && was.Usable == m.Usable && was.Reason.Same(m.Reason) {
			continue
		}
		if !p.limit.Allow(id, time.Now()) {
			p.held = true
			continue
		}
		p.told[id] = m
		p.tell(r.ID, id, was, known, m)
	}
}

func (p *LAGs) tell(lag, uplink plan.PortID, was lacp.MemberStatus, known bool, m lacp.MemberStatus) {
	say := func(k event.Kind, from, to, text string) {
		p.host.Events.Publish(event.Event{Kind: k, Switch: uplink.Switch, Uplink: uplink.Name, From: from, To: to,
			Text: text})
		p.host.Log.Info(text, "switch", lag.Switch, "lag", lag.Name)
	}
	if m.Partner.System != was.Partner.System && !m.Partner.System.MAC.IsZero() {
		say(event.Neighbour, partnerText(was), partnerText(m), fmt.Sprintf("uplink %s: LACP partner %s", m.Name,
			partnerText(m)))
	}
	switch {
	case m.Usable && (!known || !was.Usable):
		say(event.Link, "out", "in use", fmt.Sprintf("uplink %s is used in LAG %s", m.Name, lag.Name))
	case !m.Usable && known && (was.Usable || !was.Reason.Same(m.Reason)):
		say(event.Link, usedText(was), "out", fmt.Sprintf("uplink %s is not used in LAG %s: %s", m.Name, lag.Name,
			m.Reason.Text()))
	}
}

func usedText(m lacp.MemberStatus) string {
	if m.Usable {
		return "in use"
	}
	return "out"
}

// partnerText describes a member's partner, "" if there is none.
func partnerText(m lacp.MemberStatus) string {
	if m.Partner.System.MAC.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s key %d", m.Partner.System, m.Partner.Key)
}
