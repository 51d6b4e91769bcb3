package fabric

import (
	"cmp"
	"slices"
	"strings"
)

// sets joins ends into sets.
type sets struct{ up map[End]End }

func newSets() *sets { return &sets{map[End]End{}} }

func (s *sets) root(e End) End {
	for {
		up, ok := s.up[e]
		if !ok || up == e {
			return e
		}
		if over, ok := s.up[up]; ok {
			s.up[e] = over
		}
		e = up
	}
}

func (s *sets) join(a, b End) {
	if x, y := s.root(a), s.root(b); x != y {
		s.up[x] = y
	}
}

// parts returns the sets of the known nodes, the largest first, each in order.
func (s *sets) parts(nodes []*Member, known map[End]bool) [][]End {
	by := map[End][]End{}
	for _, m := range nodes {
		if known[m.End] {
			by[s.root(m.End)] = append(by[s.root(m.End)], m.End)
		}
	}
	list := make([][]End, 0, len(by))
	for _, part := range by {
		slices.SortFunc(part, End.Compare)
		list = append(list, part)
	}
	slices.SortFunc(list, func(a, b []End) int { return cmp.Or(cmp.Compare(len(b), len(a)), a[0].Compare(b[0])) })
	return list
}

// names returns a key for a set of ends.
func names(list []End) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.Host + "/" + e.Uplink + "\x00")
	}
	return b.String()
}
