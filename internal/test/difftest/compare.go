package difftest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"heddle/internal/model"
	"heddle/internal/plan"
)

// differ says how an outcome differs from the one wanted, "" when it does not.
func differ(want, got Outcome) string {
	var lines []string
	if want.Delivered != got.Delivered || want.Reason != got.Reason {
		lines = append(lines, fmt.Sprintf("disposition: want delivered=%v reason=%v, got delivered=%v reason=%v",
			want.Delivered, want.Reason, got.Delivered, got.Reason))
	}
	if !slices.EqualFunc(want.Copies, got.Copies, sameCopy) {
		lines = append(lines, differCopies(want.Copies, got.Copies)...)
	}
	if !slices.Equal(want.Refused, got.Refused) {
		w, g := sortedRefusals(want.Refused), sortedRefusals(got.Refused)
		if !slices.Equal(w, g) {
			lines = append(lines, fmt.Sprintf("refusals: want %v, got %v", w, g))
		}
	}
	return strings.Join(lines, "\n")
}

func sameCopy(a, b model.Copy) bool {
	return a.To == b.To && a.HostStack == b.HostStack && bytes.Equal(a.Frame, b.Frame)
}

func differCopies(want, got []model.Copy) (lines []string) {
	w, g := sortedCopies(want), sortedCopies(got)
	for len(w) > 0 || len(g) > 0 {
		switch {
		case len(g) == 0 || (len(w) > 0 && compareCopies(w[0], g[0]) < 0):
			lines = append(lines, fmt.Sprintf("copy missing: %s %x", copyName(w[0]), w[0].Frame))
			w = w[1:]
		case len(w) == 0 || compareCopies(w[0], g[0]) > 0:
			lines = append(lines, fmt.Sprintf("copy too many: %s %x", copyName(g[0]), g[0].Frame))
			g = g[1:]
		default:
			if !bytes.Equal(w[0].Frame, g[0].Frame) {
				lines = append(lines, fmt.Sprintf("copy for %s: want %x\n  got %x", copyName(w[0]), w[0].Frame,
					g[0].Frame))
			}
			w, g = w[1:], g[1:]
		}
	}
	return lines
}

func copyName(c model.Copy) string {
	if c.HostStack {
		return "the host's stack on " + c.To.String()
	}
	return c.To.String()
}

func compareIDs(a, b plan.PortID) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Name, b.Name))
}

func compareCopies(a, b model.Copy) int {
	if c := compareIDs(a.To, b.To); c != 0 || a.HostStack == b.HostStack {
		return c
	}
	if a.HostStack {
		return 1
	}
	return -1
}

func sortedCopies(list []model.Copy) []model.Copy {
	list = slices.Clone(list)
	slices.SortStableFunc(list, compareCopies)
	return list
}

func sortedRefusals(list []model.Refusal) []model.Refusal {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b model.Refusal) int {
		return cmp.Or(compareIDs(a.Port, b.Port), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// differMACs compares learned tables, the time of the last frame included.
func differMACs(want, got []model.MAC) string {
	if slices.Equal(want, got) {
		return ""
	}
	left := map[model.MAC]int{}
	for _, m := range got {
		left[m]++
	}
	var lines []string
	for _, m := range want {
		if left[m]--; left[m] < 0 {
			lines = append(lines, fmt.Sprintf("learned MAC missing: %s", entry(m)))
		}
	}
	for m, n := range left {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("learned MAC too many: %s", entry(m)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func entry(m model.MAC) string {
	return fmt.Sprintf("%s in %s of %s on %s, last seen at %v", m.MAC, m.Segment, m.Switch, m.Port, m.Seen)
}

// differCounters compares every counter of every port.
func differCounters(want, got map[plan.PortID]model.Counters) string {
	var lines []string
	for id, w := range want {
		g, ok := got[id]
		if !ok {
			lines = append(lines, fmt.Sprintf("counters of %s are missing", id))
			continue
		}
		lines = append(lines, differFields(id, w, g)...)
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			lines = append(lines, fmt.Sprintf("counters of %s, which is not in the plan", id))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func differFields(id plan.PortID, want, got model.Counters) (lines []string) {
	if !maps.Equal(want.DropsIn, got.DropsIn) {
		lines = append(lines, fmt.Sprintf("%s: dropsIn: want %v, got %v", id, want.DropsIn, got.DropsIn))
	}
	if !maps.Equal(want.RefusedOut, got.RefusedOut) {
		lines = append(lines, fmt.Sprintf("%s: refusedOut: want %v, got %v", id, want.RefusedOut, got.RefusedOut))
	}
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		if w.Field(i).CanUint() && w.Field(i).Uint() != g.Field(i).Uint() {
			lines = append(lines, fmt.Sprintf("%s: %s: want %d, got %d", id, w.Type().Field(i).Name, w.Field(i).Uint(),
				g.Field(i).Uint()))
		}
	}
	return lines
}

// differFlows compares what was metered.
func differFlows(want, got map[model.Metered]model.MeteredCounts) string {
	var lines []string
	for m, w := range want {
		if g, ok := got[m]; !ok {
			lines = append(lines, fmt.Sprintf("flow missing: %+v %+v", m, w))
		} else if g != w {
			lines = append(lines, fmt.Sprintf("flow %+v:\n  want %+v\n  got  %+v", m, w, g))
		}
	}
	for m, g := range got {
		if _, ok := want[m]; !ok {
			lines = append(lines, fmt.Sprintf("flow too many: %+v %+v", m, g))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
