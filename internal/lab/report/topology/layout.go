package topology

import (
	"slices"

	"heddle/internal/lab/report/chart"
)

// layOut gives each node a level and a position on it.
func (g *graph) layOut() {
	g.level()
	levels := map[int][]*node{}
	top := 0
	for _, n := range g.nodes {
		levels[n.level] = append(levels[n.level], n)
		top = max(top, n.level)
	}
	// Hosts first, from left to right in the order of the file; then, level by level, what is connected to them is
	// placed near them.
	var order []int
	for l := 0; l <= top; l++ {
		if slices.ContainsFunc(levels[l], func(n *node) bool { return n.kind == host }) {
			order = append(order, l)
		}
	}
	for l := range top + 1 {
		if !slices.Contains(order, l) {
			order = append(order, l)
		}
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return distance(a, order[0]) - distance(b, order[0]) })
	placed := map[*node]bool{}
	for _, l := range order {
		list := levels[l]
		slices.SortStableFunc(list, func(a, b *node) int {
			return sign(g.pull(a, placed) - g.pull(b, placed))
		})
		for i, n := range list {
			n.at = (float64(i) + 0.5) / float64(len(list))
			placed[n] = true
		}
	}
}

func distance(a, b int) int { return max(a-b, b-a) }

func sign(v float64) int {
	switch {
	case v < 0:
		return -1
	case v > 0:
		return 1
	}
	return 0
}

// pull returns the mean position of a node's neighbours that already have one.
func (g *graph) pull(n *node, placed map[*node]bool) float64 {
	sum, count := 0.0, 0.0
	for _, e := range g.edges {
		other := e.to
		if e.to == n {
			other = e.from
		}
		if (e.from == n || e.to == n) && placed[other] {
			sum, count = sum+other.at, count+1
		}
	}
	if count == 0 {
		return 0.5
	}
	return sum / count
}

// level puts guests above their hosts, and each part of the physical network as many levels below the hosts as it has
// hops to them.
func (g *graph) level() {
	depth := map[*node]int{}
	for _, n := range g.nodes {
		if n.kind == host {
			depth[n] = 0
		}
	}
	for range g.nodes { // as many rounds as the longest path has hops
		for _, e := range g.edges {
			upward := e.from.kind == guest || e.from.kind == nested
			if d, ok := depth[e.to]; ok && upward {
				depth[e.from] = d + 1
				continue
			}
			g.below(depth, e.from, e.to)
			g.below(depth, e.to, e.from)
		}
	}
	lowest := 0
	for _, n := range g.nodes {
		lowest = min(lowest, depth[n])
	}
	for _, n := range g.nodes {
		n.level = depth[n] - lowest
	}
}

// below puts a part of the physical network a level below its nearest neighbour.
func (g *graph) below(depth map[*node]int, from, to *node) {
	d, known := depth[from]
	if !known || to.kind != physical && to.kind != router || from.kind == guest {
		return
	}
	if have, ok := depth[to]; !ok || d-1 > have {
		depth[to] = d - 1
	}
}

// drawing converts the graph for the chart.
func (g *graph) drawing() chart.Drawing {
	var d chart.Drawing
	index := map[*node]int{}
	for i, n := range g.nodes {
		index[n] = i
		var lines []string
		for _, l := range n.lines {
			if l != "" {
				lines = append(lines, l)
			}
		}
		d.Boxes = append(d.Boxes, chart.Box{Name: n.name, Kind: string(n.kind), Lines: lines, Level: n.level, At: n.at,
			Class: map[kind]string{guest: "guest", nested: "nested", host: "host", physical: "physical",
				router: "router"}[n.kind]})
	}
	for _, e := range g.edges {
		d.Wires = append(d.Wires, chart.Wire{From: index[e.from], To: index[e.to], FromText: e.low, ToText: e.high})
	}
	return d
}
