package segments

import "heddle/internal/overlay/span"

// Twice are the endpoint addresses that several hosts have.
func (h *Hub) Twice() []span.Twice {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Twice()
}
