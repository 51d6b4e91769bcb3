package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mostNamed is how many uplinks a text names.
const mostNamed = 4

// what returns ends for a finding.
func (j *judge) what(ends []End) (list []string) {
	for _, e := range ends {
		list = append(list, j.members[e].What())
	}
	slices.Sort(list)
	return list
}

// some returns the first few of a list for people.
func some(list []string) string {
	if n := len(list) - mostNamed; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:mostNamed], ", "), n)
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// Ranges returns VLANs for people, such as "10, 20-25"; 0 is "untagged".
func Ranges(vlans []uint16) string {
	var words []string
	for i := 0; i < len(vlans); i++ {
		first := vlans[i]
		for i+1 < len(vlans) && vlans[i+1] == vlans[i]+1 && first != 0 {
			i++
		}
		switch last := vlans[i]; {
		case first == 0:
			words = append(words, "untagged")
		case first == last:
			words = append(words, strconv.Itoa(int(first)))
		default:
			words = append(words, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(words, ", ")
}

// frames returns what does not pass: "VLAN 30 does not pass".
func frames(vlans []uint16) (subject, object string) {
	switch {
	case len(vlans) == 1 && vlans[0] == 0:
		return "untagged frames do not pass", "let untagged frames (the native VLAN) pass on"
	case len(vlans) == 1:
		return "VLAN " + Ranges(vlans) + " does not pass", "add it to the trunk of"
	}
	return "VLANs " + Ranges(vlans) + " do not pass", "add them to the trunk of"
}

// plugs returns where uplinks are plugged in, for people.
func (j *judge) plugs(ends []End) string {
	var list []string
	for _, e := range ends {
		m := j.members[e]
		list = append(list, cmp.Or(m.Plug, "the physical switch port of "+m.What()))
	}
	slices.Sort(list)
	return some(slices.Compact(list))
}

func sortedGroups(all map[groupKey]*group) []*group {
	return slices.SortedFunc(maps.Values(all), func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.key.sw, b.key.sw), cmp.Compare(a.key.ends, b.key.ends))
	})
}

// hosts returns the ids of the hosts that a group concerns: also those of the others, where nobody can tell which side
// it is.
func (g *group) hosts() []string {
	if g.equal {
		return hostsOf(slices.Concat(g.ends, g.others))
	}
	return hostsOf(g.ends)
}

func hostsOf(ends []End) (list []string) {
	for _, e := range ends {
		list = append(list, e.Host)
	}
	return list
}

// sayMissing makes findings of VLANs that are missing somewhere.
func (j *judge) sayMissing() {
	groups := sortedGroups(j.missing)
	swapped := j.mayBeSwapped(groups)
	for i, g := range groups {
		if other := swapped[g]; other != nil {
			if slices.Index(groups, other) > i {
				j.sayBoth(g, other)
			}
			continue
		}
		f := Finding{Code: VLANMissing, Switch: g.key.sw, VLANs: g.vlans, Ends: j.what(g.ends),
			Others: j.what(g.others), Hosts: g.hosts()}
		subject, object := frames(g.vlans)
		f.Text = fmt.Sprintf("%s between %s and %s", subject, some(f.Ends), some(f.Others))
		switch {
		case len(g.oneWay) == len(g.vlans):
			f.Code = WayOneWay
			f.Text += ": what one side sends arrives, and the echoes do not"
			f.Remedy = "look for a filter, a half-configured trunk or a broken fibre at " + j.plugs(g.ends)
		case len(g.ends) == 1 && !g.equal && len(g.vlans) > 1 && j.allOf(g):
			f.Code = NothingPasses
			f.Text = fmt.Sprintf("nothing passes at %s in any of its VLANs (%s), although its link is up", f.Ends[0],
				Ranges(g.vlans))
			f.Remedy = "look at " + j.plugs(g.ends) + ": its VLANs, whether it is blocked by spanning tree or " +
				"disabled, and the cable"
		case g.equal:
			f.Remedy = object + " " + j.plugs(slices.Concat(g.ends, g.others)) + ", and of the links between"
		case len(g.ends) == 1:
			f.Remedy = object + " " + j.plugs(g.ends)
		default:
			f.Remedy = object + " the links between the physical switches, or of " + j.plugs(g.ends)
		}
		j.out.Findings = append(j.out.Findings, f)
	}
}

// allOf reports whether a group of one uplink lacks all VLANs of that uplink that somebody else has.
func (j *judge) allOf(g *group) bool {
	n := 0
	for _, v := range j.members[g.ends[0]].VLANs {
		if len(j.nodes[ring{g.key.sw, "", v}]) > 1 {
			n++
		}
	}
	return n == len(g.vlans)
}

// sayApart makes findings of switches whose uplinks are in networks that are not connected: a note where that is so in
// all VLANs.
func (j *judge) sayApart() {
	for _, sw := range slices.Sorted(maps.Keys(j.apart)) {
		apart := j.apart[sw][false]
		if len(apart) == 0 {
			continue
		}
		ends := map[string]bool{}
		joined := 0
		for k, nodes := range j.nodes {
			if k.sw != sw {
				continue
			}
			if !slices.Contains(apart, k.vlan) && len(nodes) > 1 && len(j.parts[k]) > 1 {
				joined++
			}
			if slices.Contains(apart, k.vlan) {
				for _, m := range nodes {
					ends[m.Uplink] = true
				}
			}
		}
		f := Finding{Code: Apart, Note: true, Switch: sw, VLANs: apart, Ends: slices.Sorted(maps.Keys(ends))}
		if joined > 0 {
			subject, object := frames(apart)
			f.Code, f.Note = VLANMissing, false
			f.Text = fmt.Sprintf("%s between %s of switch %s, although other VLANs do", subject, some(f.Ends), sw)
			f.Remedy = object + " the links between their physical switches"
		} else {
			f.Text = fmt.Sprintf("%s of switch %s do not reach each other in any VLAN", some(f.Ends), sw)
			f.Remedy = "nothing, if they belong to separate networks; otherwise connect their physical switches"
		}
		j.out.Findings = append(j.out.Findings, f)
	}
}

// sayLow makes findings of long frames that do not pass.
func (j *judge) sayLow() {
	for _, g := range sortedGroups(j.low) {
		f := Finding{Code: MTULow, Switch: g.key.sw, VLANs: g.vlans, Ends: j.what(g.ends), Others: j.what(g.others),
			Hosts: g.hosts(), Have: g.have, Want: g.want}
		fit := "shorter ones do"
		if g.have > 0 {
			fit = fmt.Sprintf("those up to %d do", g.have)
		}
		f.Text = fmt.Sprintf("packets of %d bytes, the MTU of switch %s, do not pass between %s and %s (%s); %s",
			g.want, g.key.sw, some(f.Ends), some(f.Others), inVLANs(g.vlans), fit)
		at := j.plugs(g.ends)
		if g.equal {
			at = j.plugs(slices.Concat(g.ends, g.others))
		}
		f.Remedy = fmt.Sprintf("raise the MTU to at least %d at %s and on the way between, or lower the switch's",
			g.want, at)
		j.out.Findings = append(j.out.Findings, f)
	}
}

// teaming makes findings of ports that are bundled where they should not be, and the reverse.
func (j *judge) teaming() {
	said := map[[2]End]bool{}
	for _, k := range sortedRings(j.nodes) {
		for _, r := range j.paths[k] {
			a, b := j.members[r.From], j.members[r.To]
			pair := [2]End{r.From, r.To}
			if r.From.Host != r.To.Host || said[pair] {
				continue
			}
			f := Finding{Switch: k.sw, VLANs: []uint16{k.vlan}, Ends: []string{a.What(), b.What()},
				Hosts: hostsOf(pair[:])}
			parts := j.parts[k]
			switch {
			case bundled(a, b) && r.State == Passes:
				f.Code = NoBundle
				f.Text = fmt.Sprintf("%s and %s expect a bundle (%s), and the physical switch has none: they hear "+
					"each other", f.Ends[0], f.Ends[1], a.Bundle)
				f.Remedy = "make a port channel of " + j.plugs(pair[:]) + ", or use another teaming policy"
			case !bundled(a, b) && r.State == Lost && parts[r.From] != 0 && parts[r.From] == parts[r.To]:
				f.Code = Bundle
				f.Text = fmt.Sprintf("%s and %s do not hear each other, and reach the same others: their ports seem "+
					"to be bundled, and the team does not expect that", f.Ends[0], f.Ends[1])
				f.Remedy = "take " + j.plugs(pair[:]) + " out of their port channel, or set the teaming policy to " +
					"ip-hash"
			default:
				continue
			}
			said[pair] = true
			j.out.Findings = append(j.out.Findings, f)
		}
	}
}

// quality makes findings of paths that lose probes, or are slow.
func (j *judge) quality() {
	var delays []time.Duration
	for _, list := range j.paths {
		for _, r := range list {
			if r.State == Passes && r.Delay > 0 {
				delays = append(delays, r.Delay)
			}
		}
	}
	limit := slowLeast
	if len(delays) > 0 {
		slices.Sort(delays)
		limit = max(limit, delays[len(delays)/2]*slowFactor)
	}
	worst := map[[2]End]Result{}
	vlans := map[[2]End][]uint16{}
	for _, k := range sortedRings(j.nodes) {
		for _, r := range j.paths[k] {
			if r.State != Passes || r.Loss < lossyPercent && r.Delay < limit {
				continue
			}
			pair := [2]End{r.From, r.To}
			vlans[pair] = append(vlans[pair], k.vlan)
			if w, ok := worst[pair]; !ok || r.Loss > w.Loss || r.Delay > w.Delay {
				worst[pair] = r
			}
		}
	}
	for pair, r := range worst {
		a, b := j.members[pair[0]], j.members[pair[1]]
		f := Finding{Code: Slow, Note: true, Switch: pair[0].Switch, VLANs: vlans[pair], Ends: []string{a.What()},
			Others: []string{b.What()}, Hosts: hostsOf(pair[:])}
		f.Text = fmt.Sprintf("between %s and %s probes take %s, much longer than elsewhere", a.What(), b.What(),
			r.Delay.Round(100*time.Microsecond))
		if r.Loss >= lossyPercent {
			f.Code = Lossy
			f.Text = fmt.Sprintf("between %s and %s %d %% of the probes get lost", a.What(), b.What(), r.Loss)
		}
		f.Remedy = "look at errors and queues of " + j.plugs(pair[:]) + " and between, and at the load of the hosts"
		j.out.Findings = append(j.out.Findings, f)
	}
}
