package agent

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api"
	"heddle/internal/fabric"
	"heddle/internal/fabric/wire"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// probing is the host's part in the probes between hosts: it tells the controllers which uplinks take part and what
// was found, and is told whom to probe.
type probing struct {
	fabric *uplinks.Fabric
	// who returns this host's id and name in its cluster.
	who func() (id, name string)

	// publish tells what is found, and no longer so.
	publish func(event.Event)

	mu       sync.Mutex
	uplinks  *controllerv1.ProbeUplinks
	results  *controllerv1.ProbeResults
	findings []fabric.Finding // the controllers'
	told     map[string]fabric.Finding
}

// wantedEvery is how often a host without uplinks that take part looks whether it has some.
const wantedEvery = time.Second

// Wanted implements cluster.Probes.
func (p *probing) Wanted(ctx context.Context) bool {
	tick := time.NewTicker(wantedEvery)
	defer tick.Stop()
	for len(p.fabric.Members()) == 0 {
		select {
		case <-tick.C:
		case <-p.fabric.Changed():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Begin implements cluster.Probes.
func (p *probing) Begin() *controllerv1.FollowProbesRequest {
	p.mu.Lock()
	p.uplinks, p.results = nil, nil
	p.mu.Unlock()
	m := p.Say()
	if m == nil {
		m = &controllerv1.FollowProbesRequest{}
	}
	if m.Uplinks == nil {
		m.Uplinks = &controllerv1.ProbeUplinks{}
	}
	return m
}

// Changed implements cluster.Probes.
func (p *probing) Changed() <-chan struct{} { return p.fabric.Changed() }

// Say implements cluster.Probes.
func (p *probing) Say() *controllerv1.FollowProbesRequest {
	report := p.fabric.Report()
	ups, results := wire.Uplinks(p.fabric.Members()), wire.Results(report.Results, report.Deaf)
	p.mu.Lock()
	defer p.mu.Unlock()
	m := &controllerv1.FollowProbesRequest{}
	if p.uplinks == nil || !proto.Equal(p.uplinks, ups) {
		m.Uplinks, p.uplinks = ups, ups
	}
	if p.results == nil || !proto.Equal(p.results, results) {
		m.Results, p.results = results, results
	}
	if m.Uplinks == nil && m.Results == nil {
		return nil
	}
	return m
}

// Heard implements cluster.Probes.
func (p *probing) Heard(m *controllerv1.FollowProbesResponse) {
	id, name := p.who()
	p.fabric.Hand(id, name, wire.ReadKeys(m.GetKeys()), wire.ReadTasks(id, m.GetTasks()), m.GetTasks() != nil)
	if m.GetFindings() != nil {
		list := wire.ReadFindings(m.GetFindings().GetFindings())
		p.mu.Lock()
		p.findings = list
		p.mu.Unlock()
		p.tell(list)
	}
}

// tell publishes findings that are new, and those that are gone.
func (p *probing) tell(list []fabric.Finding) {
	now := map[string]fabric.Finding{}
	for _, f := range list {
		now[f.Text] = f
	}
	p.mu.Lock()
	was := p.told
	p.told = now
	p.mu.Unlock()
	for text, f := range now {
		if _, known := was[text]; !known {
			p.publish(event.Event{Kind: event.Network, Switch: f.Switch, From: "ok", To: string(f.Code),
				Text: text + ": " + f.Remedy})
		}
	}
	for text, f := range was {
		if _, there := now[text]; !there {
			p.publish(event.Event{Kind: event.Network, Switch: f.Switch, From: string(f.Code), To: "ok",
				Text: "no longer: " + text})
		}
	}
}

// health is what this host knows of the physical network. It is said as events too, where no controller does that.
func (p *probing) health() *api.HostHealth {
	v, handed := p.fabric.Alone()
	report := p.fabric.Report()
	out := &api.HostHealth{Alone: !handed, Uplinks: uint32(v.Uplinks), Sent: report.Counts.Sent,
		Answered: report.Counts.Answered, Forged: report.Counts.Forged, Findings: []api.NetworkFinding{}}
	for _, r := range report.Results {
		out.Paths++
		switch r.State {
		case fabric.Passes:
			out.Passing++
		case fabric.Unknown:
			out.Waiting++
		}
	}
	found := v.Findings
	if handed {
		p.mu.Lock()
		found = p.findings
		p.mu.Unlock()
	}
	for _, f := range found {
		one := api.NetworkFinding{Code: string(f.Code), Note: f.Note, Switch: f.Switch, Ends: f.Ends, Others: f.Others,
			Have: uint32(f.Have), Want: uint32(f.Want), Text: f.Text, Remedy: f.Remedy}
		for _, v := range f.VLANs {
			one.VLANs = append(one.VLANs, uint32(v))
		}
		out.Findings = append(out.Findings, one)
	}
	return out
}

// alone says what a host without controllers finds by itself.
func (p *probing) alone() {
	if v, handed := p.fabric.Alone(); !handed {
		p.tell(v.Findings)
	}
}

// plugged returns where an uplink is plugged in, as LLDP tells it; "" where it is not known.
func (t *teaming) plugged(uplink plan.PortID) string {
	if t.neighbours == nil {
		return ""
	}
	s, ok := t.neighbours.Status(uplink)
	if !ok || len(s.Neighbours) != 1 {
		return ""
	}
	return uplinks.PlugText(s.Neighbours[0])
}
