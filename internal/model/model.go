package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/overlay"
	"heddle/internal/plan"
)

// Host is every switch of one host, with what they have learned and counted. It is not safe for concurrent use. Times
// are durations since any fixed instant. They never go backwards and have millisecond granularity.
type Host struct {
	switches map[string]*vswitch
	places   map[plan.PortID]arrivalPoint
	tallies  map[plan.PortID]*tally
	rules    stages
	explain  bool
	reach    map[string]overlay.Reach  // by switch; nil while nothing is told of other hosts
	flows    map[Metered]MeteredCounts // since they were last taken
	run      run                       // reused, so that a frame costs few allocations
}

// arrivalPoint is where a frame can arrive: exactly one of its fields is set.
type arrivalPoint struct {
	sw     *vswitch
	port   *port
	uplink *uplink
}

// stages are the functions that a frame passes. Only tests replace them.
type stages struct {
	packet                         func(frame []byte) packet
	admit, classify, learn, lookUp func(*run) abi.Reason
	guard, stormControl            func(*run) abi.Reason
	receivers                      func(*run) (ports []*port, up *uplink, noUplink bool)
	choose                         func(p *port, f *header, source plan.MAC) path
	member                         func(g *lag, f *header, s Segment) *uplink
	portRules                      func(*run, *port) abi.Reason
	uplinkRules                    func(*run, *uplink) abi.Reason
	hostRules                      func(*run, *uplink) abi.Reason
	fromHost                       func(*run) (leaves bool)
	passControl                    func(*run)
	wire                           func(r *run, tagged bool) []byte
}

func rules() stages {
	return stages{
		packet: readPacket, admit: admit, guard: guard, classify: classify, learn: learn, lookUp: lookUp,
		stormControl: stormControl, receivers: receivers, choose: choose, member: member,
		portRules: portRules, uplinkRules: uplinkRules, hostRules: hostRules, fromHost: fromHost, wire: wire,
		passControl: passControl,
	}
}

// New makes the switches of a plan, with nothing learned.
func New(p *plan.Plan, f plan.Facts, now time.Duration) *Host {
	h := &Host{tallies: map[plan.PortID]*tally{}, rules: rules()}
	h.SetPlan(p, f, now)
	return h
}

// SetPlan changes the plan and the facts at an instant. Learned entries stay if the new plan allows them; counters stay
// with their ports. Neither p nor f may be changed afterwards.
func (h *Host) SetPlan(p *plan.Plan, f plan.Facts, now time.Duration) {
	before := h.switches
	h.switches = make(map[string]*vswitch, len(p.Switches))
	h.places = map[plan.PortID]arrivalPoint{}
	for _, ps := range p.Switches {
		sw := h.index(ps, f, tablesOf(before[ps.Name]))
		h.switches[ps.Name] = sw
		if over := h.split(sw, f, tablesOf(before[ps.Name+overlaySpace])); over != nil {
			h.switches[ps.Name+overlaySpace] = over
			h.cross(over, before[ps.Name+overlaySpace], now)
			h.place(over)
		}
		h.place(sw)
	}
	h.dropTallies()
	h.Sweep(now)
}

// tablesOf returns what a switch remembers; nothing for a new one.
func tablesOf(before *vswitch) *tables {
	if before != nil {
		return before.tables
	}
	return &tables{learned: map[station]*entry{}, sent: map[station]time.Duration{}, awake: map[string]uint32{},
		speaks: map[string]speaker{}}
}

// place makes a switch's ports and uplinks the places where its frames arrive.
func (h *Host) place(sw *vswitch) {
	for _, o := range sw.ports {
		h.places[o.ID] = arrivalPoint{sw: sw, port: o}
	}
	for _, u := range sw.uplinks {
		h.places[u.ID] = arrivalPoint{sw: sw, uplink: u}
	}
	sw.rebind()
}

// rebind assigns learned entries to the ports of the present plan. Entries and waits of ports that are gone are
// removed.
func (sw *vswitch) rebind() {
	for who, e := range sw.learned {
		if e.port = sw.named[e.port.ID.Name]; e.port == nil {
			delete(sw.learned, who)
		}
	}
	for name := range sw.awake {
		if sw.named[name] == nil {
			delete(sw.awake, name)
		}
	}
}

// Sweep removes learned entries that are not valid any more.
func (h *Host) Sweep(now time.Duration) {
	for _, sw := range h.switches {
		sw.sweep(now)
	}
}

// Explain switches the recording of Result.Steps on or off. It is off in a new Host, because writing sentences costs
// more than forwarding.
func (h *Host) Explain(on bool) { h.explain = on }

// MACs lists the learned entries that are not swept yet, sorted by switch, segment and MAC.
func (h *Host) MACs() []MAC {
	var list []MAC
	for name, sw := range h.switches {
		name = strings.TrimSuffix(name, overlaySpace)
		for who, e := range sw.learned {
			list = append(list, MAC{Switch: name, Segment: who.Segment, MAC: who.mac, Port: e.port.ID, Seen: e.seen})
		}
	}
	slices.SortFunc(list, func(a, b MAC) int {
		return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.VNI, b.VNI), cmp.Compare(a.VLAN, b.VLAN),
			compareBool(a.AD, b.AD), slices.Compare(a.MAC[:], b.MAC[:]))
	})
	return list
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
