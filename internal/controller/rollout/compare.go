package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Vitals is how a host was at one time: what it counted since it started, and how it is.
type Vitals struct {
	// Known: the counters are those of the host. Otherwise it has not said them: it is away or, by Silent, can't.
	Known  bool
	Silent string
	// Mute: it never says them, as its agent is of an earlier version.
	Mute bool
	// Start tells the starts of the host's agent apart; At is when it counted, by its clock, in seconds.
	Start string
	At    float64
	// Drops counts frames by reason. Sent and Handed are the frames that the ports sent and were handed, Ports is how
	// many ports that were.
	Drops        map[string]uint64
	Sent, Handed uint64
	Ports        int
	// LinksUp is how many uplinks are up, Shut how many ports are there and blocked or not to be had.
	LinksUp, Shut int
	// Trouble says why the host does not follow or is not reached: it is away, went back, or can't activate the change;
	// "" for none.
	Trouble string
}

// Usual is how a host was before the first stage, as it is kept with the rollout.
type Usual struct {
	Rates
	LinksUp int    `json:"linksUp,omitempty"`
	Shut    int    `json:"shut,omitempty"`
	Trouble string `json:"trouble,omitempty"`
}

// Rates are frames a second.
type Rates struct {
	// Known is false where nothing is known of the counters.
	Known  bool               `json:"known,omitempty"`
	Drops  map[string]float64 `json:"drops,omitempty"`
	Sent   float64            `json:"sent,omitempty"`
	Handed float64            `json:"handed,omitempty"`
	Ports  int                `json:"ports,omitempty"`
	passed float64            // seconds
}

// Calm is which part of what was usual the traffic of hosts without the change is: 1 where it is not less. It is kept
// with the rollout, as in the last stage there are no such hosts any more.
type Calm struct {
	Sent   float64 `json:"sent"`
	Handed float64 `json:"handed"`
}

// Watched is a host at two times.
type Watched struct {
	Name          string
	Before, After Vitals
}

// Bounds of what is taken for a fault.
const (
	// leastDrops is how many drops of one reason a second are too many on a host where there would have been none; on a
	// host with little traffic, shareDrops of what its ports send. timesDrops is by how many times they may rise.
	leastDrops = 5.0
	shareDrops = 0.2
	timesDrops = 2.0
	// fewDrops is how many frames say nothing, whatever the time.
	fewDrops = 10.0
	// leastFrames is from how many frames a second on the traffic of a host is looked at, lostTraffic the part of it
	// that may go.
	leastFrames = 20.0
	lostTraffic = 0.5
)

// Finding is something that hosts with the change have and the others do not.
type Finding struct {
	Host string `json:"host"`
	What string `json:"what"`
}

// mostFindings is how many are kept.
const mostFindings = 20

// Compare holds the hosts that have the change against those that do not, in the same minutes: what befell both has
// another cause. usual is how each host was before the first stage, by its name. calm is what was seen last of hosts
// without the change, nil for nothing; it returns what is seen of them now.
func Compare(changed, others []Watched, usual map[string]Usual, calm *Calm) (found []Finding, now *Calm) {
	beside := besides(others, usual, calm)
	for _, h := range changed {
		for _, what := range beside.findings(h, usual[h.Name]) {
			found = append(found, Finding{h.Name, what})
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.What, b.What))
	})
	if more := len(found) - mostFindings; more > 0 {
		found = append(found[:mostFindings], Finding{What: fmt.Sprintf("and %d findings more", more)})
	}
	return found, &Calm{beside.sent, beside.handed}
}

// findings are those of one host with the change.
func (n *neighbours) findings(h Watched, was Usual) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if h.After.Trouble != "" {
		if was.Trouble == "" && !n.troubled {
			add("%s", h.After.Trouble)
		}
		return list // it reports nothing that is worth a look
	}
	if lost := was.LinksUp - h.After.LinksUp; lost > 0 && !n.linksFell {
		add("%d of its uplinks went down", lost)
	}
	if more := h.After.Shut - was.Shut; more > 0 && !n.portsShut {
		add("%d of its ports are blocked or not to be had", more)
	}
	now := h.rates()
	if !now.Known {
		return list
	}
	for _, reason := range slices.Sorted(maps.Keys(now.Drops)) {
		rate := now.Drops[reason]
		most := timesDrops*max(was.Drops[reason], n.Drops[reason]) + min(leastDrops, shareDrops*now.Sent)
		if rate > most && rate*now.passed >= fewDrops {
			add("%.0f frames a second are dropped for %s, %s before; on hosts without the change %.0f", rate, reason,
				before(was, was.Drops[reason]), n.Drops[reason])
		}
	}
	if !was.Known || now.Ports < was.Ports { // a guest that has left took its traffic along
		return list
	}
	if expected := was.Sent * n.sent; expected >= leastFrames && now.Sent < lostTraffic*expected {
		add("its ports send %.0f frames a second, %.0f before", now.Sent, was.Sent)
	}
	if expected := was.Handed * n.handed; expected >= leastFrames && now.Handed < lostTraffic*expected {
		add("its ports are handed %.0f frames a second, %.0f before", now.Handed, was.Handed)
	}
	return list
}

// before is a rate of before, as far as it is known.
func before(was Usual, rate float64) string {
	if !was.Known {
		return "an unknown number"
	}
	return fmt.Sprintf("%.0f", rate)
}

// UsualOf is how hosts are in a time in which nothing changes.
func UsualOf(list []Watched) map[string]Usual {
	all := map[string]Usual{}
	for _, h := range list {
		all[h.Name] = Usual{Rates: h.rates(), LinksUp: h.After.LinksUp, Shut: h.After.Shut, Trouble: h.After.Trouble}
	}
	return all
}

// rates are not known of a host that has begun to count anew, or was looked at once.
func (h Watched) rates() (r Rates) {
	was, now := h.Before, h.After
	r.passed = now.At - was.At
	if !was.Known || !now.Known || was.Start != now.Start || r.passed <= 0 {
		return Rates{}
	}
	r.Known, r.Ports = true, now.Ports
	since := func(now, was uint64) float64 {
		if now < was { // a port has left, with what it had counted
			return 0
		}
		return float64(now-was) / r.passed
	}
	r.Drops = map[string]float64{}
	for reason, n := range now.Drops {
		if rate := since(n, was.Drops[reason]); rate > 0 {
			r.Drops[reason] = rate
		}
	}
	r.Sent, r.Handed = since(now.Sent, was.Sent), since(now.Handed, was.Handed)
	if now.Ports < was.Ports {
		r.Ports = 0 // how much traffic that was is not known
	}
	return r
}

// neighbours is what most hosts without the change do.
type neighbours struct {
	Drops map[string]float64
	// sent and handed are which part of what was usual the traffic is: 1 where it is not less.
	sent, handed                   float64
	linksFell, portsShut, troubled bool
}

// besides looks at the hosts without the change.
func besides(list []Watched, usual map[string]Usual, calm *Calm) *neighbours {
	if calm == nil {
		calm = &Calm{1, 1}
	}
	n := &neighbours{Drops: map[string]float64{}}
	drops := map[string][]float64{}
	var sent, handed []float64
	links, shut, troubled, known := 0, 0, 0, 0
	count := func(is bool, of *int) {
		if is {
			*of++
		}
	}
	for _, h := range list {
		was := usual[h.Name]
		count(h.After.Trouble == "" && h.After.LinksUp < was.LinksUp, &links)
		count(h.After.Trouble == "" && h.After.Shut > was.Shut, &shut)
		count(h.After.Trouble != "" && was.Trouble == "", &troubled)
		r := h.rates()
		if !r.Known {
			continue
		}
		known++
		for reason, rate := range r.Drops {
			drops[reason] = append(drops[reason], rate)
		}
		if was.Known && was.Sent > 0 {
			sent = append(sent, r.Sent/was.Sent)
		}
		if was.Known && was.Handed > 0 {
			handed = append(handed, r.Handed/was.Handed)
		}
	}
	for reason, values := range drops {
		n.Drops[reason] = median(append(values, make([]float64, known-len(values))...), 0)
	}
	n.sent, n.handed = min(1, median(sent, calm.Sent)), min(1, median(handed, calm.Handed))
	n.linksFell, n.portsShut, n.troubled = 2*links > len(list), 2*shut > len(list), 2*troubled > len(list)
	return n
}

func median(values []float64, none float64) float64 {
	if len(values) == 0 {
		return none
	}
	slices.Sort(values)
	return values[len(values)/2]
}
