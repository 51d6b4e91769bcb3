package dataplane

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"heddle/internal/flow"
	"heddle/internal/lab/netns"
	"heddle/internal/plan"
)

// Frames of a TCP stream stand for several packets each: the metered bytes are those that the wire would carry, header
// by header, and the payload is what was sent, to the byte.
func TestTheBytesOfAStreamAreThoseThatWereSent(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	const sent = 8 << 20
	if n := transfer(t, guests[0].ns, guests[1].ns, guests[1].addr, sent); n != sent {
		t.Fatalf("%d bytes came, %d were sent", n, sent)
	}
	all := newKept(t)
	drainAtRest(t, k, all.add)
	vm2 := uint16(k.slots.Ports[plan.PortID{Switch: "lab", Name: "vm2"}])
	var c flow.Counts
	for key, x := range all.flows {
		if key.Point == vm2 && key.Direction == flow.Egress && key.Protocol == 6 {
			c.Add(x)
		}
	}
	// 20 bytes of IP and 32 of TCP with its time stamps, and 8 more bytes of options in the SYN.
	const header, more = 52, 8
	if c.TCPFlags&3 != 3 {
		t.Errorf("flags %x: SYN and FIN are not among them", c.TCPFlags)
	}
	again := retransmitted(t, guests[0].ns)
	switch payload := c.Bytes - c.Packets*header - more; {
	case payload == sent:
	case again == 0 || payload < sent:
		t.Errorf("%d packets with %d bytes: %d of payload, %d were sent, %d packets retransmitted", c.Packets, c.Bytes,
			payload, sent, again)
	}
	if c.FrameBytes != c.Bytes+14*c.Packets {
		t.Errorf("%d bytes of frames, %d of IP in %d packets", c.FrameBytes, c.Bytes, c.Packets)
	}
	counters, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if frames := total(counters[plan.PortID{Switch: "lab", Name: "vm2"}].PacketsOut); frames >= c.Packets {
		t.Errorf("%d frames for %d packets: none stood for several", frames, c.Packets)
	}
}

// transfer sends that many bytes over TCP and returns how many arrived.
func transfer(t *testing.T, from, to *netns.NS, addr string, bytes int) (came int64) {
	t.Helper()
	var l net.Listener
	if err := to.Do(func() (err error) { l, err = net.Listen("tcp", addr+":0"); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			came, err = io.Copy(io.Discard, c)
			err = errors.Join(err, c.Close())
		}
		done <- err
	}()
	var c net.Conn
	if err := from.Do(func() (err error) { c, err = net.Dial("tcp", l.Addr().String()); return err }); err != nil {
		t.Fatal(err)
	}
	_, err := c.Write(make([]byte, bytes))
	if err := errors.Join(err, c.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	return came
}

// retransmitted returns the number of TCP segments that a namespace has sent again.
func retransmitted(t *testing.T, ns *netns.NS) (n int) {
	t.Helper()
	if err := ns.Do(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		var names []string
		for line := range strings.Lines(string(b)) {
			words := strings.Fields(line)
			if words[0] != "Tcp:" {
				continue
			}
			if names == nil {
				names = words
				continue
			}
			for i, name := range names {
				if name == "RetransSegs" && words[i] != "0" {
					n = 1
				}
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}
