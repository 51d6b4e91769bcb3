package advise

import (
	"fmt"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/plan"
)

func floodRules() []Rule {
	return []Rule{
		{"flood", api.FindingWrong, "a port floods the others",
			fmt.Sprintf("broadcast, multicast and unknown-unicast frames that a port sends to others in a second, in "+
				"the last half second or the time of `--for`: %d, or %d of multicast, and more without storm control; "+
				"with it, what storm control keeps from the others", stats.BroadcastFlood, stats.MulticastFlood),
			"every port of its VLAN, and every host behind the uplinks, gets a copy of each frame and has " +
				"to look at it",
			"Set a storm control rate at the port group, and find out why the guest sends that many.",
			flooding},
	}
}

// heldLeast is how many frames in a second storm control must drop to be reported: fewer are a burst that is over.
const heldLeast = 10

// floodKind is a kind of frame with many receivers.
type floodKind struct {
	// what is the kind in words, counter the name of its counter, field the field of storm control that limits it.
	what, counter, field string
	limit                func(*plan.StormControl) int
	// from is the rate, in frames per second, from which it is a flood, and which the proposed storm control allows:
	// guests need less.
	from  uint64
	level api.FindingLevel
}

// floodKinds returns the kinds. Much multicast may be intended, for example by a camera or a cluster, and is a note. So
// is unknown unicast: a guest sends it to stations outside if ports of its VLAN receive unknown unicast, and that is no
// fault of the guest.
func floodKinds() []floodKind {
	return []floodKind{
		{"broadcast", "packetsInBroadcast", "broadcast", func(s *plan.StormControl) int { return s.Broadcast.V },
			stats.BroadcastFlood, api.FindingWrong},
		{"multicast", "packetsInMulticast", "multicast", func(s *plan.StormControl) int { return s.Multicast.V },
			stats.MulticastFlood, api.FindingNote},
		{unknownKind, "unknownFlooded", "unknownUnicast", func(s *plan.StormControl) int { return s.UnknownUnicast.V },
			stats.UnknownFlood, api.FindingNote},
	}
}

const unknownKind = "unknown-unicast"

// flooding finds the ports that flood now: what they sent an hour ago needs no action.
func flooding(l *look) (found []api.Finding) {
	if l.RecentFor <= 0 {
		return nil
	}
	recent := make(map[plan.PortID]*counts, len(l.Recent))
	for i := range l.Recent {
		s := &l.Recent[i]
		recent[plan.PortID{Switch: s.Switch, Name: s.Name}] = newCounts(s)
	}
	l.eachPort(func(sw *plan.Switch, p *plan.Port, _ *counts) {
		c := recent[p.ID]
		if c == nil {
			return
		}
		for _, k := range floodKinds() {
			if f, ok := l.floods(sw, p, c, &k); ok {
				found = append(found, f)
			}
		}
		if f, ok := l.held(p, c); ok {
			found = append(found, f)
		}
	})
	return found
}

// aSecond returns the rate, per second, of what was counted recently.
func (l *look) aSecond(n uint64) uint64 {
	return uint64(float64(n) * float64(time.Second) / float64(l.RecentFor))
}

func (l *look) measured() string {
	return "measured for " + l.RecentFor.Round(100*time.Millisecond).String()
}

// floods returns the finding about a port without storm control that floods. Dropped frames reach nobody, and do not
// count.
func (l *look) floods(sw *plan.Switch, p *plan.Port, c *counts, k *floodKind) (f api.Finding, ok bool) {
	var dropped uint64
	for _, n := range c.drops {
		dropped += n
	}
	if k.what == unknownKind { // counts what others received
		dropped = 0
	}
	rate := l.aSecond(diff(c.named[k.counter], dropped))
	if rate < k.from || k.limit(&p.Policy.StormControl) > 0 {
		return f, false
	}
	f = onPort(p, "it sends %s a second (%s); each can reach %s", many(rate, k.what+" frame"), l.measured(),
		l.hearers(sw, p))
	f.Level = k.level
	if k.what == unknownKind {
		f = onPort(p, "it sends %s a second (%s), of which the ports that take unknown unicast get copies",
			many(rate, k.what+" frame"), l.measured())
		f.Level = k.level
		f.Why =
			"every nested host and every promiscuous port of its VLAN gets a copy of each frame; the way out does " +
				"not need that"
	}
	to := plan.Setting{Path: "stormControl." + k.field, Value: fmt.Sprint(k.from)}
	change := "Limit what it may send to many by storm control; then see in the guest why it sends that."
	if k.what == unknownKind {
		change = "Limit the copies by storm control: what is for outside still leaves by the uplink."
	}
	return remedy(f, l.explain.Fix(p, change, to)), true
}

// hearers describes who receives the frames that a port sends to all.
func (l *look) hearers(sw *plan.Switch, p *plan.Port) string {
	ports := uint64(0)
	for _, q := range sw.Ports {
		if q != p && l.up(q.ID) && sharesVLAN(&p.Policy.VLAN.V, &q.Policy.VLAN.V) {
			ports++
		}
	}
	text := many(ports, "other port")
	for _, u := range sw.Uplinks {
		if l.up(u.ID) {
			return text + " and the physical network"
		}
	}
	return text
}

// held returns the finding about a port that storm control limits now.
func (l *look) held(p *plan.Port, c *counts) (f api.Finding, ok bool) {
	kept := l.aSecond(c.dropped(abi.ReasonStormControl) + c.named["unknownNotFlooded"])
	if kept < heldLeast {
		return f, false
	}
	s := &p.Policy.StormControl
	var limits []string
	for _, limit := range []struct {
		what string
		rate int
	}{{"broadcast", s.Broadcast.V}, {"multicast", s.Multicast.V}, {"unknown unicast", s.UnknownUnicast.V}} {
		if limit.rate > 0 {
			limits = append(limits, fmt.Sprintf("%s %d/s", limit.what, limit.rate))
		}
	}
	f = onPort(p, "it sends %s and %s a second (%s); storm control (%s) holds it: it keeps %s a second from the others",
		many(l.aSecond(c.named["packetsInBroadcast"]), "broadcast frame"),
		many(l.aSecond(c.named["packetsInMulticast"]), "multicast frame"),
		l.measured(), strings.Join(limits, ", "), frames(kept))
	f.Level = api.FindingNote
	f.Why = "the others are spared; of what the guest sends to many, the part above the rate is lost, needed or not"
	f.Change = "See in the guest why it sends that many; the command shows what it sends. If it should, raise the rate."
	f.Command = l.command(p.ID, "capture", "--count", "20")
	return f, true
}
