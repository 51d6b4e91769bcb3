package meter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"heddle/internal/flow"
	"heddle/internal/host/ownfile"
)

// pointsFile records which port each slot in the tables belongs to, so that a later agent reports a port's counts as
// that port's, even if another port has the slot by then.
const pointsFile = "flows.points.json"

func readPoints(dir string) (flow.Points, error) {
	data, err := ownfile.Read(filepath.Join(dir, pointsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var p flow.Points
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, pointsFile), err)
	}
	return p, nil
}

func writePoints(dir string, p flow.Points) error {
	name := filepath.Join(dir, pointsFile)
	if len(p) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := ownfile.Replace(name, data); err != nil {
		return fmt.Errorf("keep the observation points: %w", err)
	}
	return nil
}

// reused are the slots that belong to another port now, or whose overlay segments have numbers of former ones.
func reused(old, now flow.Points) map[uint16]bool {
	slots := map[uint16]bool{}
	for slot, p := range old {
		if q, ok := now[slot]; ok && (q.ID != p.ID || q.Number != p.Number || p.Renumbered(q)) {
			slots[slot] = true
		}
	}
	return slots
}

// without are the slots that belong to no port now.
func without(old, now flow.Points) map[uint16]bool {
	slots := map[uint16]bool{}
	for slot := range old {
		if _, ok := now[slot]; !ok {
			slots[slot] = true
		}
	}
	return slots
}

// with are the points of now, and those of old whose slots belong to no port now.
func with(now, old flow.Points) flow.Points {
	all := maps.Clone(now)
	if all == nil {
		all = flow.Points{}
	}
	for slot := range without(old, now) {
		all[slot] = old[slot]
	}
	return all
}

// setPoints records which slot belongs to whom; it writes the file before anything is counted for the new points.
func (m *Meter) setPoints(points flow.Points) error {
	if maps.Equal(points, m.points) {
		return nil
	}
	maps.DeleteFunc(m.gone, func(slot uint16, _ bool) bool { return points[slot] != m.points[slot] })
	m.mu.Lock()
	m.points = points
	m.mu.Unlock()
	return errors.Join(writePoints(m.o.Dir, points), m.route())
}

// route records to which switch each slot belongs. A switch without settings gets the default ones.
func (m *Meter) route() error {
	var bySlot []*switchFlows
	var errs []error
	for slot, p := range m.points {
		k, err := m.keep(p.ID.Switch, DefaultSettings())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for len(bySlot) <= int(slot) {
			bySlot = append(bySlot, nil)
		}
		bySlot[slot] = k
	}
	m.bySlot = bySlot
	return errors.Join(errs...)
}

// at is the switch that a slot belongs to, nil if that is not known.
func (m *Meter) at(slot uint16) *switchFlows {
	if int(slot) >= len(m.bySlot) {
		return nil
	}
	return m.bySlot[slot]
}

// owner is like at, and asks the source about a point that is newer than the drain.
func (m *Meter) owner(slot uint16) (*switchFlows, error) {
	if k := m.at(slot); k != nil {
		return k, nil
	}
	err := m.setPoints(with(m.o.Source.Points(), m.points))
	return m.at(slot), err
}

// observed says whether the switch has a point.
func (m *Meter) observed(k *switchFlows) bool {
	for _, other := range m.bySlot {
		if other == k {
			return true
		}
	}
	return false
}

// Points are the observation points, including those that are gone but whose flows are not reported yet. Any goroutine
// may call it; the result must not be changed.
func (m *Meter) Points() flow.Points {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.points
}
