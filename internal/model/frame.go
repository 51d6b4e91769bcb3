package model

import (
	"encoding/binary"

	"heddle/internal/plan"
)

// Ethernet types the rules look at.
const (
	typeQ    = 0x8100 // 802.1Q tag
	typeAD   = 0x88a8 // 802.1ad tag
	typeIPv4 = 0x0800
	typeIPv6 = 0x86dd
	// typeProbe is the type of loop probes, which others may use for experiments; probeWord is what a probe begins
	// with.
	typeProbe = 0x88b5
	probeWord = "HdLp"
	probeSize = 56
)

// class is the kind of a frame's destination; counters are kept per class.
type class uint8

const (
	unicast class = iota
	multicast
	broadcast
)

// header is what the rules read of a frame (frame-rules §0). It refers to the frame's bytes and never writes to them.
type header struct {
	raw      []byte
	dst, src plan.MAC
	class    class
	tags     int    // 0, 1 or 2: deeper ones are payload
	ad       bool   // the outermost tag is 802.1ad
	tci      uint16 // of the outermost tag: PCP, DEI, VID
	inner    uint16 // the type after the outermost tag
	packet   packet // layers 3 and 4
}

// read parses a frame. ok is false for a malformed one, whose header is still good enough for counting.
func read(raw []byte) (h header, ok bool) {
	h.raw = raw
	copy(h.dst[:], raw)
	h.class = classOf(h.dst)
	if len(raw) < 14 {
		return h, false
	}
	copy(h.src[:], raw[6:12])
	h.inner = binary.BigEndian.Uint16(raw[12:])
	if !isTag(h.inner) {
		return h, true
	}
	h.tags = 1
	if len(raw) < 14+4+2 {
		return h, false
	}
	h.ad = h.inner == typeAD
	h.tci = binary.BigEndian.Uint16(raw[14:])
	h.inner = binary.BigEndian.Uint16(raw[16:])
	if isTag(h.inner) {
		h.tags = 2
		return h, len(raw) >= 14+8+2
	}
	return h, true
}

func isTag(t uint16) bool { return t == typeQ || t == typeAD }

func classOf(dst plan.MAC) class {
	switch {
	case dst.IsBroadcast():
		return broadcast
	case dst.IsGroup():
		return multicast
	}
	return unicast
}

// vid is the VID of the outermost tag; 0 without one.
func (h *header) vid() uint16 { return h.tci & 0x0fff }

// pcpDEI are the priority bits of the outermost tag, at their position in a TCI; 0 without a tag.
func (h *header) pcpDEI() uint16 { return h.tci & 0xf000 }

// isProbe reports whether the frame looks for loops (frame-rules §1).
func (h *header) isProbe() bool {
	if h.class != broadcast || h.inner != typeProbe {
		return false
	}
	payload := h.raw[14+4*h.tags:]
	return len(payload) >= probeSize && string(payload[:len(probeWord)]) == probeWord
}

// layer3 is the layer-3 length in bytes.
func (h *header) layer3() int { return len(h.raw) - 14 - 4*h.tags }

// payloadByte is the byte at an offset counted without the outermost tag; 0 beyond the frame's end.
func (h *header) payloadByte(offset int) byte {
	if h.tags > 0 {
		offset += 4
	}
	if offset >= len(h.raw) {
		return 0
	}
	return h.raw[offset]
}

// Segment is one broadcast domain within a switch: a VID and its tag protocol. The zero value is the untagged segment,
// to which VID 0 belongs whatever the protocol.
type Segment struct {
	VNI  uint32 // of an overlay segment (frame-rules §10), in which the VLAN then is; 0 = none
	VLAN uint16 // 0–4094
	AD   bool   // 802.1ad
}

func segmentOf(vid uint16, ad bool) Segment {
	if vid == 0 {
		return Segment{}
	}
	return Segment{VLAN: vid, AD: ad}
}
