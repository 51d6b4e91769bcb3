package live

import (
	"errors"
	"strings"
	"testing"
)

// A change of which the watcher saw nothing is counted; an experiment with only such changes ends.
func TestStarvedChangesAreCounted(t *testing.T) {
	const rounds = 3
	m := Measured{Row: row{name: "vlan"}}
	if err := m.take(m.leaks(nil, 5), rounds); err != nil || m.Starved != 1 {
		t.Fatalf("%v, %d starved", err, m.Starved)
	}
	if err := m.take(m.leaks([]int64{1, 4}, 5), rounds); err != nil || m.Starved != 1 || len(m.LastInOld) != 1 {
		t.Fatalf("%v, %d starved", err, m.Starved)
	}
	if notes := strings.Join(Report([]Measured{m}, 4).Notes, "\n"); !strings.Contains(notes,
		"row vlan: in 1 changes the machine was too busy") {
		t.Error(notes)
	}
	other := errors.New("other")
	if err := m.take(other, rounds); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
	for range rounds - 1 {
		if err := m.take(errStarved, rounds); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.take(errStarved, rounds); !errors.Is(err, errStarved) ||
		!strings.Contains(err.Error(), "4 of 6 changes") {
		t.Errorf("most changes measured nothing: %v", err)
	}
}
