package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/part"
	"heddle/internal/api"
	"heddle/internal/fabric"
	"heddle/internal/fabric/wire"
	"heddle/internal/observe/event"
	"heddle/internal/overlay"
	"heddle/internal/uplinks"
)

// Host is the host's part in the probes between hosts: it tells the controllers which uplinks take part and what
// was found, and is told whom to probe.
type Host struct {
	fabric  *uplinks.Fabric
	tunnels *uplinks.Tunnels
	// who returns this host's id and name in its cluster.
	who func() (id, name string)

	// publish tells what is found, and no longer so.
	publish func(event.Event)

	// telling is held while findings are gathered and published; it is taken before all other locks here.
	telling sync.Mutex
	told    map[string]fabric.Finding // by key

	mu       sync.Mutex
	uplinks  *controllerv1.ProbeUplinks
	results  *controllerv1.ProbeResults
	findings []fabric.Finding // the controllers'
}

// Feature gives an agent the probes between hosts.
func Feature() part.Feature { return part.Feature{Name: "network-probes", After: "beacons", New: New} }

// New starts the probes of uplinks and of tunnels, of none yet.
func New(d part.Deps) (part.Part, error) {
	p := &Host{who: d.Who, publish: func(e event.Event) {
		d.Log.Warn("the physical network: "+e.Text, "switch", e.Switch)
		d.Publish(e)
	}}
	p.fabric = uplinks.FollowFabric(d.Uplinks, d.Open, d.HostName, d.Plugged, d.Speed, p.tell)
	p.tunnels = uplinks.FollowTunnels(d.Uplinks, d.Open, d.SendPacket, d.HostName, d.IsDefined, p.tunnelled)
	return p, nil
}

// Settled tells the probes what is active.
func (p *Host) Settled(now uplinks.InForce) {
	p.fabric.Settled(now)
	p.tunnels.Settled(now)
}

// Close ends the probes.
func (p *Host) Close() error { return errors.Join(p.tunnels.Close(), p.fabric.Close()) }

// Line is what a benchmark needs of the uplinks that take part.
func (p *Host) Line() (line uplinks.Line, handed bool) { return p.fabric.Line() }

// Prefer returns the endpoints of other hosts with those last that do not answer.
func (p *Host) Prefer(sw string, r overlay.Reach) overlay.Reach { return p.tunnels.Prefer(sw, r) }

// wantedEvery is how often a host without uplinks that take part looks whether it has some.
const wantedEvery = time.Second

// wanted returns once uplinks or tunnels take part; false when ctx has ended.
func (p *Host) wanted(ctx context.Context) bool {
	tick := time.NewTicker(wantedEvery)
	defer tick.Stop()
	for len(p.fabric.Members()) == 0 && !p.tunnels.Takes() {
		select {
		case <-tick.C:
		case <-p.fabric.Changed():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// begin is the first message of a conversation.
func (p *Host) begin() *controllerv1.FollowProbesRequest {
	p.mu.Lock()
	p.uplinks, p.results = nil, nil
	p.mu.Unlock()
	m := p.say()
	if m == nil {
		m = &controllerv1.FollowProbesRequest{}
	}
	if m.Uplinks == nil {
		m.Uplinks = &controllerv1.ProbeUplinks{Abilities: fabric.Abilities()}
	}
	return m
}

// say is what there is to say; nil for nothing.
func (p *Host) say() *controllerv1.FollowProbesRequest {
	report := p.fabric.Report()
	ups, results := wire.Uplinks(p.fabric.Members()), wire.Results(report.Results, report.Deaf)
	ups.Abilities = fabric.Abilities()
	results.Tunnels = wire.Tunnels(p.tunnels.Found().Defined)
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

// heard takes in what the controller says.
func (p *Host) heard(m *controllerv1.FollowProbesResponse) {
	id, name := p.who()
	keys := wire.ReadKeys(m.GetKeys())
	p.fabric.Hand(id, name, keys, wire.ReadTasks(id, m.GetTasks()), m.GetTasks() != nil)
	p.tunnels.Hand(id, name, keys)
	if m.GetFindings() != nil {
		list := wire.ReadFindings(m.GetFindings().GetFindings())
		p.mu.Lock()
		p.findings = list
		p.mu.Unlock()
		p.tell()
	}
}

// found is what is known to be wrong at this host's uplinks and tunnels: by the controllers where they have it probe,
// else by itself. Of tunnels that controllers do not define, the host knows more than they.
func (p *Host) found() ([]fabric.Finding, *fabric.Verdict, bool) {
	v, handed := p.fabric.Alone()
	tunnels := p.tunnels.Found()
	if !handed {
		return slices.Concat(v.Findings, fabric.Tunnels(slices.Concat(tunnels.Defined, tunnels.Own))), v, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	told := fabric.Added(p.findings, fabric.Nobody(tunnels.Defined))
	return slices.Concat(told, fabric.Tunnels(tunnels.Own)), v, true
}

// tell publishes findings that are new, and those that are gone.
func (p *Host) tell() {
	p.telling.Lock()
	defer p.telling.Unlock()
	list, _, _ := p.found()
	now := map[string]fabric.Finding{}
	for i := range list {
		key := list[i].Key()
		now[key] = list[i]
		if _, known := p.told[key]; !known {
			f := &list[i]
			p.publish(event.Event{Kind: event.Network, Switch: f.Switch, From: "ok", To: string(f.Code),
				Text: f.Text + ": " + f.Remedy})
		}
	}
	for key, f := range p.told {
		if _, there := now[key]; !there {
			p.publish(event.Event{Kind: event.Network, Switch: f.Switch, From: string(f.Code), To: "ok",
				Text: "no longer: " + f.Text})
		}
	}
	p.told = now
}

// NetworkHealth is what this host knows of the physical network.
func (p *Host) NetworkHealth(context.Context) (*api.HostHealth, error) {
	found, v, handed := p.found()
	report, tunnels := p.fabric.Report(), p.tunnels.Found()
	out := &api.HostHealth{Alone: !handed, Uplinks: uint32(v.Uplinks),
		Sent:     report.Counts.Sent + tunnels.Counts.Sent,
		Answered: report.Counts.Answered + tunnels.Counts.Answered,
		Forged:   report.Counts.Forged + tunnels.Counts.Forged, Findings: []api.NetworkFinding{}}
	for _, r := range report.Results {
		tally(r.State, &out.Paths, &out.Passing, &out.Waiting)
	}
	for _, t := range slices.Concat(tunnels.Defined, tunnels.Own) {
		tally(t.State, &out.Tunnels, &out.TunnelsPassing, &out.TunnelsWaiting)
	}
	for _, f := range found {
		one := api.NetworkFinding{Code: string(f.Code), Note: f.Note, Switch: f.Switch, Ends: f.Ends, Others: f.Others,
			Have: uint32(f.Have), Want: uint32(f.Want), Text: f.Text, Remedy: f.Remedy}
		for _, v := range f.VLANs {
			one.VLANs = append(one.VLANs, uint32(v))
		}
		out.Findings = append(out.Findings, one)
	}
	return out, nil
}

// tally counts a path by its state.
func tally(s fabric.State, all, passing, waiting *uint32) {
	*all++
	switch s {
	case fabric.Passes:
		*passing++
	case fabric.Unknown:
		*waiting++
	}
}

// tunnelled takes in that there is more to say of tunnels.
func (p *Host) tunnelled() {
	p.fabric.Poke()
	p.tell()
}

// LeftCluster makes the host one without controllers again.
func (p *Host) LeftCluster() {
	p.fabric.Left()
	p.tunnels.Left()
}
