package loadbalance

import (
	"cmp"
	"slices"
	"time"
)

// Interval is the length of a window: uplinks are judged once per window, by their mean load over it (S47).
const Interval = 30 * time.Second

// Threshold is the load, in percent of an uplink's speed, above which ports move.
const Threshold = 75.0

// gain is by how many percentage points a move must improve matters if it would also bring the other uplink above the
// threshold.
const gain = 5.0

// Uplink is an uplink and its mean traffic over a window, in bits per second. In comes from the wire.
type Uplink struct {
	Name    string
	Speed   float64 // bits per second, in each direction; above 0
	In, Out float64
}

// Load returns the load of the busier direction, in percent.
func (u Uplink) Load() float64 { return 100 * max(u.In, u.Out) / u.Speed }

// Port is a port with load-based teaming and its mean traffic through its uplink over a window, in bits per second.
type Port struct {
	Name    string
	Uplink  string   // the uplink it uses
	Choices []string // uplinks that it may use, all usable; with or without the one it uses
	In, Out float64
}

// Move takes a port to another uplink.
type Move struct {
	Port, From, To string
	// Load is the load of From, in percent, when the move was decided.
	Load float64
}

// Balance returns which ports move. From each uplink above the threshold, the most loaded first, it moves the port with
// the highest traffic among those that a move helps, to the least loaded uplink that the port may use; one port per
// uplink and window. A move helps if it relieves the uplink, and the other uplink stays below the threshold or both are
// clearly better off than the first was. So under a constant load moves come to an end, and a single port that fills an
// uplink does not wander. The moves are in the order in which they were decided; neither list is changed.
func Balance(uplinks []Uplink, ports []Port) (moves []Move) {
	now := slices.Clone(uplinks)
	by := make(map[string]*Uplink, len(now))
	for i := range now {
		by[now[i].Name] = &now[i]
	}
	loaded := slices.DeleteFunc(slices.Clone(uplinks), func(u Uplink) bool { return u.Load() <= Threshold })
	slices.SortStableFunc(loaded, func(a, b Uplink) int { return cmp.Compare(b.Load(), a.Load()) })
	moved := map[string]bool{}
	for _, u := range loaded {
		from := by[u.Name]
		if from.Load() <= Threshold {
			continue
		}
		for _, p := range busiest(ports, u.Name) {
			to := leastLoaded(p, from, by)
			if moved[p.Name] || to == nil || !helps(p, from, to) {
				continue
			}
			moves = append(moves, Move{Port: p.Name, From: from.Name, To: to.Name, Load: from.Load()})
			*from, *to = without(*from, p), with(*to, p)
			moved[p.Name] = true
			break
		}
	}
	return moves
}

// busiest returns the ports of an uplink, the one with the highest traffic first.
func busiest(ports []Port, uplink string) []Port {
	list := slices.DeleteFunc(slices.Clone(ports), func(p Port) bool { return p.Uplink != uplink })
	slices.SortStableFunc(list, func(a, b Port) int {
		return cmp.Or(cmp.Compare(b.In+b.Out, a.In+a.Out), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// leastLoaded returns the uplink that would have the least load with the port on it, nil if the port has no other
// choice.
func leastLoaded(p Port, from *Uplink, by map[string]*Uplink) (best *Uplink) {
	for _, name := range p.Choices {
		u := by[name]
		if u == nil || u == from {
			continue
		}
		if best == nil || with(*u, p).Load() < with(*best, p).Load() {
			best = u
		}
	}
	return best
}

func helps(p Port, from, to *Uplink) bool {
	before, relieved, taken := from.Load(), without(*from, p).Load(), with(*to, p).Load()
	return relieved < before && (taken <= Threshold || max(relieved, taken) <= before-gain)
}

func with(u Uplink, p Port) Uplink {
	u.In, u.Out = u.In+p.In, u.Out+p.Out
	return u
}

// without returns the uplink without the port's traffic, never below zero: a part of that traffic may have used another
// uplink during the window.
func without(u Uplink, p Port) Uplink {
	u.In, u.Out = max(0, u.In-p.In), max(0, u.Out-p.Out)
	return u
}
