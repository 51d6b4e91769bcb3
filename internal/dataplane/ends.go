package dataplane

import (
	"sync/atomic"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
	"heddle/internal/flow"
	"heddle/internal/overlay"
)

// whereabouts finds the endpoints of flows in the tunnels' live tables. A host without a tunnel has none.
type whereabouts struct {
	maps atomic.Pointer[tunnelMaps]
	// ports are the UDP ports of the tunnels, by slot; it is replaced as a whole.
	ports atomic.Pointer[map[uint32]uint16]
}

// anyAge is a time at which no location is too old: the frames of a flow have been sent.
const anyAge = 0

// Locate implements flow.Locator. What can't be read is not known.
func (w *whereabouts) Locate(c flow.Crossing) (flow.Ends, bool) {
	m := w.maps.Load()
	if m == nil {
		return flow.Ends{}, false
	}
	var t abi.Tunnel
	if m.Tunnels.Lookup(uint32(c.Tunnel), &t) != nil {
		return flow.Ends{}, false
	}
	segment, key := uint32(c.Tunnel)<<16|uint32(c.Segment), overlay.Key{VNI: c.VNI, MAC: c.Other}
	l, known, err := located(*m, t, segment, key, anyAge, 1)
	if err != nil || !known {
		return flow.Ends{}, false
	}
	ends := flow.Ends{Remote: l.Endpoint}
	if ports := w.ports.Load(); ports != nil {
		ends.Port = (*ports)[uint32(c.Tunnel)]
	}
	own := compile.OwnOf(t, ends.Remote.Is4())
	switch {
	case len(own) == 1:
		ends.Local = own[0]
	case len(own) > 1 && c.Leaves:
		ends.Local = overlay.Leaving(own, c.Source)
	}
	return ends, true
}
