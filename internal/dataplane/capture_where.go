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
	r.Ports, r.SwitchNumber, r.Segments = c.where(s)
	return r
}

// where returns the present slots of the selection's ports, and the numbers of its switch and segments.
func (c *Captures) where(s Selection) (ports [abi.MaxPorts / 64]uint64, switchNumber uint32,
	segments [abi.SegmentsPerSwitch / 64]uint64) {
	for _, id := range s.Ports {
		if slot, ok := c.places.Ports[id]; ok {
			ports[slot/64] |= 1 << (slot % 64)
		}
	}
	if id, ok := c.places.Switches[s.Switch]; ok && len(s.Segments) > 0 {
		switchNumber = uint32(id) + 1
	}
	for _, seg := range s.Segments {
		n := uint32(seg.VLAN) & abi.VIDMask
		if seg.AD {
			n |= abi.SegmentAD
		}
		segments[n/64] |= 1 << (n % 64)
	}
	return ports, switchNumber, segments
}

// follow updates the captures to the present slots of ports and switches. A released slot is no longer captured before
// another port gets it.
func (c *Captures) follow(s *compile.Slots) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places = compile.Slots{Ports: maps.Clone(s.Ports), Switches: maps.Clone(s.Switches)}
	decode := decoder(s.Decode())
	c.decode.Store(&decode)
	var errs []error
	for id, run := range c.running {
		if run == nil {
			continue
		}
		ports, number, _ := c.where(run.selection)
		at := int64(id) * int64(unsafe.Sizeof(abi.Capture{}))
		_, err := run.build.captures.WriteAt(bytesOf(ports[:]), at+int64(unsafe.Offsetof(abi.Capture{}.Ports)))
		errs = append(errs, err)
		_, err = run.build.captures.WriteAt(bytesOf([]uint32{number}),
			at+int64(unsafe.Offsetof(abi.Capture{}.SwitchNumber)))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
