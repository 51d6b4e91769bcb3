package export

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// frame puts a message into an Ethernet frame of UDP over IPv4.
func frame(message []byte) []byte {
	be := binary.BigEndian
	b := append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0},
		be.AppendUint16(nil, uint16(28+len(message)))...)
	b = append(b, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2)
	b = be.AppendUint16(be.AppendUint16(b, 40000), 4739)
	return append(be.AppendUint16(be.AppendUint16(b, uint16(8+len(message))), 0), message...)
}

func TestTsharkReadsBothShapes(t *testing.T) {
	testkit.Tool(t, "tshark")
	shapes(t, func(t *testing.T, name Shape, s shape) {
		c := collect(t, "127.0.0.1:0")
		r := newRig(t, to(c, name))
		records := append(plain(kinds()), many(300)...)
		want := r.totals(s, records, false)
		r.sendTo(c, records)
		c.await(int(want.records))
		var frames [][]byte
		for _, m := range c.messages {
			frames = append(frames, frame(m.bytes))
		}
		out := testkit.Tshark(t, frames, "-d", "udp.port==4739,cflow", "-T", "fields", "-E", "separator=;", "-e",
			"cflow.packets", "-e", "cflow.octets",
			"-e", "_ws.malformed", "-e", "_ws.expert.message")
		var got totals
		for line := range bytes.Lines(out) {
			cols := strings.Split(strings.TrimSpace(string(line)), ";")
			if cols[2] != "" || cols[3] != "" {
				t.Errorf("tshark says %s %s", cols[2], cols[3])
			}
			for _, v := range split(cols[0]) {
				got.records, got.packets = got.records+1, got.packets+v
			}
			for _, v := range split(cols[1]) {
				got.octets += v
			}
		}
		if got != want {
			t.Errorf("tshark reads %+v, want %+v", got, want)
		}
	})
}

func split(list string) (values []uint64) {
	for _, s := range strings.Split(list, ",") {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			values = append(values, n)
		}
	}
	return values
}
