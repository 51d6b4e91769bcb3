package flowexport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"heddle/internal/netns"
	"heddle/internal/udpbatch"
)

// collector counts what a host exports, on the host's own loopback: the exporter's work is part of what is measured, a collector's is not.
type collector struct {
	conn *net.UDPConn
	done chan struct{}

	mu  sync.Mutex
	all exported
	// sequences are the newest of each session, by the exporter's address: how many records it says that it sent before that message
	// (RFC 7011, section 3.1).
	sequences map[netip.AddrPort]uint32
	taken     exported // what was told of so far
}

// exported is what came in some time. Records are told but for those of the newest message.
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
	c := &collector{done: make(chan struct{}), sequences: map[netip.AddrPort]uint32{}}
	err := ns.Do(func() (err error) {
		c.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a collector in %s: %w", ns.Name, err)
	}
	_ = c.conn.SetReadBuffer(collectorQueue) // the system's limit applies; sequence numbers tell of messages that are missing
	r, err := udpbatch.NewReceiver(c.conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a collector in %s: %w", ns.Name, err), c.conn.Close())
	}
	go c.receive(r)
	return c, nil
}

func (c *collector) port() uint16 { return uint16(c.conn.LocalAddr().(*net.UDPAddr).Port) }

// receive reads until the socket is closed, what came in one piece with one call: the collector has a part of the same processors.
func (c *collector) receive(r *udpbatch.Receiver) {
	defer close(c.done)
	for !errors.Is(r.Receive(c.take), net.ErrClosed) {
	}
}

// take counts a message. A sequence number below the one before is a new session's at the same address.
func (c *collector) take(from netip.AddrPort, b []byte) {
	if len(b) < ipfixHeader || binary.BigEndian.Uint16(b) != ipfixVersion || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
		return
	}
	now := binary.BigEndian.Uint32(b[8:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.messages++
	c.all.bytes += uint64(len(b))
	if before := c.sequences[from]; now >= before {
		c.all.records += uint64(now - before)
	} else {
		c.all.records += uint64(now)
	}
	c.sequences[from] = now
}

// sum is everything so far.
func (c *collector) sum() exported {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// since is what has come since it was asked before.
func (c *collector) since() exported {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := exported{c.all.messages - c.taken.messages, c.all.records - c.taken.records, c.all.bytes - c.taken.bytes}
	c.taken = c.all
	return e
}

func (c *collector) close() error {
	err := c.conn.Close()
	<-c.done
	return err
}
