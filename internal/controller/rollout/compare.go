package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Vitals is how a host was at one time: what it counted since it started, and how it is.
type Vitals struct {
	At time.Time
	// Drops counts frames by reason, Frames those that the host's ports sent and were handed.
	Drops  map[string]uint64
	Frames uint64
	// LinksUp is how many uplinks are up, Ports how many ports are.
	LinksUp, Ports int
	// Trouble says why the host does not follow or is not reached: it is away, went back, or can't activate the change;
	// "" for none.
	Trouble string
}

// Watched is a host at the beginning of a stage's time and at its end.
type Watched struct {
	Name          string
	Before, After Vitals
}

// Bounds of what is taken for a fault.
const (
	// leastDrops is how many drops of one reason a second are too many on a host where there would have been none;
	// timesDrops by how many times they may rise.
	leastDrops = 5.0
	timesDrops = 2.0
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

// Compare holds the hosts that have the change against those that do not, in the same minutes: what befell both has
// another cause. usual is what each host did before the stage, in frames a second; nil where nothing is known.
func Compare(changed, others []Watched, usual map[string]Rates) (found []Finding) {
	add := func(host, format string, args ...any) {
		found = append(found, Finding{host, fmt.Sprintf(format, args...)})
	}
	beside := medians(others)
	for _, h := range changed {
		if h.After.Trouble != "" && h.Before.Trouble == "" {
			add(h.Name, "%s", h.After.Trouble)
			continue
		}
		if lost := h.Before.LinksUp - h.After.LinksUp; lost > 0 && !beside.linksFell {
			add(h.Name, "%d of its uplinks went down", lost)
		}
		if lost := h.Before.Ports - h.After.Ports; lost > 0 && !beside.portsFell {
			add(h.Name, "%d of its ports are not up any more", lost)
		}
		now, known := h.rates()
		if !known {
			continue
		}
		was := usual[h.Name]
		for _, reason := range slices.Sorted(maps.Keys(now.Drops)) {
			rate := now.Drops[reason]
			expected := max(was.Drops[reason], beside.Drops[reason])
			if rate > timesDrops*expected+leastDrops {
				add(h.Name, "%.0f frames a second are dropped for %s, %.0f before; on hosts without the change %.0f",
					rate, reason, was.Drops[reason], beside.Drops[reason])
			}
		}
		expected := was.Frames
		if beside.Frames > 0 && beside.Frames < beside.usual(others, usual) { // it is quieter everywhere
			expected *= beside.Frames / beside.usual(others, usual)
		}
		if expected >= leastFrames && now.Frames < lostTraffic*expected {
			add(h.Name, "its ports have %.0f frames a second, %.0f before", now.Frames, was.Frames)
		}
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.What, b.What))
	})
	return found
}

// Rates are frames a second.
type Rates struct {
	Drops  map[string]float64
	Frames float64
}

// RatesOf are what hosts did in a time, by their names; those that started again within it are left out.
func RatesOf(list []Watched) map[string]Rates {
	all := map[string]Rates{}
	for _, h := range list {
		if r, known := h.rates(); known {
			all[h.Name] = r
		}
	}
	return all
}

// rates are false for a host that has begun to count anew, or was looked at once.
func (h Watched) rates() (r Rates, known bool) {
	passed := h.After.At.Sub(h.Before.At).Seconds()
	if passed <= 0 || h.After.Frames < h.Before.Frames {
		return r, false
	}
	r.Drops = map[string]float64{}
	for reason, n := range h.After.Drops {
		if was := h.Before.Drops[reason]; n > was {
			r.Drops[reason] = float64(n-was) / passed
		}
	}
	r.Frames = float64(h.After.Frames-h.Before.Frames) / passed
	return r, true
}

// neighbours is what most hosts without the change did.
type neighbours struct {
	Rates
	linksFell, portsFell bool
}

func medians(list []Watched) (n neighbours) {
	drops := map[string][]float64{}
	var frames []float64
	links, ports := 0, 0
	rates := RatesOf(list)
	for _, r := range rates {
		frames = append(frames, r.Frames)
		for reason, rate := range r.Drops {
			drops[reason] = append(drops[reason], rate)
		}
	}
	for _, h := range list {
		if h.After.LinksUp < h.Before.LinksUp {
			links++
		}
		if h.After.Ports < h.Before.Ports {
			ports++
		}
	}
	n.Drops = map[string]float64{}
	for reason, values := range drops {
		n.Drops[reason] = median(append(values, make([]float64, len(rates)-len(values))...))
	}
	n.Frames = median(frames)
	n.linksFell, n.portsFell = 2*links > len(list), 2*ports > len(list)
	return n
}

// usual is what most of the hosts without the change did before.
func (neighbours) usual(others []Watched, usual map[string]Rates) float64 {
	var frames []float64
	for _, h := range others {
		frames = append(frames, usual[h.Name].Frames)
	}
	return median(frames)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
