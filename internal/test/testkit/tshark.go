package testkit

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BadTCPChecksum is tshark's filter for packets with a wrong TCP checksum, where tcp.check_checksum:TRUE has it look.
// Its tcp.checksum.status == 0 finds right ones as well: a sum of zero is 0x0000 or 0xffff (RFC 1624), and tshark
// counts the latter among the bad with a remark of its own.
const BadTCPChecksum = "tcp.checksum_bad.expert"

// Dissect has tshark take Ethernet frames apart and returns, per frame, the values of the fields asked for, joined by
// tabs; a field that occurs several times has its values joined by commas.
func Dissect(t testing.TB, frames [][]byte, fields ...string) []byte {
	t.Helper()
	args := []string{"-T", "fields", "-E", "separator=/t"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	return Tshark(t, frames, args...)
}

// Tshark runs tshark on Ethernet frames with the arguments given and returns its output.
func Tshark(t testing.TB, frames [][]byte, args ...string) []byte {
	t.Helper()
	Tool(t, "tshark")
	file := filepath.Join(t.TempDir(), "frames.pcap")
	if err := os.WriteFile(file, capture(frames), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scapyTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tshark", append([]string{"-r", file}, args...)...).Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	return out
}

// capture is a file of libpcap's classic format: a header of 24 bytes, then each frame behind a header of 16.
func capture(frames [][]byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 0xa1b2c3d4)
	b = le.AppendUint16(b, 2)
	b = le.AppendUint16(b, 4)
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 1<<16)
	b = le.AppendUint32(b, 1) // Ethernet
	for _, f := range frames {
		b = le.AppendUint64(b, 0)
		b = le.AppendUint32(b, uint32(len(f)))
		b = le.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}
