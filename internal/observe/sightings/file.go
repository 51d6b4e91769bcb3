package sightings

import (
	"encoding/json"
	"fmt"

	"heddle/internal/plan"
)

// file is a ledger as it is written down. Place says for which boot and network namespace it counts: elsewhere there
// are other counters.
type file struct {
	Place string  `json:"place"`
	Ports []entry `json:"ports"`
}

type entry struct {
	ID     plan.PortID         `json:"id"`
	Counts map[string]Sighting `json:"counts,omitempty"`
	Absent *Absence            `json:"absent,omitempty"`
}

// Changed reports whether there is something to write that Encode has not written yet.
func (l *Ledger) Changed() bool { return l.changed }

// Encode writes the ledger down.
func (l *Ledger) Encode(place string) ([]byte, error) {
	f := file{Place: place, Ports: []entry{}}
	for id, counts := range l.seen {
		f.Ports = append(f.Ports, entry{ID: id, Counts: counts})
	}
	for id, absence := range l.absent {
		f.Ports = append(f.Ports, entry{ID: id, Absent: &absence})
	}
	b, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("write when findings were seen: %w", err)
	}
	l.changed = false
	return b, nil
}

// Decode reads a ledger that was written down. One of another place counts for nothing.
func Decode(b []byte, place string) (*Ledger, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return New(), fmt.Errorf("read when findings were seen: %w", err)
	}
	l := New()
	if f.Place != place {
		return l, nil
	}
	l.began, l.watched = true, true
	for _, e := range f.Ports {
		if len(e.Counts) > 0 {
			l.seen[e.ID] = e.Counts
		}
		if e.Absent != nil {
			l.absent[e.ID] = *e.Absent
		}
	}
	for _, counts := range l.seen {
		for what, s := range counts {
			if s.Before > s.N { // no ledger writes that
				delete(counts, what)
			}
		}
	}
	return l, nil
}
