package uplinks

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"

	"heddle/internal/fabric"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks/linkproto"
)

// Fabric probes the physical network (S109). Its methods but Settled and Close may be called from any goroutine.
type Fabric struct {
	host   Host
	probes *linkproto.Probes
	own    []fabric.Secret // for a host without controllers
	done   chan struct{}
	// plug returns where an uplink is plugged in, "" if that is not known; it is called from any goroutine.
	plug func(plan.PortID) string
	// speed returns the speed of a device in bits per second, 0 if it reports none; it is called in the loop.
	speed func(device string) float64
	told  func()
	// set has the probes follow another plan. It is called under the lock, and takes that of the probes.
	set func(linkproto.ProbePlan)

	mu      sync.Mutex
	changed chan struct{} // holds one token when uplinks or results are others
	members []fabric.Member
	devices map[fabric.End]linkproto.Uplink
	report  linkproto.ProbeReport
	// By a controller: whether one answers, who this host is there, and what it is to probe.
	id, name string
	handed   bool
	tasks    []fabric.Task
	keys     []fabric.Secret
}

// FollowFabric starts without uplinks. plug returns where an uplink is plugged in, speed that of a device; name is this
// host's own; told is called when results are others, from a goroutine that may wait.
func FollowFabric(h Host, open linkproto.Opener, name string, plug func(plan.PortID) string,
	speed func(device string) float64, told func()) *Fabric {
	f := &Fabric{host: h, done: make(chan struct{}), plug: plug, speed: speed, told: told, name: name,
		changed: make(chan struct{}, 1), own: []fabric.Secret{{}}, devices: map[fabric.End]linkproto.Uplink{}}
	_, _ = rand.Read(f.own[0].Key[:]) // never fails (crypto/rand)
	f.probes = linkproto.StartProbes(open, h.Log, f.found)
	f.set = f.probes.Want
	return f
}

// Close ends the probes.
func (f *Fabric) Close() error {
	close(f.done)
	return f.probes.Close()
}

// Changed has a value when the uplinks or the results may be others.
func (f *Fabric) Changed() <-chan struct{} { return f.changed }

// Poke says that there may be more to say than of uplinks.
func (f *Fabric) Poke() { f.poke() }

func (f *Fabric) poke() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *Fabric) found(r linkproto.ProbeReport) {
	f.mu.Lock()
	f.report = r
	f.mu.Unlock()
	f.poke()
	f.told()
}

// Settled updates which uplinks take part: those of switches with a health check whose links are up.
func (f *Fabric) Settled(now InForce) {
	var members []fabric.Member
	devices := map[fabric.End]linkproto.Uplink{}
	for _, sw := range now.Plan.Switches {
		if !sw.HealthCheck {
			continue
		}
		uses := usesOf(sw, now.Groups(sw.Name))
		for _, u := range sw.Uplinks {
			d, ok := now.Devices[u.ID]
			if !ok || u.Blocked || !now.Facts[u.ID].Up {
				continue
			}
			m := fabric.Member{End: fabric.End{Switch: sw.Name, Uplink: u.ID.Name}, MAC: d.MAC, MTU: sw.MTU,
				VLANs: uses.vlans(u), Bundle: uses.bundle[u.ID.Name]}
			if len(m.VLANs) == 0 {
				continue
			}
			device := linkproto.Uplink{Ifindex: d.Index, MAC: d.MAC, Up: true}
			m.Speed = f.speedOf(m.End, device, d.Name)
			members = append(members, m)
			devices[m.End] = device
		}
	}
	f.mu.Lock()
	same := slices.EqualFunc(members, f.members, sameMember) && maps.Equal(devices, f.devices)
	f.members, f.devices = members, devices
	f.mu.Unlock()
	if !same {
		f.want()
		f.poke()
	}
}

// speedOf returns the speed of an uplink, in bits per second. It changes only where the link was down, so that a device
// is asked once.
func (f *Fabric) speedOf(end fabric.End, device linkproto.Uplink, name string) uint64 {
	f.mu.Lock()
	i := slices.IndexFunc(f.members, func(m fabric.Member) bool { return m.End == end })
	known := i >= 0 && f.devices[end] == device && f.members[i].Speed > 0
	was := uint64(0)
	if known {
		was = f.members[i].Speed
	}
	f.mu.Unlock()
	if known {
		return was
	}
	return uint64(max(f.speed(name), 0))
}

// Line is what a benchmark needs of a host.
type Line struct {
	// Devices are those of the uplinks that take part, Speeds their speeds in bits per second, 0 for unknown.
	Devices map[fabric.End]linkproto.Uplink
	Speeds  map[fabric.End]uint64
	// Keys are the cluster's.
	Keys []fabric.Secret
}

// Line returns what a benchmark needs; handed is false while no controller has handed keys.
func (f *Fabric) Line() (l Line, handed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l = Line{map[fabric.End]linkproto.Uplink{}, map[fabric.End]uint64{}, slices.Clone(f.keys)}
	for _, m := range f.members {
		end := m.End
		end.Host = f.id
		l.Devices[end], l.Speeds[end] = f.devices[m.End], m.Speed
	}
	return l, f.handed
}

func sameMember(a, b fabric.Member) bool {
	return a.End == b.End && a.MAC == b.MAC && a.MTU == b.MTU && a.Bundle == b.Bundle && a.Speed == b.Speed &&
		slices.Equal(a.VLANs, b.VLANs)
}

// Hand takes in what a controller has this host probe. id and name are this host's in its cluster. nil keys and tasks
// are those of before.
func (f *Fabric) Hand(id, name string, keys []fabric.Secret, tasks []fabric.Task, whole bool) {
	f.mu.Lock()
	f.id, f.name = id, name
	if len(keys) > 0 {
		f.keys = keys
	}
	if whole {
		f.tasks = tasks
	}
	f.handed = len(f.keys) > 0
	f.mu.Unlock()
	f.want()
}

// Left makes the host one without controllers again.
func (f *Fabric) Left() {
	f.mu.Lock()
	f.id, f.keys, f.tasks, f.handed = "", nil, nil, false
	f.mu.Unlock()
	f.want()
}

// want has the probes do what is to be done: what the controllers said, or alone what the host can do by itself. The
// loop and the conversation with a controller call it at the same time: the plan made last is the one that is set last.
func (f *Fabric) want() {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := linkproto.ProbePlan{Uplinks: map[fabric.End]linkproto.Uplink{}, Tasks: f.tasks, Keys: f.keys}
	for end, u := range f.devices {
		end.Host = f.id
		p.Uplinks[end] = u
	}
	if !f.handed {
		p.Keys, p.Tasks = f.own, fabric.NewLayout(f.local(), 0, nil).Tasks(f.id)
	}
	f.set(p)
}

// local returns the host's uplinks with its own name. The caller holds the lock.
func (f *Fabric) local() []fabric.Member {
	list := slices.Clone(f.members)
	for i := range list {
		list[i].Host, list[i].Name = f.id, f.name
		list[i].Plug = f.plug(plan.PortID{Switch: list[i].Switch, Name: list[i].Uplink})
	}
	return list
}

// Members returns the uplinks that take part.
func (f *Fabric) Members() []fabric.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.local()
}

// Report returns what the probes have found.
func (f *Fabric) Report() linkproto.ProbeReport {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.report
}

// Alone returns what follows from what this host knows by itself: of the paths between its own uplinks. byController
// reports whether a controller knows more.
func (f *Fabric) Alone() (v *fabric.Verdict, byController bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fabric.Judge(f.local(), f.report.Results, nil), f.handed
}

// uses is what the ports of a switch do with its uplinks.
type uses struct {
	vlan   map[string]*plan.VLANSet
	bundle map[string]string
}

// mostTrunk is how many VLANs a trunk may have to be probed, and mostVLANs how many are probed on an uplink, as in
// ESXi (Net.MaxBeaconVlans).
const (
	mostTrunk = 100
	mostVLANs = 100
)

// usesOf gathers what the port groups and ports of a switch use.
func usesOf(sw *plan.Switch, groups []*plan.Effective) uses {
	u := uses{map[string]*plan.VLANSet{}, map[string]string{}}
	for _, g := range groups {
		u.add(sw, g)
	}
	for _, p := range sw.Ports {
		if p.VNI == 0 && p.Policy != nil {
			u.add(sw, p.Policy)
		}
	}
	return u
}

func (u uses) add(sw *plan.Switch, p *plan.Effective) {
	set := vlansOf(p)
	if set.Count() == 0 {
		return
	}
	active := p.Teaming.Active.V
	for _, entry := range slices.Concat(active, p.Teaming.Standby.V) {
		names := []string{entry}
		if g := sw.LAG(entry); g != nil {
			names = g.Uplinks
			for _, name := range names {
				u.bundle[name] = "LAG " + g.Name
			}
		} else if p.Teaming.Policy.V == spec.IPHash && len(active) > 1 && slices.Contains(active, entry) {
			u.bundle[entry] = "IP hash"
		}
		for _, name := range names {
			if u.vlan[name] == nil {
				u.vlan[name] = &plan.VLANSet{}
			}
			for i := range set {
				u.vlan[name][i] |= set[i]
			}
		}
	}
}

// vlansOf returns the VLANs that a port uses in the physical network; none for a trunk that has too many to tell which
// are in use.
func vlansOf(p *plan.Effective) (set plan.VLANSet) {
	switch v := p.VLAN.V; {
	case v.Mode == plan.VLANNone:
		set.AddRange(0, 0)
	case v.Mode == plan.VLANAccess:
		set.AddRange(v.ID, v.ID)
	case v.Mode == plan.VLANTrunk && !v.AD && v.Set.Count() <= mostTrunk:
		set = v.Set
	}
	return set
}

// vlans returns the VLANs to probe on an uplink, in order.
func (u uses) vlans(up *plan.Uplink) (list []uint16) {
	set := u.vlan[up.ID.Name]
	if set == nil {
		return nil
	}
	for v := uint16(0); v < 4095 && len(list) < mostVLANs; v++ {
		if set.Has(v) && up.VLANs.Has(v) {
			list = append(list, v)
		}
	}
	return list
}
