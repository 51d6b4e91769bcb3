package pcapng

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
)

func TestBlocksAreThoseOfTheDraft(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Section{Application: "ab"})
	if err != nil {
		t.Fatal(err)
	}
	section := "\x0a\x0d\x0d\x0a\x28\x00\x00\x00\x4d\x3c\x2b\x1a\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff" +
		"\x04\x00\x02\x00ab\x00\x00\x00\x00\x00\x00\x28\x00\x00\x00"
	if b.String() != section {
		t.Errorf("section\n%q, want\n%q", b.String(), section)
	}
	b.Reset()
	if _, err := w.Add(Interface{Name: "vm1", Snap: 96}); err != nil {
		t.Fatal(err)
	}
	iface :=
		"\x01\x00\x00\x00\x28\x00\x00\x00\x01\x00\x00\x00\x60\x00\x00\x00\x02\x00\x03\x00vm1" +
			"\x00\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00\x28\x00\x00\x00"
	if b.String() != iface {
		t.Errorf("interface\n%q, want\n%q", b.String(), iface)
	}
	b.Reset()
	err = w.Packet(Packet{Time: time.Unix(0, 0x1_0000_0002), Direction: Outbound, Comment: "c", Length: 1500,
		Data: []byte{1, 2, 3, 4, 5}})
	packet :=
		"\x06\x00\x00\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x05" +
			"\x00\x00\x00\xdc\x05\x00\x00\x01\x02\x03\x04\x05\x00\x00\x00" +
			"\x01\x00\x01\x00c\x00\x00\x00\x02\x00\x04\x00\x02\x00\x00\x00\x00\x00\x00\x00\x3c\x00\x00\x00"
	if err != nil || b.String() != packet {
		t.Errorf("%v, packet\n%q, want\n%q", err, b.String(), packet)
	}
}

func TestAnotherReaderReadsWhatIsWritten(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Section{Application: "heddle", OS: "Linux", Comment: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vm1/eth0", "uplink1"} {
		if _, err := w.Add(Interface{Name: name, Description: "of switch s"}); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(1_700_000_000, 123_456_789)
	for n := range 9 { // every length of padding
		if err := w.Packet(Packet{Interface: n % 2, Time: at, Comment: "a comment"[:n], Length: 60 + n,
			Data: make([]byte, 14+n)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Statistics(Statistics{Interface: 1, Time: at, Received: 10, Dropped: 3}); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&b, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 9 {
		data, info, err := r.ReadPacketData()
		if err != nil || len(data) != 14+n || info.Length != 60+n || info.InterfaceIndex != n%2 ||
			!info.Timestamp.Equal(at) {
			t.Errorf("packet %d: %d bytes, %+v, %v", n, len(data), info, err)
		}
	}
	if _, _, err := r.ReadPacketData(); err == nil {
		t.Error("a packet too many")
	}
	i, err := r.Interface(1)
	if err != nil || i.Name != "uplink1" || i.Statistics.PacketsReceived != 10 {
		t.Errorf("%+v, %v", i, err)
	}
}

// broken fails the nth write.
type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestAWriterThatFailsIsAnError(t *testing.T) {
	if _, err := NewWriter(&broken{}, Section{}); err == nil {
		t.Error("no error of the section")
	}
	w, err := NewWriter(&broken{left: 1}, Section{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(Interface{}); err == nil {
		t.Error("no error of the interface")
	}
	if err := errors.Join(w.Packet(Packet{}), w.Statistics(Statistics{})); err == nil {
		t.Error("no error of a packet")
	}
}
