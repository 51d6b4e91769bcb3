package cli

import (
	"fmt"
	"slices"

	"heddle/internal/api"
)

// LeaveOut returns a way to make a table narrower: without the column with that heading.
func LeaveOut(heading string) func(*Table) {
	return func(t *Table) {
		if t.Hidden == nil {
			t.Hidden = map[int]bool{}
		}
		t.Hidden[slices.Index(t.Head, heading)] = true
	}
}

// LeaveOutTheOnly does the same if all rows have the same text in that column.
func LeaveOutTheOnly(heading string) func(*Table) {
	return func(t *Table) {
		c := slices.Index(t.Head, heading)
		if !slices.ContainsFunc(t.Rows, func(r []string) bool { return r[c] != t.Rows[0][c] }) {
			LeaveOut(heading)(t)
		}
	}
}

// Columns returns the indexes of the columns with these headings.
func Columns(head []string, named ...string) map[int]bool {
	at := map[int]bool{}
	for i, h := range head {
		at[i] = slices.Contains(named, h)
	}
	return at
}

// BeforeNotes returns the lines below a list about programs before the switch on a port's or uplink's device.
func BeforeNotes(what string, list []api.ProgramBefore) (lines []string) {
	for _, p := range list {
		lines = append(lines, fmt.Sprintf("warning: %s: %s", what, p))
	}
	return lines
}

// LongestVLANs is how much of a trunk's VLANs a list shows, in characters; "port show" and JSON show all.
const LongestVLANs = 40

// LeastVLAN is the width for any access VLAN, leastProblem that for nearly all words for problems, in characters.
const (
	LeastVLAN    = len("access 4094")
	LeastProblem = len("address-changed")
)

// PaintPort colours a port's state, and its problem.
func PaintPort(d Deps, head []string) func(int, string, string) string {
	return func(c int, text, padded string) string {
		switch {
		case head[c] == "STATE":
			return d.Coloured(StateColour(text), padded)
		case head[c] == "PROBLEM" && text != "-":
			return d.Coloured(Yellow, padded)
		}
		return padded
	}
}

// AddOf adds a row, of a host if the table has their names.
func (t *Table) AddOf(host string, hosts bool, cells ...string) {
	if hosts {
		cells = append([]string{host}, cells...)
	}
	t.Add(cells...)
}

// Numbers returns a table of two columns of names and further columns of numbers, which are never cut.
func Numbers(names, heads []string) *Table {
	t := &Table{Head: append(names, heads...), Right: map[int]bool{}, Keep: map[int]bool{}, Names: map[int]bool{}}
	for i := range names {
		t.Names[i] = true
	}
	for i := range heads {
		t.Right[len(names)+i], t.Keep[len(names)+i] = true, true
	}
	return t
}

// ShortHeadings makes columns of short numbers narrower: PPS is packets per second, BPS bits per second.
func ShortHeadings(t *Table) {
	short := map[string]string{"IN PKT/S": "IN PPS", "OUT PKT/S": "OUT PPS", "IN BIT/S": "IN BPS",
		"OUT BIT/S": "OUT BPS",
		"IN DROP/S": "IN DROP", "OUT DROP/S": "OUT DROP",
		"FILTERED/S": "FILTERED", "LOST/S": "LOST",
		"IN DROPS": "IN DROP", "OUT DROPS": "OUT DROP", "PKTS IN": "PKT IN", "PKTS OUT": "PKT OUT",
		"PROMISCUOUS": "PROMISC", "MAC CHANGES": "MAC CHG"}
	for c, heading := range t.Head {
		if s, ok := short[heading]; ok {
			t.Head[c] = s
		}
	}
}
