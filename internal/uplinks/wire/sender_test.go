package wire

import (
	"bytes"
	"net"
	"testing"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

func TestSender_SendsWholeFramesOnAnyDevice(t *testing.T) {
	a, b := testkit.NS(t, "sendera"), testkit.NS(t, "senderb")
	var s *Sender
	index := map[string]uint32{}
	for _, name := range []string{"s0", "s1"} {
		if out, err := a.Output("ip", "link", "add", name, "up", "type", "veth", "peer", "name", name, "netns",
			b.Path()); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := b.Output("ip", "link", "set", name, "up"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := a.Do(func() error {
			dev, err := net.InterfaceByName(name)
			if err == nil {
				index[name] = uint32(dev.Index)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Do(func() (err error) { s, err = OpenSender(); return err }); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, i := range index {
		end := cable.Open(t, b, name)
		frame := append([]byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, byte(i), 0x81, 0, 0, 100, 0x88, 0xb5},
			bytes.Repeat([]byte{7}, 46)...)
		if err := s.Send(i, frame); err != nil {
			t.Fatal(err)
		}
		end.Expect(frame, "the frame with its tag")
	}
	if err := s.Send(0x7ffffff0, make([]byte, 60)); err == nil {
		t.Error("a device that is not there takes frames")
	}
}
