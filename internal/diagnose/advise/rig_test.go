package advise

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// sound is a configuration without a fault; test cases change words of it.
const sound = `switches:
- name: lab
  kind: distributed
  uplinks: [{name: u1, device: eno1}, {name: u2, device: eno2}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: nested, vlan: {access: 10}, security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 20}}}
  - {name: sensor, vlan: {trunk: ["0-4094"]}, security: {promiscuous: accept}}
ports:
- {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
- {name: b, switch: lab, portGroup: web, device: pb, mac: "02:00:00:00:00:0b"}
- {name: n, switch: lab, portGroup: nested, device: pn, mac: "02:00:00:00:00:0c"}
- {name: s, switch: lab, portGroup: sensor, device: ps, mac: "02:00:00:00:00:0d"}
`

// rig is a host on which everything is connected and up, and has passed some frames.
type rig struct {
	t testing.TB
	*Snapshot
	sw     *plan.Switch
	links  Links  // used by sees
	before Causes // of the previous reading
}

func newRig(t testing.TB, text string) *rig {
	t.Helper()
	cfg, err := spec.Parse("heddle.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_000_000, 0)
	r := &rig{t: t, sw: p.Switches[0], Snapshot: &Snapshot{Now: now, RecentFor: 500 * time.Millisecond,
		State: &api.State{Agent: api.AgentInfo{Started: now.Add(-time.Hour)}},
		Host: &trace.Host{Plan: p, Facts: plan.Facts{}, NewModel: model.New, File: "heddle.yaml",
			RunTime: map[string]spec.Port{}, Waiting: map[plan.PortID]problem.Problem{}}}}
	for _, g := range cfg.Switches[0].PortGroups {
		r.Host.Groups = append(r.Host.Groups, trace.Group{Switch: "lab", Name: g.Name})
	}
	for i, u := range r.sw.Uplinks {
		r.Host.Facts[u.ID] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: plan.MAC{2, 0, 0, 0, 1, byte(i)}}
		r.State.Uplinks = append(r.State.Uplinks, api.Uplink{Switch: "lab", Name: u.ID.Name, Device: u.Device,
			State: api.Up})
		r.Stats = append(r.Stats, api.Stats{Switch: "lab", Name: u.ID.Name, Uplink: true})
	}
	for _, p := range r.sw.Ports {
		r.Host.Facts[p.ID] = plan.Fact{Up: true, MTU: 1500}
		r.State.Ports = append(r.State.Ports, api.Port{Switch: "lab", Name: p.ID.Name, Device: p.Device, State: api.Up})
		r.Stats = append(r.Stats, api.Stats{Switch: "lab", Name: p.ID.Name, PortGroup: p.PortGroup})
	}
	for i := range r.Stats {
		name := r.Stats[i].Name
		for _, c := range []string{"packetsInUnicast", "packetsOutUnicast", "packetsInBroadcast",
			"packetsOutBroadcast"} {
			if name != "s" || !strings.HasPrefix(c, "packetsIn") { // the sensor never sends
				r.count(name, c, 1000)
			}
		}
	}
	return r
}

func id(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }

func (r *rig) stats(name string) *api.Stats {
	for i := range r.Stats {
		if r.Stats[i].Name == name {
			return &r.Stats[i]
		}
	}
	r.t.Fatalf("nothing named %s", name)
	return nil
}

// count sets a counter.
func (r *rig) count(name, counter string, n uint64) {
	s := r.stats(name)
	for i := range s.Counters {
		if s.Counters[i].Name == counter {
			s.Counters[i].Value = n
			return
		}
	}
	s.Counters = append(s.Counters, api.Counter{Name: counter, Value: n})
}

// lately sets the counters of a port's last half second; drops are by reason.
func (r *rig) lately(name string, counters map[string]uint64, drops ...api.ReasonNo) {
	s := api.Stats{Switch: "lab", Name: name, Drops: drops}
	for counter, n := range counters {
		s.Counters = append(s.Counters, api.Counter{Name: counter, Value: n})
	}
	r.Recent = append(r.Recent, s)
}

func (r *rig) dropped(name, reason string, n uint64) {
	s := r.stats(name)
	s.Drops = append(s.Drops, api.ReasonNo{Reason: reason, Value: n})
}

func (r *rig) refused(name, reason string, n uint64) {
	s := r.stats(name)
	s.Refused = append(s.Refused, api.ReasonNo{Reason: reason, Value: n})
}

// fact changes the fact of a device.
func (r *rig) fact(name string, change func(*plan.Fact)) {
	f := r.Host.Facts[id(name)]
	change(&f)
	r.Host.Facts[id(name)] = f
}

func (r *rig) view(name string) *api.Port {
	for i := range r.State.Ports {
		if r.State.Ports[i].Name == name {
			return &r.State.Ports[i]
		}
	}
	r.t.Fatalf("no port %s", name)
	return nil
}

func (r *rig) uplink(n int) *api.Uplink { return &r.State.Uplinks[n-1] }

// found returns the findings of one rule.
func (r *rig) found(rule string) (list []api.Finding) {
	for _, f := range Examine(r.Snapshot).Findings {
		if f.Rule == rule {
			list = append(list, f)
		}
	}
	return list
}
