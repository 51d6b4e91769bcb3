package model_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"heddle/internal/model"
	"heddle/internal/plan"
)

// long is a frame to 02:00:00:00:02:to with a packet of IPv4 that must not be fragmented, or of IPv6.
func long(v6 bool, to byte, protocol byte, length int) []byte {
	f := []byte{2, 0, 0, 0, 2, to, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, byte(length >> 8), byte(length), 0, 0, 0x40, 0, 64,
		protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2}
	if v6 {
		f = append(f[:12], 0x86, 0xdd, 0x60, 0, 0, 0, byte((length-40)>>8), byte(length-40), protocol, 64, 0xfd)
		f = append(append(f, make([]byte, 14)...), 1, 0xfd)
		f = append(append(f, make([]byte, 14)...), 2)
	}
	for len(f) < 14+length {
		f = append(f, byte(len(f)*7))
	}
	return f
}

// TestS84_WhoIsToldWhatFitsTheTunnel: the sender of one packet to one station learns the MTU of the narrowest tunnel,
// and nobody is told by errors what nobody may be told.
func TestS84_WhoIsToldWhatFitsTheTunnel(t *testing.T) {
	c := crossing(t) // an underlay of 1,600: 1,550 over IPv4, 1,530 over IPv6
	edited := func(f []byte, at int, b ...byte) []byte { copy(f[at:], b); return f }
	tagged := func(f []byte) []byte { return slices.Concat(f[:12], []byte{0x81, 0, 0, 7}, f[12:]) }
	for _, row := range []struct {
		what  string
		frame []byte
		want  int // the MTU that is told; 0 = nothing
	}{
		{"one byte too many over IPv4", long(false, 1, 17, 1551), 1550},
		{"as many as fit", long(false, 1, 17, 1550), 0},
		{"IPv6 inside", long(true, 1, 6, 1551), 1550},
		{"one byte too many over IPv6", long(false, 2, 6, 1531), 1530},
		{"IPv6 in IPv6", long(true, 2, 17, 1531), 1530},
		{"with a tag inside", tagged(long(false, 1, 17, 1547)), 1546},
		{"as many as fit with a tag inside", tagged(long(false, 1, 17, 1546)), 0},
		{"to a station of unknown place: the narrowest tunnel", long(false, 9, 17, 1551), 1530},
		{"a ping", edited(long(false, 1, 1, 1551), 34, 8, 0), 1550},
		{"an ICMP error", edited(long(false, 1, 1, 1551), 34, 3, 4), 0},
		{"a ping of IPv6", edited(long(true, 1, 58, 1551), 54, 128, 0), 1550},
		{"an ICMPv6 error", edited(long(true, 1, 58, 1551), 54, 1, 0), 0},
		{"may be fragmented", edited(long(false, 1, 17, 1551), 20, 0), 0},
		{"the first fragment", edited(long(false, 1, 17, 1551), 20, 0x60, 0), 1550},
		{"a later fragment", edited(long(false, 1, 17, 1551), 20, 0x60, 9), 0},
		{"to all", edited(long(false, 1, 17, 1551), 0, 255, 255, 255, 255, 255, 255), 0},
		{"to a group of IP", edited(long(false, 1, 17, 1551), 30, 224), 0},
		{"from nobody", edited(long(false, 1, 17, 1551), 26, 0), 0},
		{"to a group of IPv6", edited(long(true, 1, 17, 1551), 38, 255), 0},
		{"only padded", edited(long(false, 1, 17, 1551), 16, 6, 0), 0},
		{"not IP", edited(long(false, 1, 17, 1551), 12, 0x88, 0xb5), 0},
	} {
		t.Run(row.what, func(t *testing.T) {
			answer := c.TooBig(row.frame, c.Leave(plan.PortID{}, 10, row.frame, time.Second).Outers)
			got, ok := model.RoomIn(answer)
			if got != row.want || ok != (row.want != 0) {
				t.Fatalf("the sender learns %d, want %d: %x", got, row.want, answer)
			}
			if ok && (!slices.Equal(answer[:6], row.frame[6:12]) || !slices.Equal(answer[6:12], row.frame[:6])) {
				t.Errorf("addresses: %x", answer[:12])
			}
		})
	}
}

// TestS84_ADeviceThatComputesTheQuotedChecksumChangesNothing: a guest may have left the checksum of the packet to a
// device, which then finds the quoted bytes in the error; what it would write there stands there.
func TestS84_ADeviceThatComputesTheQuotedChecksumChangesNothing(t *testing.T) {
	c := crossing(t)
	for _, row := range []struct {
		v6        bool
		protocol  byte
		l4, field int // in the error
	}{{false, 6, 62, 16}, {false, 17, 62, 6}, {true, 6, 102, 16}, {true, 17, 102, 6}} {
		t.Run(fmt.Sprintf("IPv6=%v,%d", row.v6, row.protocol), func(t *testing.T) {
			frame := long(row.v6, 1, row.protocol, 1551)
			answer := c.TooBig(frame, c.Leave(plan.PortID{}, 10, frame, time.Second).Outers)
			sum := uint32(0)
			for i := row.l4; i < len(answer); i += 2 {
				sum += uint32(binary.BigEndian.Uint16(answer[i:]))
			}
			for sum > 0xffff {
				sum = sum&0xffff + sum>>16
			}
			if got := binary.BigEndian.Uint16(answer[row.l4+row.field:]); got != ^uint16(sum) {
				t.Errorf("the field has %#x, and a device would write %#x", got, ^uint16(sum))
			}
		})
	}
}
