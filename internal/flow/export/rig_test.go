package export

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// collector is a socket that decodes what it receives.
type collector struct {
	t        *testing.T
	conn     *net.UDPConn
	decoder  *ipfix.Decoder
	messages []message
	records  []map[string]ipfix.Value
	results  []ipfix.Result
}

// message is one that arrived.
type message struct {
	bytes []byte
	from  netip.AddrPort
}

func collect(t *testing.T, at string) *collector {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, conn: conn, decoder: ipfix.NewDecoder(ipfix.Limits{})}
	t.Cleanup(c.close)
	return c
}

// close closes the collector's port. A program that another test is starting at this moment has a copy of the socket
// until it runs; messages would arrive in the copy without being read or refused. So close waits until the kernel has
// no such socket. It may be called again.
func (c *collector) close() {
	inode := ""
	if raw, err := c.conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			var stat unix.Stat_t
			if unix.Fstat(int(fd), &stat) == nil {
				inode = fmt.Sprintf(" %d ", stat.Ino)
			}
		})
	}
	if c.conn.Close() != nil || inode == "" {
		return
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		sockets, err := os.ReadFile("/proc/thread-self/net/udp")
		if err != nil {
			c.t.Fatal(err)
		}
		if !bytes.Contains(sockets, []byte(inode)) {
			return
		}
		if time.Now().After(end) {
			c.t.Fatal("another process keeps the collector's socket open")
		}
	}
}

// own is an address and port that a collector can close and open again without another process taking it meanwhile: the
// address belongs to this process alone, and the kernel does not assign the port.
func own(port uint16) netip.AddrPort {
	pid := os.Getpid() // 22 bits at most
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(64 | pid>>16&63), byte(pid >> 8), byte(pid)}), port)
}

func (c *collector) address() netip.AddrPort { return c.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

func (c *collector) port() uint16 { return c.address().Port() }

// await reads until n flow records have come, for some seconds at most, and returns all that came.
func (c *collector) await(n int) []map[string]ipfix.Value {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if f := c.flows(); len(f) >= n || time.Now().After(end) {
			return f
		}
	}
}

// awaitMessages reads until n messages have come.
func (c *collector) awaitMessages(n int) {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); len(c.messages) < n && time.Now().Before(end); {
		c.read()
	}
}

// read takes everything that has arrived.
func (c *collector) read() {
	c.t.Helper()
	b := make([]byte, 65536)
	for {
		if err := c.conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond)); err != nil {
			c.t.Fatal(err)
		}
		n, from, err := c.conn.ReadFromUDPAddrPort(b)
		if os.IsTimeout(err) {
			if n, from, err = c.there(b); errors.Is(err, unix.EAGAIN) {
				return
			}
		}
		if err != nil {
			c.t.Fatal(err)
		}
		m := message{bytes: append([]byte(nil), b[:n]...), from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}
		c.messages = append(c.messages, m)
		res, err := c.decoder.Decode(ipfix.Session{Protocol: ipfix.UDP, Exporter: m.from}, time.Now(), m.bytes,
			func(r *ipfix.Record) error {
				values := map[string]ipfix.Value{
					"template": {Bytes: []byte{byte(r.Template.ID() >> 8), byte(r.Template.ID())}}}
				r = r.Clone()
				for i := range r.Template.Len() {
					v := r.Value(i)
					values[v.Element().String()] = v
				}
				c.records = append(c.records, values)
				return nil
			})
		if err != nil {
			c.t.Errorf("message %d: %v", len(c.messages), err)
		}
		c.results = append(c.results, res)
	}
}

// there reads what has arrived without waiting. On a machine that did not let the process run for so long, a deadline
// is over before anything was tried; EAGAIN means that there is nothing.
func (c *collector) there(b []byte) (n int, from netip.AddrPort, err error) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return 0, from, err
	}
	var sender unix.Sockaddr
	if late := raw.Control(func(fd uintptr) {
		n, sender, err = unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
	}); late != nil || err != nil {
		return 0, from, errors.Join(late, err)
	}
	switch a := sender.(type) {
	case *unix.SockaddrInet4:
		from = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		from = netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return n, from, nil
}

// with are the flow records that have the element.
func (c *collector) with(element string) (found []map[string]ipfix.Value) {
	c.read()
	for _, r := range c.records {
		if _, ok := r[element]; ok {
			found = append(found, r)
		}
	}
	return found
}

func (c *collector) flows() []map[string]ipfix.Value { return c.with("flowEndReason") }

func number(t *testing.T, r map[string]ipfix.Value, element string) uint64 {
	t.Helper()
	v, ok := r[element]
	if !ok {
		t.Fatalf("a record has no %s: %v", element, r)
	}
	n, err := v.Unsigned()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var begin = meter.Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: 1000 * time.Second}

// rig is an exporter whose clock the test advances.
type rig struct {
	t     *testing.T
	x     *Exporter
	now   meter.Instant
	state meter.State
}

func newRig(t *testing.T, c Config) *rig {
	t.Helper()
	x, err := New(begin, c)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, x: x, now: begin, state: meter.State{Points: points()}}
	t.Cleanup(func() { x.Close(r.now) })
	return r
}

func (r *rig) pass(d time.Duration) {
	r.now.Wall, r.now.Up = r.now.Wall.Add(d), r.now.Up+d
	r.x.Tick(r.now, func() meter.State { return r.state })
}

func (r *rig) send(records ...flow.Record) { r.x.Export(r.now, r.state.Points, records) }

// sendTo sends many records, at most as many at once as fit into the collector's socket.
func (r *rig) sendTo(c *collector, records []flow.Record) {
	for len(records) > 0 {
		n := min(200, len(records))
		r.send(records[:n]...)
		c.read()
		records = records[n:]
	}
}

func points() flow.Points {
	return flow.Points{
		1: {ID: plan.PortID{Switch: "lab", Name: "vm1"}, Number: 10, PortGroup: "web", Device: "tap1"},
		2: {ID: plan.PortID{Switch: "lab", Name: "vm2"}, Number: 11, PortGroup: "web"},
		3: {ID: plan.PortID{Switch: "lab", Name: "uplink1"}, Number: 2, Uplink: true, Device: "eno1"},
	}
}

// record is the i-th of many that are all different: of TCP over IPv4 from vm1 to vm2.
func record(i int) flow.Record {
	k := flow.Key{Point: 2, VLAN: 100, EtherType: flow.IPv4, Direction: flow.Egress, Protocol: protoTCP,
		SrcMAC: plan.MAC{2, 0, 0, 0, 1, 1},
		DstMAC: plan.MAC{2, 0, 0, 0, 1, 2}, Src: [16]byte{10, 1, byte(i >> 8), byte(i)}, Dst: [16]byte{10, 2, 0, 1},
		SrcPort: uint16(1024 + i), DstPort: 80}
	ms := begin.Wall.UnixMilli()
	d := flow.Counts{Packets: uint64(i%7 + 1), Bytes: uint64(i%7+1) * 100, FrameBytes: uint64(i%7+1) * 114,
		First: ms - 5000, Last: ms - 1000, In: 1, Out: 2,
		TCPFlags: 0x12, TOS: 0xb8, MinTTL: 62, MaxTTL: 64}
	total := d
	total.Packets, total.Bytes, total.FrameBytes, total.First = d.Packets+10, d.Bytes+1000, d.FrameBytes+1140, ms-60000
	return flow.Record{Key: k, Reason: flow.ActiveTimeout, Start: ms - 60000, Delta: d, Total: total}
}

func many(n int) []flow.Record {
	rs := make([]flow.Record, n)
	for i := range rs {
		rs[i] = record(i)
	}
	return rs
}

// kinds are records of every kind: IPv4 and IPv6, with ports, with all flags of TCP, ICMP, others, and MACs alone; one
// of each in both directions.
func kinds() []flow.Record {
	var all []flow.Record
	for i, protocol := range []uint8{protoTCP, protoUDP, protoSCTP, 47, protoICMP, protoICMPv6} {
		for j, etherType := range []uint16{flow.IPv4, flow.IPv6, 0x0806} {
			if protocol == protoICMP && etherType == flow.IPv6 || protocol == protoICMPv6 && etherType == flow.IPv4 ||
				etherType == 0x0806 && i > 0 {
				continue
			}
			r := record(100*i + j)
			r.Key.EtherType, r.Key.Protocol = etherType, protocol
			switch {
			case etherType == flow.IPv6:
				r.Key.Src, r.Key.Dst = netip.MustParseAddr("2001:db8::1").As16(), netip.MustParseAddr(
					"2001:db8::2").As16()
			case etherType != flow.IPv4:
				r.Key.Src, r.Key.Dst, r.Key.Protocol, r.Key.SrcPort, r.Key.DstPort = [16]byte{}, [16]byte{}, 0, 0, 0
			}
			switch kindOf(&r.Key) {
			case withICMP:
				r.Key.SrcPort, r.Key.DstPort = 0, 8<<8
			case 0:
				r.Key.SrcPort, r.Key.DstPort = 0, 0
			}
			all = append(all, r)
			b := r
			b.Reverse = &flow.Reverse{Start: r.Start + 5, Delta: r.Delta, Total: r.Total}
			b.Reverse.Delta.Packets += 100
			all = append(all, b)
			if protocol == protoTCP && etherType != 0x0806 {
				b.Reverse = &flow.Reverse{Start: r.Start + 5, Delta: r.Delta, Total: r.Total}
				b.Reverse.Delta.TCPFlags = 0x112
				r.Delta.TCPFlags = 0x112
				all = append(all, r, b)
			}
		}
	}
	return all
}

func to(c *collector, s Shape) Config {
	return Config{Domain: 7, DomainName: "lab on host1",
		Collectors: []Collector{{Address: c.address().Addr().Unmap().String(), Port: c.port(), Shape: s}}}
}

// text is a value for people, without the padding of a string of fixed length.
func text(r map[string]ipfix.Value, element string) string {
	v := r[element]
	v.Bytes = bytes.TrimRight(v.Bytes, "\x00")
	if v.Element().Type != ipfix.String {
		v = r[element]
	}
	return fmt.Sprint(v)
}

// A closed collector is really gone, even while programs are being started; otherwise a test of outages would count
// packets that went to a socket that nobody reads.
func TestAClosedCollectorIsGoneWhileProgramsStart(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := exec.Command("true").Run(); err != nil {
				stopped <- err
				return
			}
		}
	}()
	at := own(4741).String()
	for range 300 {
		collect(t, at).close()
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
