package sim

import (
	"time"

	"heddle/internal/plan"
)

// bridgeAgeing is how long a bridge remembers a silent station: the default of IEEE 802.1D, table 7-5, and of Linux.
const bridgeAgeing = 300 * time.Second

// bridge is a transparent learning bridge in the sense of IEEE 802.1D, clause 7: the physical switch of a lab. It knows
// neither Heddle's switches nor VLANs, and runs no spanning tree.
type bridge struct {
	w       *world
	ports   []*device
	station map[plan.MAC]sighting
}

// sighting is where a source address was seen last, and when.
type sighting struct {
	port *device
	at   time.Duration
}

func newBridge(w *world) *bridge { return &bridge{w: w, station: map[plan.MAC]sighting{}} }

func (b *bridge) plug(d *device) { b.ports = append(b.ports, d) }

// receive learns the source, then forwards the frame: to where the destination was seen, or everywhere if it was not,
// but never back.
func (b *bridge) receive(from *device, frame []byte) {
	if len(frame) < etherHeader {
		return
	}
	dst, src := plan.MAC(frame[0:6]), plan.MAC(frame[6:12])
	if !src.IsGroup() && !src.IsZero() {
		b.station[src] = sighting{port: from, at: b.w.loop.now}
	}
	if reserved(dst) {
		return
	}
	if s, known := b.station[dst]; known && !dst.IsGroup() && b.w.loop.now-s.at <= bridgeAgeing {
		if s.port != from {
			b.w.send(s.port, frame)
		}
		return
	}
	for _, p := range b.ports {
		if p != from {
			b.w.send(p, frame)
		}
	}
}

// reserved reports whether a destination is only for the next switch (IEEE 802.1D, table 7-10). A bridge without a
// spanning tree of its own forwards spanning-tree frames, like Linux's, so that others can find the loop.
func reserved(dst plan.MAC) bool {
	return [5]byte(dst[:5]) == [5]byte{0x01, 0x80, 0xc2, 0, 0} && dst[5] > 0 && dst[5] <= 0x0f
}
