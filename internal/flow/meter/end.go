package meter

import "heddle/internal/flow"

// EndAt ends the flows at the points that are no longer metered. Their counts must have been drained before.
func (m *Meter) EndAt(now Instant, points func(flow.Point) bool) {
	slots := map[uint16]bool{}
	for slot, p := range m.points {
		if points(p) {
			slots[slot] = true
		}
	}
	m.forceEnd(slots, now)
}
