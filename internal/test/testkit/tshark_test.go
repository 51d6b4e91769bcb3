package testkit

import (
	"encoding/binary"
	"strings"
	"testing"
)

// sum is the sum of the words of all parts, as checksums have it (RFC 1071).
func sum(parts ...[]byte) uint16 {
	var n uint32
	for _, p := range parts {
		for i := 0; i < len(p); i += 2 {
			n += uint32(binary.BigEndian.Uint16(p[i:]))
		}
	}
	for n > 0xffff {
		n = n>>16 + n&0xffff
	}
	return uint16(n)
}

// segment is a frame with a TCP segment of two bytes, which are what makes its checksum that one, if it is to be right.
func segment(checksum uint16, right bool) []byte {
	be := binary.BigEndian
	ip := []byte{0x45, 0, 0, 42, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2}
	be.PutUint16(ip[10:], ^sum(ip))
	tcp := append([]byte{3, 0xe8, 7, 0xd0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 3, 0xe8}, make([]byte, 6)...)
	be.PutUint16(tcp[16:], checksum)
	data := ^sum(ip[12:], []byte{0, 6, 0, 22}, tcp)
	if !right {
		data ^= 1
	}
	be.PutUint16(tcp[20:], data)
	return append(append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0}, ip...), tcp...)
}

// Two forms of a sum of zero are right, and no wrong checksum is, whatever its form.
func TestBadTCPChecksumFindsNoRightOne(t *testing.T) {
	var frames [][]byte
	for _, checksum := range []uint16{0, 0xffff, 0x1234} {
		frames = append(frames, segment(checksum, true), segment(checksum, false))
	}
	got := string(Tshark(t, frames, "-o", "tcp.check_checksum:TRUE", "-Y", BadTCPChecksum, "-T", "fields", "-e",
		"frame.number"))
	if want := "2 4 6"; strings.Join(strings.Fields(got), " ") != want {
		t.Errorf("frames %q have a bad checksum, want %s", got, want)
	}
	if got := string(Tshark(t, frames[2:3], "-o", "tcp.check_checksum:TRUE", "-T", "fields", "-e", "tcp.checksum",
		"-e", "_ws.malformed")); strings.TrimSpace(got) != "0xffff" {
		t.Errorf("tshark reads %q", got)
	}
}
