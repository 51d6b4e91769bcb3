package trace

import (
	"encoding/binary"
	"strconv"
	"strings"

	"heddle/internal/capture/pcapng"
)

// remark is what a file that "heddle capture" wrote says about a frame; it is empty for files of other programs.
type remark struct {
	port string // in the form of Capture.Ports
	// out: the frame was leaving the switch. dropped: it is the record of a frame's drop. fromHost: the host itself
	// sent it by an uplink.
	out, dropped, fromHost bool
	segment                int // payload of each segment, in bytes, if the frame is yet to be segmented; else 0
}

// option returns the text of a block's option, "" if there is none with that code.
func (c *captureReader) option(b []byte, code uint16) string {
	for len(b) >= 4 {
		is, n := c.order.Uint16(b), int(c.order.Uint16(b[2:]))
		if is == 0 || n > len(b)-4 {
			return ""
		}
		if is == code {
			return string(b[4 : 4+n])
		}
		b = b[min(len(b), 4+(n+3)&^3):]
	}
	return ""
}

// link reads the description of an interface.
func (c *captureReader) link(b []byte) captureLink {
	l := captureLink{kind: c.order.Uint16(b), name: c.option(b[8:], 2)}
	host, name, _ := strings.Cut(l.name, ":")
	what, several := strings.CutSuffix(c.option(b[8:], 3), " on host "+host) // a capture on several hosts
	if several {
		l.name = name
	}
	l.port = l.name
	if sw, is := strings.CutPrefix(what, "uplink of switch "); is {
		l.port = sw + "/" + l.name
	}
	if several {
		l.port = host + ":" + l.port
	}
	return l
}

// remark reads what the file says about a frame: its direction, and the words of its comment after the port's name
// ("port vm1/eth0, in, drop forged-transmit, VLAN 10").
func (c *captureReader) remark(l captureLink, options []byte) remark {
	if !c.own {
		return remark{}
	}
	r := remark{port: l.port}
	if flags := c.option(options, 2); len(flags) == 4 {
		r.out = pcapng.Direction(c.order.Uint32([]byte(flags))&3) == pcapng.Outbound
	}
	words, _ := strings.CutPrefix(c.option(options, 1), "port "+l.name+", ")
	for word := range strings.SplitSeq(words, ", ") {
		size, segmented := strings.CutPrefix(word, "in segments of ")
		switch {
		case segmented:
			r.segment, _ = strconv.Atoi(size)
		case strings.HasPrefix(word, "drop "):
			r.dropped = true
		case word == "from the host":
			r.fromHost = true
		}
	}
	return r
}

// firstSegment returns the first segment of a frame of length bytes, with size bytes of payload, and its length; if
// that cannot be determined, the frame itself. b is the part of the frame that the file has.
func firstSegment(b []byte, length uint32, size int) ([]byte, uint32) {
	if size <= 0 || len(b) < 14 {
		return b, length
	}
	_, kind, rest := split(b)
	at, protocol := len(b)-len(rest), byte(0)
	ip := at
	switch {
	case kind == typeIPv4 && len(rest) >= 20:
		at, protocol = at+4*int(rest[0]&15), rest[9]
	case kind == typeIPv6 && len(rest) >= 40:
		at, protocol = at+40, rest[6]
	}
	switch {
	case protocol == protoUDP:
		at += 8
	case protocol == protoTCP && len(b) >= at+20:
		at += 4 * int(b[at+12]>>4)
	default:
		return b, length
	}
	if uint64(at)+uint64(size) >= uint64(length) {
		return b, length
	}
	first := append([]byte{}, b[:min(len(b), at+size)]...)
	if kind == typeIPv4 { // the length in the header is that of the whole
		binary.BigEndian.PutUint16(first[ip+2:], uint16(at+size-ip))
	} else {
		binary.BigEndian.PutUint16(first[ip+4:], uint16(at+size-ip-40))
	}
	return first, uint32(at + size)
}
