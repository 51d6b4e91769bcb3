package locations

import (
	"fmt"
	"time"

	"heddle/internal/agent/segments"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
)

// mostAddresses is how many addresses of one MAC the controllers are told of.
const mostAddresses = 64

// boundAt is an address in a segment of a switch.
type boundAt struct {
	sw string
	overlay.Address
}

// addressing is the addresses that the tunnels' programs have heard: which of them are behind this host's ports.
type addressing struct {
	// here are those that the controllers are told of; told when each was heard when they were told last.
	here map[span.VNI]map[span.Key]span.Claim
	told map[span.VNI]map[span.Key]int64
	// contested are those of which an event was reported.
	contested map[boundAt]bool
	// read is when the tables were last read, and took how long it and what follows took.
	read time.Time
	took time.Duration
}

// answers reports whether a tunnel of this host answers for stations of other hosts.
func (l *Part) answers() bool {
	for _, sw := range l.host.Active().Plan.Switches {
		if sw.Tunnel != nil && sw.Tunnel.Hold > 0 {
			return true
		}
	}
	return false
}

// hears reports whether it is time to read what the tunnels' programs have heard. A flood of addresses takes no more of
// the loop than its share.
func (l *Part) hears() bool {
	n := &l.addressing
	if l.host.Active().Applied == nil || !l.answers() {
		n.here, n.contested = nil, nil
		return false
	}
	return time.Since(n.read) >= n.took*readShare
}

// hearNeighbours reads what the tunnels' programs have heard: it forgets who has left this host, reports who contests
// an address, and has the controllers told who has which address. learned are the MACs behind ports of overlay
// segments.
func (l *Part) hearNeighbours(learned []observe.MACEntry) {
	n := &l.addressing
	begun := time.Now()
	defer func() {
		n.read = time.Now()
		n.took = n.read.Sub(begun)
	}()
	all, err := l.host.Kernel().Bindings()
	if err != nil {
		l.host.Complain("read who has which address in overlay segments", err)
		return
	}
	l.contested(all)
	present := l.behind(learned)
	now := time.Now()
	var left []overlay.Bound
	n.here = map[span.VNI]map[span.Key]span.Claim{}
	held := map[overlay.Key]int{}
	for i := range all {
		b := &all[i]
		key := learnedAt(b.VNI, b.VLAN, b.MAC)
		switch {
		case !b.Here:
		case present.at(b.Switch, key) == plan.PortID{}:
			left = append(left, *b)
		case b.Contested || b.Unverified || b.IP.Is6() && (!b.Advertised || b.Router) || !l.IsDefined(b.Switch):
		case held[key] < mostAddresses:
			held[key]++
			put(&n.here, span.VNI(b.VNI), span.AddressKey(b.IP).In(b.VLAN), span.Claim{Source: span.Learned,
				Owner: b.MAC, Since: now.Add(-b.Age).UnixMilli()})
		}
	}
	if err := l.host.Kernel().Unbind(left); err != nil {
		l.host.Complain("forget the addresses of guests that have left", err)
	}
	l.renew()
}

// put adds to a map of maps.
func put[M ~map[A]map[B]C, A, B comparable, C any](all *M, a A, b B, c C) {
	if *all == nil {
		*all = M{}
	}
	if (*all)[a] == nil {
		(*all)[a] = map[B]C{}
	}
	(*all)[a][b] = c
}

// behind says at which ports of this host the MACs of each overlay segment of each switch are: the ports' own ones, and
// those that were learned.
func (l *Part) behind(learned []observe.MACEntry) behind {
	all := behind{}
	for i := range learned {
		m := &learned[i]
		put(&all, m.Switch, learnedAt(m.VNI, m.VLAN, m.MAC), m.Port)
	}
	d := l.host.Active().Applied
	for _, sw := range d.Plan.Switches {
		if sw.Tunnel == nil {
			continue
		}
		macs := compile.EffectiveMACs(sw, d.Facts)
		for i, p := range sw.Ports {
			w := l.host.Wait(p.ID)
			_, attached := d.Attachments[p.ID]
			if p.VNI != 0 && i < len(macs) && attached && (w == nil || w.Awake) {
				put(&all, sw.Name, insideOf(p, macs[i].MAC), p.ID)
			}
		}
	}
	return all
}

// contested reports addresses that two MACs claim, each once while it lasts.
func (l *Part) contested(all []overlay.Bound) {
	now := map[boundAt]bool{}
	for i := range all {
		b := &all[i]
		if !b.Contested {
			continue
		}
		at := boundAt{b.Switch, b.Address}
		now[at] = true
		if l.addressing.contested[at] {
			continue
		}
		text := fmt.Sprintf("%s in VNI %d is claimed by %s", b.IP, b.VNI, b.MAC)
		if b.Rival != (plan.MAC{}) {
			text += " and by " + b.Rival.String()
		}
		l.host.Events.Publish(event.Event{Kind: event.Conflict, Switch: b.Switch, MAC: b.MAC.String(),
			Address: b.IP.String(), Text: text + ": this host answers for neither. Give one of the guests another " +
				"address, or find out which of them pretends"})
	}
	l.addressing.contested = now
}

// renew has the controllers told once more of owners that were heard since, so that other hosts go on answering.
func (l *Part) renew() {
	n := &l.addressing
	hold := map[span.VNI]time.Duration{}
	for _, sw := range l.defined() {
		for _, vni := range sw.VNIs() {
			hold[span.VNI(vni)] = sw.Tunnel.Hold
		}
	}
	told := map[span.VNI]map[span.Key]int64{}
	var again []segments.Noted
	for vni, items := range n.here {
		for key, claim := range items {
			was, known := n.told[vni][key]
			switch {
			case !known:
				was = claim.Since
			case claim.Since-was > (hold[vni] / 3).Milliseconds():
				was = claim.Since
				again = append(again, segments.Noted{VNI: vni, Key: key, Claim: claim, Anew: true})
			}
			put(&told, vni, key, was)
		}
	}
	n.told = told
	l.say()
	if len(again) > 0 {
		l.keeper.Note(again)
	}
}

// addresses adds what was heard to what this host has.
func (l *Part) addresses(have map[span.VNI]map[span.Key]span.Claim) {
	for vni, items := range l.addressing.here {
		if have[vni] == nil {
			continue
		}
		for key, claim := range items {
			have[vni][key] = claim
		}
	}
}

// bind tells the kernel of one switch who has which address on other hosts.
func (l *Part) bind(sw *plan.Switch, all bool, c segments.Change) error {
	has := map[uint32]bool{}
	for _, vni := range sw.VNIs() {
		has[vni] = true
	}
	var list []overlay.Binding
	var gone []overlay.Address
	for _, b := range c.Bound {
		if has[b.VNI] && b.Age < sw.Tunnel.Hold {
			list = append(list, b)
		}
	}
	for _, a := range c.Unbound {
		if has[a.VNI] {
			gone = append(gone, a)
		}
	}
	if !all && len(list)+len(gone) == 0 {
		return nil
	}
	return l.host.Kernel().Bind(sw.Name, all, list, gone)
}
