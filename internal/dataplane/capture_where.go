package dataplane

import (
	"errors"
	"maps"
	"unsafe"

	"heddle/internal/abi"
	"heddle/internal/dataplane/compile"
)

// compile makes the kernel's form of a selection, with the slots that ports have now.
func (c *Captures) compile(s Selection) abi.Capture {
	r := abi.Capture{Reasons: [len(abi.Capture{}.Reasons)]uint64{^uint64(0), ^uint64(0)}, Snap: uint32(s.Snap),
		WakeAt: captureRing / 8, FilterLength: uint32(len(s.Filter))}
	for _, stage := range s.Stages {
		r.Stages |= 1 << stage
	}
	if len(s.Reasons) > 0 {
		clear(r.Reasons[:])
		for _, reason := range s.Reasons {
			r.Reasons[reason/64] |= 1 << (reason % 64)
		}
	}
	if len(s.Ports) == 0 {
		r.Flags |= abi.CaptureAllPorts
	}
	if len(s.Segments) == 0 {
		r.Flags |= abi.CaptureAllSegments
	}
	copy(r.Filter[:], s.Filter)
	c.where(s).put(&r)
	return r
}

// place is where a selection's ports and segments are in the tables at present.
type place struct {
	ports    [abi.MaxPorts / 64]uint64
	numbers  [2]uint32 // of the switch, for its VLANs and for its overlay segments; 0 = none
	vlans    [abi.SegmentsPerSwitch / 64]uint64
	overlays [abi.SegmentsPerSwitch / 64]uint64
}

func (w *place) put(r *abi.Capture) {
	r.Ports, r.Segments, r.OverlaySegments = w.ports, w.vlans, w.overlays
	r.SwitchNumber, r.OverlayNumber = w.numbers[0], w.numbers[1]
}

// where returns the present slots of the selection's ports, and the numbers of its switch and segments.
func (c *Captures) where(s Selection) *place {
	w := &place{}
	for _, id := range s.Ports {
		if slot, ok := c.places.Ports[id]; ok {
			setBit(w.ports[:], slot)
		}
	}
	for _, seg := range s.Segments {
		if seg.VNI != 0 {
			c.whereOverlay(w, s.Switch, seg)
			continue
		}
		n, ok := c.places.Encode(s.Switch, 0, seg.VLAN&abi.VIDMask, seg.AD)
		if ok {
			w.numbers[0] = n >> abi.SegmentSwitchShift
		}
		setBit(w.vlans[:], n%abi.SegmentsPerSwitch)
	}
	return w
}

// whereOverlay adds the numbers of an overlay segment, or of all in its VNI.
func (c *Captures) whereOverlay(w *place, sw string, seg Segment) {
	for have := range c.places.Segments {
		if have.Switch != sw || have.VNI != seg.VNI || !seg.All && have.VLAN != seg.VLAN {
			continue
		}
		if n, ok := c.places.Encode(sw, have.VNI, have.VLAN, false); ok {
			w.numbers[1] = n >> abi.SegmentSwitchShift
			setBit(w.overlays[:], n%abi.SegmentsPerSwitch)
		}
	}
}

func setBit(words []uint64, i uint32) { words[i/64] |= 1 << (i % 64) }

// follow updates the captures to the present slots of ports and switches, and numbers of overlay segments. A released
// slot is no longer captured before another port gets it.
func (c *Captures) follow(s *compile.Slots) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places = compile.Slots{Ports: maps.Clone(s.Ports), Switches: maps.Clone(s.Switches),
		Segments: maps.Clone(s.Segments)}
	decode := decoder(s.Decode())
	c.decode.Store(&decode)
	var errs []error
	for id, run := range c.running {
		if run != nil {
			errs = append(errs, run.move(id, c.where(run.selection)))
		}
	}
	return errors.Join(errs...)
}

// move writes where the capture's ports and segments are now.
func (r *Capture) move(id int, w *place) error {
	at := int64(id) * int64(unsafe.Sizeof(abi.Capture{}))
	var errs []error
	write := func(offset uintptr, b []byte) {
		_, err := r.build.captures.WriteAt(b, at+int64(offset))
		errs = append(errs, err)
	}
	write(unsafe.Offsetof(abi.Capture{}.Ports), bytesOf(w.ports[:]))
	write(unsafe.Offsetof(abi.Capture{}.SwitchNumber), bytesOf(w.numbers[:1]))
	write(unsafe.Offsetof(abi.Capture{}.OverlayNumber), bytesOf(w.numbers[1:]))
	write(unsafe.Offsetof(abi.Capture{}.OverlaySegments), bytesOf(w.overlays[:]))
	return errors.Join(errs...)
}
