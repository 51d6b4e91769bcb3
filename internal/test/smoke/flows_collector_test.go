package smoke

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/flow/ipfix"
	"heddle/internal/test/testkit"
)

// flowID names a flow as its records do: what was seen where, and its flowId, or in the shape of a VDS when the record
// begins.
type flowID struct {
	direction, in, out, name uint64
	source, destination      netip.Addr
	sourcePort               uint64
}

// told is what one record tells of a flow.
type told struct {
	reason                             uint64
	deltaPackets, totalPackets         uint64
	deltaBytes, totalBytes, deltaFrame uint64
}

// collector is a collector of IPFIX records at an address of the host, port by port.
type collector struct {
	t    testing.TB
	port int
	conn *net.UDPConn
	done chan struct{}

	mu       sync.Mutex
	decoder  *ipfix.Decoder
	sessions map[ipfix.Session]bool
	records  map[flowID][]told
	failed   error
	unknown  int
	lost     int64
}

// collect listens at that port of the host's loopback; 0 is any.
func (h *host) collect(port int) *collector {
	h.T.Helper()
	c := &collector{t: h.T, port: port, decoder: ipfix.NewDecoder(ipfix.Limits{}), sessions: map[ipfix.Session]bool{},
		records: map[flowID][]told{}}
	if err := h.Do(loopbackUp); err != nil {
		h.T.Fatal(err)
	}
	c.open(h)
	h.T.Cleanup(func() { c.close() })
	return c
}

func loopbackUp() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// open begins to listen, again at the same port.
func (c *collector) open(h *host) {
	h.T.Helper()
	err := h.Do(func() (err error) {
		c.conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: c.port})
		return err
	})
	if err != nil {
		h.T.Fatal(err)
	}
	testkit.Room(h.T, c.conn)
	c.port, c.done = c.conn.LocalAddr().(*net.UDPAddr).Port, make(chan struct{})
	go c.listen(c.conn, c.done)
}

// close stops listening; received data has been read.
func (c *collector) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		<-c.done
		c.conn = nil
	}
}

func (c *collector) listen(conn *net.UDPConn, done chan struct{}) {
	defer close(done)
	b := make([]byte, 65536)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			err = c.take(from, b[:n])
		}
		if err != nil {
			c.mu.Lock()
			c.failed = errors.Join(c.failed, err)
			c.mu.Unlock()
		}
	}
}

func (c *collector) take(from netip.AddrPort, message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ipfix.Session{Exporter: from}
	r, err := c.decoder.Decode(s, time.Now(), message, c.record)
	c.sessions[s] = true
	c.unknown += r.Unknown
	c.lost += r.Lost
	return err
}

// record keeps a record of a flow; options are left out.
func (c *collector) record(r *ipfix.Record) error {
	if _, ok := r.Named("flowEndReason"); !ok {
		return nil
	}
	var err error
	number := func(name string) uint64 {
		v, ok := r.Named(name)
		if !ok {
			return 0
		}
		n, wrong := v.Unsigned()
		err = errors.Join(err, wrong)
		return n
	}
	address := func(name string) (a netip.Addr) {
		if v, ok := r.Named(name); ok {
			var wrong error
			a, wrong = v.Address()
			err = errors.Join(err, wrong)
		}
		return a
	}
	name := number("flowId")
	if start, ok := r.Named("flowStartMilliseconds"); ok && name == 0 { // the shape of a VDS
		at, wrong := start.Time()
		name, err = uint64(at.UnixMilli()), errors.Join(err, wrong)
	}
	id := flowID{direction: number("flowDirection"), in: number("ingressInterface"), out: number("egressInterface"),
		name:   name,
		source: address("sourceIPv4Address"), destination: address("destinationIPv4Address"),
		sourcePort: number("sourceTransportPort")}
	c.records[id] = append(c.records[id], told{reason: number("flowEndReason"),
		deltaPackets: number("packetDeltaCount"), totalPackets: number("packetTotalCount"),
		deltaBytes: number("octetDeltaCount"), totalBytes: number("octetTotalCount"),
		deltaFrame: number("layer2OctetDeltaCount")})
	return err
}

// account is packets and their bytes of layer 3.
type account struct{ packets, bytes uint64 }

func (a *account) add(packets, bytes uint64) { a.packets, a.bytes = a.packets+packets, a.bytes+bytes }

// sums are the sums of the records for each direction (0 into the switch, 1 out of it). If two records of a flow
// overlap, the overlap counts once: the records' totals show it.
func (c *collector) sums() (by [2]account, repeats int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, list := range c.records {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b told) int { return int(int64(a.totalPackets) - int64(b.totalPackets)) })
		var packets, bytes uint64 // reported so far
		for _, r := range list {
			fromPackets, fromBytes := max(packets, r.totalPackets-r.deltaPackets), max(bytes, r.totalBytes-r.deltaBytes)
			if r.totalPackets-r.deltaPackets < packets {
				repeats++
			}
			by[id.direction&1].add(r.totalPackets-fromPackets, r.totalBytes-fromBytes)
			packets, bytes = r.totalPackets, r.totalBytes
		}
	}
	return by, repeats
}

// reasons counts the records by why they were made.
func (c *collector) reasons() map[uint64]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[uint64]int{}
	for _, list := range c.records {
		for _, r := range list {
			by[r.reason]++
		}
	}
	return by
}

// sound fails the test where a message was no IPFIX message, or had data without a template.
func (c *collector) sound() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed != nil || c.unknown > 0 {
		c.t.Errorf("messages: %v; %d sets of data without a template", c.failed, c.unknown)
	}
}

func (a account) String() string { return fmt.Sprintf("%d packets, %d bytes", a.packets, a.bytes) }
