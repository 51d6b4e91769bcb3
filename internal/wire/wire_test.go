package wire

import (
	"bytes"
	"net"
	"strconv"
	"testing"

	"heddle/internal/testkit"
)

const testType = 0x88b5 // IEEE 802 local experimental

func TestConn_CarriesFramesOfItsTypeInEveryVLAN(t *testing.T) {
	a, b := testkit.NS(t, "wirea"), testkit.NS(t, "wireb")
	if out, err := a.Output("ip", "link", "add", "w0", "up", "type", "veth", "peer", "name", "w0", "netns", b.Path()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := b.Output("ip", "link", "set", "w0", "up"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var from, to *Conn
	if err := a.Do(func() (err error) { from, err = open(t, 0); return err }); err != nil {
		t.Fatal(err)
	}
	if err := b.Do(func() (err error) { to, err = open(t, testType, [6]byte{1, 0x80, 0xc2, 0, 0, 0xe}); return err }); err != nil {
		t.Fatal(err)
	}
	head := []byte{1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 1}
	payload := []byte("0123456789")
	for _, c := range []struct {
		what string
		tag  []byte
	}{
		{"untagged", nil},
		{"VLAN 100", []byte{0x81, 0, 0, 100}},
	} {
		f := append(append(append(append([]byte{}, head...), c.tag...), testType>>8, testType&0xff), payload...)
		if err := from.Send(f); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		got, err := to.Receive()
		if err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if got.Source != [6]byte(head[6:12]) || got.Destination != [6]byte(head[:6]) {
			t.Errorf("%s: got %+v", c.what, got)
		}
		if !bytes.HasPrefix(got.Payload, payload) || len(got.Payload)+len(c.tag)+14 != 60 {
			t.Errorf("%s: payload of %d bytes %q", c.what, len(got.Payload), got.Payload)
		}
	}
	ended := make(chan error)
	go func() { _, err := to.Receive(); ended <- err }()
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("a closed socket's Receive gives a frame")
	}
}

func open(t *testing.T, typ uint16, groups ...[6]byte) (*Conn, error) {
	dev, err := net.InterfaceByName("w0")
	if err != nil {
		return nil, err
	}
	c, err := Open(uint32(dev.Index), typ, groups...)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() }) // closed already where all went well
	}
	return c, err
}

func TestConn_KnowsThatItsDeviceWasReplaced(t *testing.T) {
	a := testkit.NS(t, "wirec")
	ip := func(args ...string) {
		t.Helper()
		if out, err := a.Output("ip", args...); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	ip("link", "add", "w0", "up", "type", "veth", "peer", "name", "w1")
	var c *Conn
	if err := a.Do(func() (err error) { c, err = open(t, testType); return err }); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if !c.Bound() {
		t.Error("not bound to the device it was opened on")
	}
	ip("link", "set", "w0", "down")
	if !c.Bound() {
		t.Error("a device that is down is taken for one that is gone")
	}
	ip("link", "del", "w0")
	ip("link", "add", "w0", "index", strconv.Itoa(c.index), "type", "veth", "peer", "name", "w1")
	if c.Bound() {
		t.Error("bound to a device that is gone: its index is another's")
	}
}
