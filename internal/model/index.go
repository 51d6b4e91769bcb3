package model

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// vswitch is one switch under the present plan and facts, with the tables that survive a change of them.
type vswitch struct {
	plan    *plan.Switch
	ports   []*port // every port of the plan, in its order
	uplinks []*uplink
	named   map[string]*port
	// effective MAC → connected ports; the one whose wait began last comes first
	owner   map[plan.MAC][]*port
	members map[Segment][]*port // connected ports that admit a segment; filled on demand
	devices map[plan.MAC]bool   // device MACs of connected uplinks
	*tables
	crossing *Crossing // of overlay segments; nil while nothing is told of other hosts
}

// tables are what a switch remembers of the frames it saw.
type tables struct {
	learned map[station]*entry
	sent    map[station]time.Duration // S91: when a port last sent from here
	pruneAt int                       // size of sent at which old marks are removed
	awake   map[string]uint32         // S99: the highest number of a wait that has ended, by port
	speaks  map[string]speaker        // S111: who sent last from a port's MAC, by that port
}

// station is a MAC in a segment.
type station struct {
	Segment
	mac plan.MAC
}

// entry is a learned MAC.
type entry struct {
	port *port
	seen time.Duration
	// outside is when the first frame came from outside that is too late for an echo; 0 = none has.
	outside time.Duration
}

// speaker is the port that sent last from a MAC of another port.
type speaker struct {
	mac  plan.MAC
	port string
}

// port is a vNIC or a host interface under the present plan and facts.
type port struct {
	*plan.Port
	fact      plan.Fact
	connected bool
	mac       plan.MAC // effective; zero is nobody's
	violation bool     // S3: its adapter uses a MAC that it may not use
	active    []path
	standby   []path
	addresses []netip.Prefix // S108: those that its owner may use under an address guard
	tally     *tally
}

// uplink is an uplink under the present plan and facts.
type uplink struct {
	*plan.Uplink
	fact      plan.Fact
	connected bool
	hosts     bool // carries the host's own traffic
	tunnel    bool // carries overlay segments
	tally     *tally
}

// usable reports whether teaming may choose the uplink; nil stands for a name that is not in the plan.
func (u *uplink) usable() bool {
	return u != nil && u.connected && u.fact.Up && u.fact.Out == nil && !u.Drained
}

// index prepares a switch for forwarding: it resolves names to pointers, and adds facts and effective MACs.
func (h *Host) index(p *plan.Switch, f plan.Facts, t *tables) *vswitch {
	sw := &vswitch{
		plan: p, tables: t, named: map[string]*port{}, owner: map[plan.MAC][]*port{},
		members: map[Segment][]*port{}, devices: map[plan.MAC]bool{},
	}
	uplinks, paths := map[string]*uplink{}, map[string]path{}
	for _, pu := range p.Uplinks {
		u := &uplink{Uplink: pu, tally: h.tallyOf(pu.ID)}
		u.fact, u.connected = f[pu.ID]
		if u.connected && !u.fact.DeviceMAC.IsZero() {
			sw.devices[u.fact.DeviceMAC] = true
		}
		sw.uplinks = append(sw.uplinks, u)
		uplinks[pu.ID.Name] = u
		paths[pu.ID.Name] = path{uplink: u}
	}
	for _, pg := range p.LAGs {
		g := &lag{LAG: pg}
		for _, name := range pg.Uplinks {
			g.members = append(g.members, uplinks[name])
		}
		paths[pg.Name] = path{lag: g}
	}
	for _, pp := range p.Ports {
		o := &port{Port: pp, tally: h.tallyOf(pp.ID)}
		o.fact, o.connected = f[pp.ID]
		o.active = pick(paths, pp.Policy.Teaming.Active.V)
		o.standby = pick(paths, pp.Policy.Teaming.Standby.V)
		o.addresses = guardAddresses(pp)
		sw.ports = append(sw.ports, o)
		sw.named[pp.ID.Name] = o
	}
	sw.settleMACs()
	sw.own()
	for _, u := range sw.uplinks {
		u.hosts = sw.carriesHost(u)
	}
	return sw
}

func pick(paths map[string]path, names []string) []path {
	list := make([]path, len(names))
	for i, n := range names {
		list[i] = paths[n]
	}
	return list
}

// settleMACs gives every port its effective MAC (S3, S4, C1, D2; frame-rules §1).
func (sw *vswitch) settleMACs() {
	for i, p := range sw.ports {
		p.mac = p.InitialMAC
		if m := p.fact.SeenMAC; !m.IsZero() && m != p.InitialMAC {
			free := !sw.devices[m] && !m.IsGroup() && !sw.hasStranger(p, i, m)
			if free && (p.Policy.MACChanges.V || p.InitialMAC.IsZero()) { // S4
				p.mac = m
			} else { // S3, D2
				p.violation = true
			}
		}
	}
}

// own records which connected ports have a MAC.
func (sw *vswitch) own() {
	clear(sw.owner)
	for _, p := range sw.ports {
		if p.connected && !p.mac.IsZero() {
			sw.owner[p.mac] = append(sw.owner[p.mac], p)
		}
	}
	for mac, all := range sw.owner {
		slices.SortStableFunc(all, func(a, b *port) int { return cmp.Compare(b.fact.Wait, a.fact.Wait) })
		sw.owner[mac] = all[:min(len(all), abi.MaxSameMAC)]
	}
}

// hasStranger reports whether a MAC belongs to a port that is not p's sibling (S111): as the initial MAC of another
// port, or as the effective MAC of a port before the i-th.
func (sw *vswitch) hasStranger(p *port, i int, m plan.MAC) bool {
	for k, q := range sw.ports {
		if q != p && (q.InitialMAC == m || k < i && q.mac == m) && !p.siblingOf(q) {
			return true
		}
	}
	return false
}

// siblingOf reports whether two ports may use each other's MACs (S111).
func (p *port) siblingOf(q *port) bool {
	may := func(p *port) bool { return p.Policy.ForgedTransmits.V && p.Policy.MACChanges.V }
	return p.Owner != "" && p.Owner == q.Owner && may(p) && may(q)
}

// waits reports whether the port's guest runs elsewhere (S99).
func (sw *vswitch) waits(p *port) bool {
	return p.fact.Waits() && sw.awake[p.ID.Name] < p.fact.Wait
}

// ownerOf is the port that a MAC belongs to: of the ports that share it, the first whose guest runs here; nil for none.
func (sw *vswitch) ownerOf(mac plan.MAC) *port {
	for _, p := range sw.owner[mac] {
		if !sw.waits(p) {
			return p
		}
	}
	return nil
}

// admits reports whether the port is a member of a segment (frame-rules §4).
func (p *port) admits(s Segment) bool {
	v := &p.Policy.VLAN.V
	if s.VNI != p.VNI {
		return false
	}
	s.VNI = 0
	switch v.Mode {
	case plan.VLANAccess:
		return s == Segment{VLAN: v.ID}
	case plan.VLANTrunk: // S7, S24: an 802.1ad trunk is in no 802.1Q segment, and vice versa
		return v.Set.Has(s.VLAN) && (s.VLAN == 0 || s.AD == v.AD)
	default: // S23
		return s == Segment{}
	}
}

// in lists the connected ports that admit a segment, in the plan's order. Callers must not change the list.
func (sw *vswitch) in(s Segment) []*port {
	if list, ok := sw.members[s]; ok {
		return list
	}
	var list []*port
	for _, p := range sw.ports {
		if p.connected && p.admits(s) {
			list = append(list, p)
		}
	}
	sw.members[s] = list
	return list
}

// learns reports whether sources behind the port are learned.
func (p *port) learns() bool { return p.Policy.Learning.Enabled.V }

// floods reports whether the port receives unicast for unknown destinations (S13, S14).
func (p *port) floods() bool { return p.learns() && p.Policy.Learning.UnicastFlooding.V }

// promiscuous reports whether the port gets a copy of unicast for others: its policy accepts that, and its owner was
// not seen to refuse it (S5, S6, D1).
func (p *port) promiscuous() bool {
	return p.Policy.Promiscuous.V && p.fact.Promiscuous != plan.AsksNo
}

func (p *port) teaming() spec.TeamingPolicy { return p.Policy.Teaming.Policy.V }

// expired reports whether a port's entry has been silent for longer than the port's ageing time (S17, S93, D5).
func (e *entry) expired(now time.Duration) bool {
	return now-e.seen > e.port.Policy.Learning.Ageing.V
}
