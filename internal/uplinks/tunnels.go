package uplinks

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"heddle/internal/fabric"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/uplinks/linkproto"
)

// Tunnels probes the tunnels between this host and others (S109), and finds the endpoints that do not answer (S84). Its
// methods but Settled and Close may be called from any goroutine.
type Tunnels struct {
	host   Host
	probes *linkproto.Tunnels
	name   string // the host's own
	// defined reports whether controllers define a switch; it is called in the loop.
	defined func(sw string) bool
	told    func()
	done    chan struct{}
	// dead are the endpoints that do not answer, by switch: never changed, but replaced.
	dead atomic.Pointer[map[string]map[netip.Addr]bool]

	mu      sync.Mutex
	now     map[string]ring
	keys    []fabric.Secret // the cluster's
	id      string
	reports linkproto.TunnelReports
}

// ring is the tunnel of one switch.
type ring struct {
	linkproto.TunnelWant
	defined bool
	names   map[netip.Addr]string
}

// FollowTunnels starts without tunnels. name is this host's own, told is called when results are others, from a
// goroutine that may wait.
func FollowTunnels(h Host, open linkproto.Opener, send linkproto.PacketSender, name string, defined func(string) bool,
	told func()) *Tunnels {
	t := &Tunnels{host: h, name: name, defined: defined, told: told, now: map[string]ring{},
		done: make(chan struct{})}
	t.dead.Store(&map[string]map[netip.Addr]bool{})
	t.probes = linkproto.StartTunnels(open, send, h.Log, t.found)
	return t
}

// Close ends the probes.
func (t *Tunnels) Close() error {
	close(t.done)
	return t.probes.Close()
}

// Settled updates what is probed: the tunnels of switches with a health check, and the proxies of all that replicate in
// two tiers. A switch of the file answers the probes of others in any case: each host has a file of its own.
func (t *Tunnels) Settled(now InForce) {
	rings := map[string]ring{}
	for _, sw := range now.Plan.Switches {
		if sw.Tunnel == nil || !sw.HealthCheck && !overlay.TwoTier(sw.Tunnel) && t.defined(sw.Name) {
			continue
		}
		reach, fact := now.Reach[sw.Name], now.Facts[sw.Tunnel.ID]
		if len(fact.Endpoints)*len(reach.Endpoints) == 0 || now.Tunnels[sw.Name] == 0 {
			continue
		}
		r := ring{defined: t.defined(sw.Name), names: map[netip.Addr]string{}}
		r.Ifindex, r.Port = now.Tunnels[sw.Name], uint16(sw.Tunnel.Port)
		r.Own, r.MTU, r.Pairs = slices.Clone(fact.Endpoints), sw.MTU+tagInside(sw), sw.HealthCheck
		for _, e := range reach.Endpoints {
			r.Others = append(r.Others, e.Address)
			r.names[e.Address] = e.Host
		}
		if overlay.TwoTier(sw.Tunnel) {
			r.Proxies = t.proxies(sw.Name, reach, fact.Endpoints[0])
		}
		rings[sw.Name] = r
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(rings) == 0 && len(t.now) == 0 {
		return
	}
	t.now = rings
	t.want()
}

// tagInside is how much longer frames with a VLAN inside a VNI are, in bytes.
func tagInside(sw *plan.Switch) int {
	for _, p := range sw.Ports {
		if p.VNI != 0 && p.Policy != nil && p.Policy.VLAN.V.Mode != plan.VLANNone {
			return 4
		}
	}
	return 0
}

// proxies are the endpoints that repeat this host's broadcasts in other subnets, and those that would if they answered.
func (t *Tunnels) proxies(sw string, r overlay.Reach, own netip.Addr) (list []netip.Addr) {
	here, dead := r.SubnetOf(own), (*t.dead.Load())[sw]
	for _, s := range r.Segments {
		served := map[netip.Prefix]bool{}
		for _, a := range s.Members {
			in := r.SubnetOf(a)
			if in == here || served[in] && !dead[a] {
				continue
			}
			served[in] = true
			list = append(list, a)
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return slices.Compact(list)
}

// want has the probes do what is to be done. The caller holds the lock.
func (t *Tunnels) want() {
	all := map[string]linkproto.TunnelWant{}
	for name, r := range t.now {
		w := r.TunnelWant
		switch {
		case !r.defined:
			w.Keys = []fabric.Secret{fabric.OpenKey()}
		default:
			w.Keys = t.keys
		}
		all[name] = w
	}
	t.probes.Want(all)
}

// Hand takes in the cluster's keys, and this host's id there; no keys are those of before.
func (t *Tunnels) Hand(id, name string, keys []fabric.Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id, t.name = id, cmp.Or(name, t.name)
	if len(keys) > 0 {
		t.keys = keys
		t.want()
	}
}

// Left makes the host one without controllers again.
func (t *Tunnels) Left() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id, t.keys = "", nil
	t.want()
}

// Takes reports whether tunnels are probed that need the cluster's keys.
func (t *Tunnels) Takes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.now {
		if r.defined {
			return true
		}
	}
	return false
}

func (t *Tunnels) found(r linkproto.TunnelReports) {
	t.mu.Lock()
	t.reports = r
	t.mu.Unlock()
	if t.bury(r) {
		t.host.Post(t.done, t.host.Settle)
	}
	t.told()
}

// bury notes which endpoints do not answer, and reports whether these are others than before.
func (t *Tunnels) bury(r linkproto.TunnelReports) bool {
	was, now, other := *t.dead.Load(), map[string]map[netip.Addr]bool{}, false
	for name, one := range r.By {
		alive, lost := map[netip.Addr]bool{}, map[netip.Addr]bool{}
		for _, x := range one.Results {
			a, err := netip.ParseAddr(x.To.Uplink)
			switch {
			case err != nil:
			case x.State == fabric.Lost:
				lost[a] = true
			case x.State == fabric.Passes:
				alive[a] = true
			}
		}
		now[name] = map[netip.Addr]bool{}
		for a := range lost {
			now[name][a] = !alive[a]
			other = other || was[name][a] != now[name][a]
		}
		for a, dead := range was[name] {
			other = other || dead != now[name][a]
		}
	}
	t.dead.Store(&now)
	return other
}

// Prefer returns what is known of the endpoints of others with those last that do not answer: where several endpoints
// could serve, one that answers does.
func (t *Tunnels) Prefer(sw string, r overlay.Reach) overlay.Reach {
	dead := (*t.dead.Load())[sw]
	if len(dead) == 0 {
		return r
	}
	r.Segments = slices.Clone(r.Segments)
	for i := range r.Segments {
		members := slices.Clone(r.Segments[i].Members)
		slices.SortStableFunc(members, func(a, b netip.Addr) int { return order(dead[a]) - order(dead[b]) })
		r.Segments[i].Members = members
	}
	return r
}

func order(dead bool) int {
	if dead {
		return 1
	}
	return 0
}

// TunnelsFound is what the probes through tunnels have found.
type TunnelsFound struct {
	// Defined are pairs of switches that controllers define, Own those of the file's.
	Defined, Own []fabric.Tunnel
	Counts       linkproto.ProbeCounts
}

// Found returns what the probes have found.
func (t *Tunnels) Found() (f TunnelsFound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.Counts = t.reports.Counts
	for name, r := range t.now {
		list := t.of(name, r)
		if r.defined {
			f.Defined = append(f.Defined, list...)
		} else {
			f.Own = append(f.Own, list...)
		}
	}
	for _, list := range [][]fabric.Tunnel{f.Defined, f.Own} {
		slices.SortFunc(list, func(a, b fabric.Tunnel) int {
			return cmp.Or(cmp.Compare(a.Switch, b.Switch), a.Own.Compare(b.Own), a.Peer.Compare(b.Peer))
		})
	}
	return f
}

// of returns what was found on one switch. The caller holds the lock.
func (t *Tunnels) of(name string, r ring) (list []fabric.Tunnel) {
	report := t.reports.By[name]
	at := map[[2]netip.Addr]int{}
	pair := func(own, peer netip.Addr) int {
		k := [2]netip.Addr{own, peer}
		i, known := at[k]
		if !known {
			i = len(list)
			at[k] = i
			list = append(list, fabric.Tunnel{Switch: name, Host: t.id, Name: t.name, Own: own, Peer: peer,
				PeerName: r.names[peer], MTU: r.MTU, Port: int(r.Port)})
		}
		return i
	}
	for _, x := range report.Results {
		own, err := netip.ParseAddr(x.From.Uplink)
		if err != nil {
			continue
		}
		peer, err := netip.ParseAddr(x.To.Uplink)
		if err != nil || !slices.Contains(r.Own, own) || !slices.Contains(r.Others, peer) {
			continue
		}
		list[pair(own, peer)].Result = x
	}
	for _, d := range report.Deaf {
		list[pair(d[0], d[1])].Deaf = true
	}
	for i := range list {
		list[i].Path, list[i].Astray = fabric.Path{}, ""
	}
	return list
}
