package wire

import (
	"bytes"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

const testType = 0x88b5 // IEEE 802 local experimental

func TestConn_CarriesFramesOfItsTypeInEveryVLAN(t *testing.T) {
	a, b := testkit.NS(t, "wirea"), testkit.NS(t, "wireb")
	if out, err := a.Output("ip", "link", "add", "w0", "up", "type", "veth", "peer", "name", "w0", "netns",
		b.Path()); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := b.Output("ip", "link", "set", "w0", "up"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var from, to *Conn
	if err := a.Do(func() (err error) { from, err = open(t, Listen{}); return err }); err != nil {
		t.Fatal(err)
	}
	if err := b.Do(func() (err error) {
		to, err = open(t, Listen{EtherType: testType, Groups: [][6]byte{{1, 0x80, 0xc2, 0, 0, 0xe}}, Tagged: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	head := []byte{1, 0x80, 0xc2, 0, 0, 0xe}
	payload := []byte("0123456789")
	heard := receiveAll(to)
	for i, c := range []struct {
		what string
		tag  []byte
	}{
		{"untagged", nil},
		{"VLAN 100", []byte{0x81, 0, 0, 100}},
	} {
		t.Run(c.what, func(t *testing.T) {
			source := [6]byte{2, 0, 0, 0, 0, byte(i)}
			got := untilHeard(t, heard, source, func() error {
				return from.Send(slices.Concat(head, source[:], c.tag, []byte{testType >> 8, testType & 0xff}, payload))
			})
			if got.Destination != [6]byte(head) || got.Tagged != (c.tag != nil) {
				t.Errorf("%s: got %+v", c.what, got)
			}
			if !bytes.HasPrefix(got.Payload, payload) || len(got.Payload)+len(c.tag)+14 != 60 {
				t.Errorf("%s: payload of %d bytes %q", c.what, len(got.Payload), got.Payload)
			}
		})
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	for range heard { // ends when Receive returns the error of a closed socket
	}
}

// receiveAll returns what a socket receives until it is closed.
func receiveAll(c *Conn) <-chan *Frame {
	heard := make(chan *Frame)
	go func() {
		defer close(heard)
		for {
			f, err := c.Receive()
			if err != nil {
				return
			}
			f.Payload = bytes.Clone(f.Payload)
			heard <- f
		}
	}()
	return heard
}

// untilHeard sends a frame until it arrives: a device that was just set up loses frames until the kernel has noticed
// its carrier.
func untilHeard(t *testing.T, heard <-chan *Frame, source [6]byte, send func() error) *Frame {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(2 * time.Minute); ; {
		if err := send(); err != nil {
			t.Fatal(err)
		}
		select {
		case f := <-heard:
			if f.Source == source {
				return f
			}
		case <-again.C:
		case <-deadline:
			t.Fatalf("no frame of %x arrives", source)
		}
	}
}

func open(t *testing.T, listen Listen) (*Conn, error) {
	dev, err := net.InterfaceByName("w0")
	if err != nil {
		return nil, err
	}
	c, err := Open(uint32(dev.Index), listen)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() }) // already closed if all went well
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
	if err := a.Do(func() (err error) { c, err = open(t, Listen{EtherType: testType}); return err }); err != nil {
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
