package loops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/plan"
)

// Segment is one broadcast domain of one switch.
type Segment struct {
	Switch string `json:"switch"`
	VLAN   uint16 `json:"vlan"` // 0 = untagged
	AD     bool   `json:"ad,omitzero"`
}

func (s Segment) String() string {
	switch {
	case s.VLAN == 0:
		return "the untagged VLAN of switch " + s.Switch
	case s.AD:
		return fmt.Sprintf("802.1ad VLAN %d of switch %s", s.VLAN, s.Switch)
	}
	return fmt.Sprintf("VLAN %d of switch %s", s.VLAN, s.Switch)
}

// End is where a path leaves a switch, or enters one.
type End struct {
	ID     plan.PortID
	Number uint32 // the port's or uplink's, on its host
	Uplink bool
	// Free: the port's policy has loop detection off. The port is never blocked.
	Free    bool
	Segment Segment
}

// Way is one path of frames outside the switches: a frame that leaves by Out enters by In.
type Way struct{ Out, In End }

// Loop is a closed path: a frame that leaves by the first Out enters by the first In, is flooded by that switch, leaves
// by the next Out, and so on, until it enters where the first path begins.
type Loop struct {
	// Port is the port to block so that the loop is open; zero if no port of the loop can be blocked.
	Port plan.PortID
	Ways []Way
}

// leadsTo reports whether a frame that entered by w leaves by next: the switch floods it in its segment, but neither
// back to the port by which it entered nor from an uplink to an uplink.
func (w Way) leadsTo(next Way) bool {
	return w.In.Segment == next.Out.Segment && w.In.ID != next.Out.ID && (!w.In.Uplink || !next.Out.Uplink)
}

// Find returns the loops that the paths form, each with the port that opens it, so that blocking all these ports leaves
// no loop. The same paths give the same answer in any order.
func Find(ways []Way) []Loop {
	ways = slices.Clone(ways)
	slices.SortFunc(ways, compareWays)
	ways = slices.Compact(ways)
	var found []Loop
	out := leaving(ways)
	for from := 0; from < len(ways); {
		loop := shortest(ways, out, from)
		if loop == nil {
			from++
			continue
		}
		port := victim(loop, ways)
		found = append(found, Loop{port, loop})
		closed := func(w Way) bool { return w == loop[0] }
		if port != (plan.PortID{}) {
			closed = func(w Way) bool { return w.uses(port) }
		}
		// The paths before were in no loop, and are in none without these.
		kept := slices.DeleteFunc(slices.Clone(ways[:from]), closed)
		ways = append(kept, slices.DeleteFunc(slices.Clone(ways[from:]), closed)...)
		from, out = len(kept), leaving(ways)
	}
	return found
}

// leaving returns the indexes of the paths that leave each segment.
func leaving(ways []Way) map[Segment][]int {
	out := map[Segment][]int{}
	for i, w := range ways {
		out[w.Out.Segment] = append(out[w.Out.Segment], i)
	}
	return out
}

func (w Way) uses(port plan.PortID) bool { return w.Out.ID == port || w.In.ID == port }

func compareWays(a, b Way) int { return cmp.Or(compareEnds(a.Out, b.Out), compareEnds(a.In, b.In)) }

func compareEnds(a, b End) int {
	bit := map[bool]int{true: 1}
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID.Switch, b.ID.Switch),
		cmp.Compare(a.ID.Name, b.ID.Name),
		cmp.Compare(a.Segment.Switch, b.Segment.Switch), cmp.Compare(a.Segment.VLAN, b.Segment.VLAN),
		cmp.Compare(bit[a.Segment.AD], bit[b.Segment.AD]), cmp.Compare(bit[a.Uplink], bit[b.Uplink]),
		cmp.Compare(bit[a.Free], bit[b.Free]))
}

// shortest returns the shortest loop through the path, nil if it is in no loop.
func shortest(ways []Way, out map[Segment][]int, first int) []Way {
	before := make([]int, len(ways))
	for i := range before {
		before[i] = -1
	}
	queue := []int{first}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, next := range out[ways[at].In.Segment] {
			if !ways[at].leadsTo(ways[next]) {
				continue
			}
			if next == first {
				return pathTo(ways, before, at, first)
			}
			if before[next] < 0 {
				before[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func pathTo(ways []Way, before []int, at, first int) []Way {
	path := []Way{ways[at]}
	for at != first {
		at = before[at]
		path = append(path, ways[at])
	}
	slices.Reverse(path)
	return path
}

// victim returns the port of a loop that is blocked: of the ports by which frames enter, in either direction, the one
// with the highest number, which is the youngest. A frame that enters by a port was sent by that port's own owner, so
// that nobody can have another's port blocked by sending frames that were meant for others. If frames enter only by
// uplinks, or by ports that may not be blocked, a port by which they leave is returned.
func victim(loop, ways []Way) plan.PortID {
	var in, out []End
	for _, w := range loop {
		in, out = append(in, w.In), append(out, w.Out)
		if slices.Contains(ways, Way{Out: w.In, In: w.Out}) {
			in = append(in, w.Out)
		}
	}
	for _, side := range [][]End{in, out} {
		best := End{}
		for _, e := range side {
			if !e.Uplink && !e.Free && e.Number > best.Number {
				best = e
			}
		}
		if best.Number > 0 {
			return best.ID
		}
	}
	return plan.PortID{}
}

// segments returns all segments through which the loop goes.
func (l Loop) segments() (list []Segment) {
	for _, w := range l.Ways {
		for _, s := range []Segment{w.Out.Segment, w.In.Segment} {
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// outside reports whether the loop goes through the physical network.
func (l Loop) outside() bool {
	return slices.ContainsFunc(l.Ways, func(w Way) bool { return w.Out.Uplink || w.In.Uplink })
}

// Same reports whether two loops go through the same ports, uplinks and segments.
func (l Loop) Same(o Loop) bool {
	at := func(a, b End) bool { return a.ID == b.ID && a.Uplink == b.Uplink && a.Segment == b.Segment }
	return slices.EqualFunc(l.Ways, o.Ways, func(a, b Way) bool { return at(a.Out, b.Out) && at(a.In, b.In) })
}

// String describes the path of the loop.
func (l Loop) String() string {
	parts := make([]string, len(l.Ways))
	for i, w := range l.Ways {
		parts[i] = fmt.Sprintf("frames that leave by %s come in by %s", w.Out.name(), w.In.name())
		if w.Out.Segment != w.In.Segment {
			parts[i] += " in " + w.In.Segment.String()
		}
	}
	return strings.Join(parts, ", ") + "; it begins in " + l.Ways[0].Out.Segment.String()
}

func (e End) name() string {
	if e.Uplink {
		return "uplink " + e.ID.Name
	}
	return "port " + e.ID.Name
}
