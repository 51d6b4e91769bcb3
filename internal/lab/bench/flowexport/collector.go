package flowexport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"heddle/internal/flow/udpbatch"
	"heddle/internal/lab/netns"
)

// collector counts what a host exports, on the host's own loopback: the measurement includes the exporter's work, but
// not the collector's.
type collector struct {
	conn *net.UDPConn
	done chan struct{}

	mu       sync.Mutex
	all      exported
	sessions map[netip.AddrPort]*session // by the exporter's address
	taken    exported                    // what since has returned so far
}

// session is the state of an exporter's session.
type session struct {
	// sequence is how many records were sent before the newest message, according to the exporter (RFC 7011,
	// section 3.1); newest is the number of records in the newest message.
	sequence, newest uint32
	lengths          map[uint16]int // of records in bytes, by template; 0 = they vary
}

// exported is what came in some time. For a session whose records vary in length, the records of the newest message are
// missing.
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
	c := &collector{done: make(chan struct{}), sessions: map[netip.AddrPort]*session{}}
	err := ns.Do(func() (err error) {
		c.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a collector in %s: %w", ns.Name, err)
	}
	// the system may limit the size; sequence numbers show missing messages
	_ = c.conn.SetReadBuffer(collectorQueue)
	r, err := udpbatch.NewReceiver(c.conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a collector in %s: %w", ns.Name, err), c.conn.Close())
	}
	go c.receive(r)
	return c, nil
}

func (c *collector) port() uint16 { return uint16(c.conn.LocalAddr().(*net.UDPAddr).Port) }

// receive reads until the socket is closed. One call reads what came in one piece, because the collector shares the
// processors.
func (c *collector) receive(r *udpbatch.Receiver) {
	defer close(c.done)
	for !errors.Is(r.Receive(c.take), net.ErrClosed) {
	}
}

// take counts a message. A sequence number below the previous one means a new session at the same address.
func (c *collector) take(from netip.AddrPort, b []byte) {
	if len(b) < ipfixHeader || binary.BigEndian.Uint16(b) != ipfixVersion ||
		int(binary.BigEndian.Uint16(b[2:])) != len(b) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sessions[from]
	if s == nil {
		s = &session{lengths: map[uint16]int{}}
		c.sessions[from] = s
	}
	c.all.messages++
	c.all.bytes += uint64(len(b))
	now, newest := binary.BigEndian.Uint32(b[8:]), s.records(b[ipfixHeader:])
	if now >= s.sequence {
		c.all.records += uint64(now-s.sequence) - uint64(s.newest) // those are in it
	} else {
		c.all.records += uint64(now)
	}
	c.all.records += uint64(newest)
	s.sequence, s.newest = now, newest
}

const (
	setHeader      = 4
	templateSet    = 2
	firstDataSet   = 256
	enterpriseBit  = 1 << 15
	variableLength = 1<<16 - 1
)

// records is how many records the sets of a message have, if all records of each set have one length (RFC 7011, section
// 3.3).
func (s *session) records(sets []byte) (n uint32) {
	for len(sets) >= setHeader {
		id, length := binary.BigEndian.Uint16(sets), int(binary.BigEndian.Uint16(sets[2:]))
		if length < setHeader || length > len(sets) {
			return n
		}
		switch {
		case id == templateSet:
			s.learn(sets[setHeader:length])
		case id >= firstDataSet && s.lengths[id] > 0:
			n += uint32((length - setHeader) / s.lengths[id])
		}
		sets = sets[length:]
	}
	return n
}

// learn stores the record lengths of a set of templates (section 3.4.1).
func (s *session) learn(templates []byte) {
	for len(templates) >= setHeader {
		id, fields := binary.BigEndian.Uint16(templates), int(binary.BigEndian.Uint16(templates[2:]))
		templates = templates[setHeader:]
		sum := 0
		for ; fields > 0 && len(templates) >= 4; fields-- {
			length, field := int(binary.BigEndian.Uint16(templates[2:])), 4
			if binary.BigEndian.Uint16(templates)&enterpriseBit != 0 {
				field = 8
			}
			if length == variableLength || len(templates) < field {
				sum = 0
				fields, templates = 0, nil
				break
			}
			sum, templates = sum+length, templates[field:]
		}
		s.lengths[id] = sum
	}
}

// sum is everything so far.
func (c *collector) sum() exported {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// since is what has come since the previous call.
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
