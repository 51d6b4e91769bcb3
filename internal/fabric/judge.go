package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Code says what a finding is about.
type Code string

// The codes.
const (
	// VLANMissing: a VLAN does not pass at an uplink, or between two groups of them.
	VLANMissing Code = "vlan-missing"
	// NothingPasses: no VLAN passes at an uplink whose link is up.
	NothingPasses Code = "nothing-passes"
	// CablesSwapped: nothing passes at two uplinks of a host, and the cables of the two may be swapped.
	CablesSwapped Code = "cables-swapped"
	// MTULow: the physical network drops frames of the switch's MTU.
	MTULow Code = "mtu"
	// NoBundle: a team with IP hash, or a LAG, whose ports the physical switch does not bundle.
	NoBundle Code = "no-bundle"
	// Bundle: a physical switch bundles ports of uplinks that stand alone.
	Bundle Code = "bundle"
	// WayOneWay: what one uplink sends arrives, and nothing comes back.
	WayOneWay Code = "one-way"
	// Lossy and Slow: probes get lost, or take much longer than elsewhere.
	Lossy Code = "lossy"
	Slow  Code = "slow"
	// Apart: the uplinks of a switch are in networks that are not connected. This may be intended.
	Apart Code = "apart"
)

// Finding is something that is not as it should be, or a note.
type Finding struct {
	Code   Code
	Note   bool // it need not be wrong
	Switch string
	VLANs  []uint16
	// Ends are the uplinks that it is about, Others some of those with which they were compared: HOST/UPLINK.
	Ends, Others []string
	// Hosts are the ids of the hosts that it concerns.
	Hosts []string
	// Have and Want are lengths in bytes of layer 3, of an MTU; 0 for unknown.
	Have, Want int
	// Text and Remedy are for people.
	Text, Remedy string
}

// Key names what a finding is about: one of the same key is the same, though its figures are others.
func (f *Finding) Key() string {
	return fmt.Sprint(f.Code, f.Switch, f.VLANs, f.Ends, f.Others, f.Have)
}

// Verdict is what the results of all hosts mean.
type Verdict struct {
	Findings []Finding
	Splits   []Split
	// Uplinks, VLANs and Paths are how many were looked at; Passing is how many paths pass, Waiting how many are not
	// known yet.
	Uplinks, VLANs, Paths, Passing, Waiting int
	// Lonely is how many VLANs have one uplink alone: nobody can tell whether they pass.
	Lonely int
	// Tunnels are pairs of tunnel endpoints: how many pass, and how many are not known yet.
	Tunnels, TunnelsPassing, TunnelsWaiting int
}

// AddTunnels adds what was found through tunnels.
func (v *Verdict) AddTunnels(list []Tunnel) {
	for i := range list {
		v.Tunnels++
		switch list[i].State {
		case Passes:
			v.TunnelsPassing++
		case Unknown:
			v.TunnelsWaiting++
		default:
			if list[i].Mute {
				v.TunnelsWaiting++
			}
		}
	}
	notes := len(v.Findings)
	for notes > 0 && v.Findings[notes-1].Note {
		notes--
	}
	v.Findings = slices.Insert(v.Findings, notes, Tunnels(list)...)
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return cmp.Compare(boolInt(a.Note), boolInt(b.Note)) })
}

// Bounds of lossy and slow.
const (
	lossyPercent = 5
	slowFactor   = 10
	slowLeast    = 20 * time.Millisecond
)

// judge gathers what belongs to one verdict.
type judge struct {
	members map[End]*Member
	paths   map[ring][]Result // uplink ""
	nodes   map[ring][]*Member
	missing map[groupKey]*group
	low     map[groupKey]*group
	apart   map[string]map[bool][]uint16 // by switch: VLANs in which its uplinks are connected, or not
	parts   map[ring]map[End]int
	out     Verdict
}

// group is a set of uplinks with the VLANs that do not pass between them and the others.
type group struct {
	key    groupKey
	ends   []End
	others []End
	vlans  []uint16
	oneWay []uint16
	equal  bool // nobody can tell which side it is
	have   int
	want   int
}

type groupKey struct{ sw, ends, against string }

// Judge finds out what the results of all hosts mean. deaf are uplinks that do not hear the echoes which another one
// sends them.
func Judge(members []Member, results []Result, deaf []Deaf) *Verdict {
	j := &judge{members: map[End]*Member{}, paths: map[ring][]Result{}, nodes: map[ring][]*Member{},
		missing: map[groupKey]*group{}, low: map[groupKey]*group{}, apart: map[string]map[bool][]uint16{},
		parts: map[ring]map[End]int{}}
	for i := range members {
		m := &members[i]
		j.members[m.End] = m
		j.out.Uplinks++
		for _, v := range m.VLANs {
			k := ring{m.Switch, "", v}
			j.nodes[k] = append(j.nodes[k], m)
		}
	}
	j.take(results, deaf)
	for _, k := range sortedRings(j.nodes) {
		j.vlan(k)
	}
	j.sayMissing()
	j.sayApart()
	j.sayLow()
	j.teaming()
	j.quality()
	for i := range j.out.Findings {
		slices.Sort(j.out.Findings[i].Hosts)
		j.out.Findings[i].Hosts = slices.Compact(j.out.Findings[i].Hosts)
	}
	slices.SortStableFunc(j.out.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(boolInt(a.Note), boolInt(b.Note)), cmp.Compare(a.Switch, b.Switch),
			cmp.Compare(a.Code, b.Code), slices.Compare(a.Ends, b.Ends), slices.Compare(a.VLANs, b.VLANs))
	})
	return &j.out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sortedRings(nodes map[ring][]*Member) []ring {
	list := make([]ring, 0, len(nodes))
	for k := range nodes {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b ring) int { return cmp.Or(cmp.Compare(a.sw, b.sw), cmp.Compare(a.vlan, b.vlan)) })
	return list
}

// take sorts results by VLAN, without those of uplinks that are gone.
func (j *judge) take(results []Result, deaf []Deaf) {
	unheard := map[Deaf]bool{}
	for _, d := range deaf {
		unheard[d] = true
	}
	for _, r := range results {
		a, b := j.members[r.From], j.members[r.To]
		if a == nil || b == nil || !has(a, r.VLAN) || !has(b, r.VLAN) {
			continue
		}
		j.out.Paths++
		switch {
		case r.State == Unknown:
			j.out.Waiting++
		case r.State == Passes:
			j.out.Passing++
		case unheard[Deaf{r.From.ID(), r.To.ID(), r.VLAN}]:
			r.State = OneWay
		}
		k := ring{r.From.Switch, "", r.VLAN}
		j.paths[k] = append(j.paths[k], r)
	}
}

func has(m *Member, vlan uint16) bool {
	_, ok := slices.BinarySearch(m.VLANs, vlan)
	return ok
}

// vlan looks at one VLAN of one switch.
func (j *judge) vlan(k ring) {
	nodes := j.nodes[k]
	j.out.VLANs++
	if len(nodes) < 2 {
		j.out.Lonely++
		return
	}
	whole := newSets()
	known := map[End]bool{}
	for _, r := range j.paths[k] {
		a, b := j.members[r.From], j.members[r.To]
		if bundled(a, b) || r.State == Unknown {
			continue
		}
		known[r.From], known[r.To] = true, true
		if r.State == Passes {
			whole.join(r.From, r.To)
		}
	}
	for _, m := range nodes {
		for _, o := range nodes {
			if m != o && bundled(m, o) {
				whole.join(m.End, o.End)
			}
		}
	}
	parts := whole.parts(nodes, known)
	j.note(k, parts)
	if len(parts) > 1 {
		j.split(k, parts)
	}
	for _, part := range parts {
		j.mtu(k, part)
	}
}

// note keeps in which part each uplink is.
func (j *judge) note(k ring, parts [][]End) {
	j.parts[k] = map[End]int{}
	for i, part := range parts {
		for _, e := range part {
			j.parts[k][e] = i + 1
		}
	}
}

// split takes in that a VLAN falls into parts.
func (j *judge) split(k ring, parts [][]End) {
	j.out.Splits = append(j.out.Splits, Split{k.sw, k.vlan, parts})
	if byUplink(parts) {
		if others, _ := j.across(k, parts[0]); len(others) == 0 {
			return // nobody has tried yet
		}
		j.of(k.sw)[false] = append(j.of(k.sw)[false], k.vlan)
		return
	}
	j.of(k.sw)[true] = append(j.of(k.sw)[true], k.vlan)
	main := parts[0]
	for _, part := range parts[1:] {
		others, oneWay := j.across(k, part)
		if len(others) == 0 {
			continue // nobody has tried yet
		}
		key := groupKey{sw: k.sw, ends: names(part)}
		equal := len(part) == len(main)
		if equal {
			key.against = names(main)
		}
		g := j.missing[key]
		if g == nil {
			g = &group{key: key, ends: part, others: others, equal: equal}
			if equal {
				g.ends, g.others = main, part
			}
			j.missing[key] = g
		}
		g.vlans = append(g.vlans, k.vlan)
		if oneWay {
			g.oneWay = append(g.oneWay, k.vlan)
		}
	}
}

func (j *judge) of(sw string) map[bool][]uint16 {
	if j.apart[sw] == nil {
		j.apart[sw] = map[bool][]uint16{}
	}
	return j.apart[sw]
}

// across returns the uplinks outside of a part that were probed from it or probe it, and whether something arrives on
// one way.
func (j *judge) across(k ring, part []End) (others []End, oneWay bool) {
	for _, r := range j.paths[k] {
		in, out := slices.Contains(part, r.From), slices.Contains(part, r.To)
		if in == out || r.State == Passes || r.State == Unknown {
			continue
		}
		if in {
			others = append(others, r.To)
		} else {
			others = append(others, r.From)
		}
		oneWay = oneWay || r.State == OneWay
	}
	slices.SortFunc(others, End.Compare)
	return slices.Compact(others), oneWay
}

// byUplink reports whether each part has uplinks of names that no other part has.
func byUplink(parts [][]End) bool {
	of := map[string]int{}
	for i, part := range parts {
		for _, e := range part {
			if at, ok := of[e.Uplink]; ok && at != i {
				return false
			}
			of[e.Uplink] = i
		}
	}
	return true
}

// mtu looks at long frames within a part of a VLAN.
func (j *judge) mtu(k ring, part []End) {
	whole, known := newSets(), map[End]bool{}
	in := map[End]bool{}
	for _, e := range part {
		in[e] = true
	}
	var nodes []*Member
	fits, wants := map[End]int{}, map[End]int{}
	for _, r := range j.paths[k] {
		if !in[r.From] || !in[r.To] || r.State != Passes || r.Full == Unknown ||
			bundled(j.members[r.From], j.members[r.To]) {
			continue
		}
		known[r.From], known[r.To] = true, true
		if r.Full == Passes {
			whole.join(r.From, r.To)
			continue
		}
		for _, e := range []End{r.From, r.To} {
			fits[e] = max(fits[e], r.Fits)
			wants[e] = max(wants[e], min(j.members[r.From].MTU, j.members[r.To].MTU))
		}
	}
	for _, m := range j.nodes[k] {
		if known[m.End] {
			nodes = append(nodes, m)
		}
	}
	if parts := whole.parts(nodes, known); len(parts) > 1 {
		j.lowIn(k, parts, fits, wants)
	}
}

// lowIn keeps which parts long frames do not reach.
func (j *judge) lowIn(k ring, parts [][]End, fits, wants map[End]int) {
	for _, part := range parts[1:] {
		have, want := 0, 0
		for _, e := range part {
			have, want = max(have, fits[e]), max(want, wants[e])
		}
		if want == 0 {
			continue // nobody has tried yet
		}
		key := groupKey{sw: k.sw, ends: names(part)}
		equal := len(part) == len(parts[0])
		if equal {
			key.against = names(parts[0])
		}
		g := j.low[key]
		if g == nil {
			g = &group{key: key, ends: part, others: parts[0], equal: equal}
			if equal {
				g.ends, g.others = parts[0], part
			}
			j.low[key] = g
		}
		g.vlans, g.want, g.have = append(g.vlans, k.vlan), max(g.want, want), max(g.have, have)
	}
}
