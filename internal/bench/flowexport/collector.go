package flowexport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"heddle/internal/netns"
)

// collector counts what a host exports, on the host's own loopback: the exporter's work is part of what is measured, a collector's is not.
type collector struct {
	conn *net.UDPConn
	done chan struct{}
	// messages and bytes have come; records are what the exporter says it has sent before its newest message (RFC 7011, section 3.1:
	// the sequence number), of the newest run of the exporter and of those before.
	messages, bytes, earlier atomic.Uint64
	sequence                 atomic.Uint32
	taken                    exported // what was told of so far
}

// exported is what came in some time.
type exported struct{ messages, records, bytes uint64 }

func (e *exported) add(o exported) {
	e.messages, e.records, e.bytes = e.messages+o.messages, e.records+o.records, e.bytes+o.bytes
}

const (
	ipfixVersion   = 10
	ipfixHeader    = 16
	collectorQueue = 8 << 20 // bytes: a burst at the end of all flows waits here
)

func collect(ns *netns.NS) (*collector, error) {
	c := &collector{done: make(chan struct{})}
	err := ns.Do(func() (err error) {
		c.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a collector in %s: %w", ns.Name, err)
	}
	_ = c.conn.SetReadBuffer(collectorQueue) // the system's limit applies; sequence numbers tell of messages that are missing
	go c.receive()
	return c, nil
}

func (c *collector) port() uint16 { return uint16(c.conn.LocalAddr().(*net.UDPAddr).Port) }

func (c *collector) receive() {
	defer close(c.done)
	buf := make([]byte, 1<<16)
	for {
		n, err := c.conn.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			c.take(buf[:n])
		}
	}
}

// take counts a message. A sequence number below the one before is a new exporter's, or one that has begun again.
func (c *collector) take(b []byte) {
	if len(b) < ipfixHeader || binary.BigEndian.Uint16(b) != ipfixVersion || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
		return
	}
	c.messages.Add(1)
	c.bytes.Add(uint64(len(b)))
	now := binary.BigEndian.Uint32(b[8:])
	if before := c.sequence.Swap(now); now < before {
		c.earlier.Add(uint64(before))
	}
}

// since is what has come since it was asked before. Records are told but for those of the newest message.
func (c *collector) since() exported {
	now := exported{c.messages.Load(), c.records(), c.bytes.Load()}
	e := exported{now.messages - c.taken.messages, now.records - c.taken.records, now.bytes - c.taken.bytes}
	c.taken = now
	return e
}

func (c *collector) records() uint64 { return c.earlier.Load() + uint64(c.sequence.Load()) }

func (c *collector) close() error {
	err := c.conn.Close()
	<-c.done
	return err
}
