package wire

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Listen selects the frames that a Conn receives. The kernel drops every other frame before it reaches the agent's
// memory, so that a flood of them costs the agent nothing; Takes checks the same again.
type Listen struct {
	EtherType uint16 // 0: the Conn receives nothing and only sends, unless LLC is set
	// LLC: frames that have a length in place of an EtherType are received.
	LLC bool
	// Groups are the accepted destinations; nil accepts any. The device is made to receive those that are multicast.
	Groups [][6]byte
	// Tagged: frames with a VLAN tag are received as well, without their tag. Otherwise they are dropped.
	Tagged bool
	// MinPayload is the length of the shortest accepted payload, in bytes.
	MinPayload int
	// Fields are bytes of the payload that must have given values.
	Fields []Field
	// Sources are the only accepted senders; nil accepts all. An empty list accepts none.
	Sources [][6]byte
}

// longest8023 is the highest length of a frame of IEEE 802.3; an EtherType is above.
const longest8023 = 1500

// protocol is what the kernel calls the frames.
func (l Listen) protocol() uint16 {
	if l.LLC {
		return unix.ETH_P_802_2
	}
	return l.EtherType
}

// Field is bytes of the payload at an offset. One of Values must be there; all have the same length: 1, 2 or a multiple
// of 4.
type Field struct {
	Offset int
	Values [][]byte
}

// Takes reports whether a received frame is accepted.
func (l Listen) Takes(f *Frame) bool {
	switch {
	case l.LLC && f.EtherType > longest8023 || !l.LLC && f.EtherType != l.EtherType || f.Tagged && !l.Tagged:
		return false
	case len(l.Groups) > 0 && !slices.Contains(l.Groups, f.Destination):
		return false
	case l.Sources != nil && !slices.Contains(l.Sources, f.Source):
		return false
	case len(f.Payload) < l.MinPayload:
		return false
	}
	return !slices.ContainsFunc(l.Fields, func(x Field) bool { return !x.in(f.Payload) })
}

func (x Field) in(payload []byte) bool {
	return slices.ContainsFunc(x.Values, func(v []byte) bool {
		return len(payload) >= x.Offset+len(v) && slices.Equal(payload[x.Offset:x.Offset+len(v)], v)
	})
}

// multicast reports whether a device must be told to receive the group.
func multicast(group [6]byte) bool {
	return group[0]&1 != 0 && group != [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
}
