package export

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
)

// streamCollector decodes what it receives over TCP or TLS.
type streamCollector struct {
	t       *testing.T
	at      netip.AddrPort
	tls     *tls.Config
	paused  chan struct{} // closed: it reads; nil: it always does
	mu      sync.Mutex
	gone    sync.WaitGroup
	listens net.Listener
	conns   []net.Conn
	streams []*received
}

// received is what came in one session.
type received struct {
	results   []ipfix.Result
	lengths   []int
	templates int // data records after which no set was without its template
	told      totals
	notSent   uint64 // as the last options record says
	names     int    // options records of ports' names
	err       error  // except the end of the connection
	partial   int    // bytes of a message that was cut off
}

func collectStream(t *testing.T, at netip.AddrPort, conf *tls.Config) *streamCollector {
	t.Helper()
	c := &streamCollector{t: t, at: at, tls: conf}
	c.listen()
	t.Cleanup(c.stop)
	return c
}

// listen begins to listen, again at the same port.
func (c *streamCollector) listen() {
	c.t.Helper()
	l, err := net.Listen("tcp", c.at.String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.at, c.listens = l.Addr().(*net.TCPAddr).AddrPort(), l
	c.gone.Go(func() { c.accept(l) })
}

// stop closes the port and every connection, like the kernel for a killed process.
func (c *streamCollector) stop() {
	_ = c.listens.Close()
	c.mu.Lock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
	c.mu.Unlock()
	c.gone.Wait()
}

func (c *streamCollector) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
		c.gone.Go(func() { c.read(conn) })
	}
}

func (c *streamCollector) read(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	session := ipfix.Session{Protocol: ipfix.TCP, Exporter: conn.RemoteAddr().(*net.TCPAddr).AddrPort()}
	from := io.Reader(conn)
	if c.tls != nil {
		over := tls.Server(conn, c.tls)
		if over.Handshake() != nil {
			return
		}
		from = over
	}
	r := &received{}
	c.mu.Lock()
	c.streams = append(c.streams, r)
	paused := c.paused
	c.mu.Unlock()
	if paused != nil {
		<-paused
	}
	decoder := ipfix.NewDecoder(ipfix.Limits{})
	for {
		message := make([]byte, 65536)
		n, err := io.ReadFull(from, message[:4])
		if err == nil {
			var more int
			more, err = io.ReadFull(from, message[4:binary.BigEndian.Uint16(message[2:])])
			n += more
		}
		c.mu.Lock()
		if err != nil {
			r.partial = n
			c.mu.Unlock()
			return
		}
		r.take(decoder, session, message[:n])
		c.mu.Unlock()
	}
}

func (r *received) take(decoder *ipfix.Decoder, session ipfix.Session, message []byte) {
	res, err := decoder.Decode(session, time.Now(), message, func(rec *ipfix.Record) error {
		value := func(name string) uint64 {
			v, _ := rec.Named(name)
			n, _ := v.Unsigned()
			return n
		}
		if _, ok := rec.Named("flowEndReason"); ok {
			r.told.records++
			r.told.packets += value("packetDeltaCount")
			r.told.octets += value("octetDeltaCount")
		}
		if _, ok := rec.Named("notSentFlowTotalCount"); ok {
			r.notSent = value("notSentFlowTotalCount")
		}
		if _, ok := rec.Named("interfaceName"); ok {
			r.names++
		}
		return nil
	})
	r.err = errors.Join(r.err, err)
	r.templates += res.Templates
	r.results, r.lengths = append(r.results, res), append(r.lengths, len(message))
}

// sessions are copies of what came in each session so far.
func (c *streamCollector) sessions() []received {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]received, 0, len(c.streams))
	for _, r := range c.streams {
		all = append(all, *r)
	}
	return all
}

// pause makes it read nothing of new sessions until goOn is called.
func (c *streamCollector) pause() (goOn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	paused := make(chan struct{})
	c.paused = paused
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paused = nil
		close(paused)
	}
}

// messages returns how many messages of the last session the collector has read.
func (c *streamCollector) messages() uint64 {
	all := c.sessions()
	return uint64(len(all[len(all)-1].results))
}

// awaitRead waits until the collector has read every message of the last session that was sent to it.
func (r *rig) awaitRead(c *streamCollector) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); c.messages() < r.x.Status()[0].Messages; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the collector has read %d messages; status %+v", c.messages(), r.x.Status()[0])
		}
	}
}

// told is the sum of what all sessions reported.
func (c *streamCollector) told() (sum totals) {
	for _, r := range c.sessions() {
		sum.records, sum.packets, sum.octets = sum.records+r.told.records, sum.packets+r.told.packets, sum.octets+
			r.told.octets
	}
	return sum
}

// sound fails the test if a session did not begin with templates, had a gap, or had data before its template.
func (c *streamCollector) sound() {
	c.t.Helper()
	for i, s := range c.sessions() {
		if s.err != nil {
			c.t.Errorf("session %d: %v", i, s.err)
		}
		var next uint32
		for k, r := range s.results {
			if r.Header.Sequence != next || r.Unknown > 0 || (r.Templates > 0) != (k == 0) {
				c.t.Fatalf("session %d, message %d: %+v, want sequence %d, and templates in the first message alone", i,
					k, r, next)
			}
			next += uint32(r.Records)
		}
	}
}

// streaming is a configuration with that collector.
func streaming(c *streamCollector, transport Transport) Config {
	to := Collector{Address: c.at.Addr().String(), Port: c.at.Port(), Shape: Standard, Transport: transport}
	p := usualPace()
	p.first, p.last, p.proving, p.connect = 5*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond, 2*time.Second
	return Config{Domain: 7, DomainName: "lab on host1", Collectors: []Collector{to}, pace: p}
}

// until lets time pass until f returns true.
func (r *rig) until(what string, f func(Status) bool) Status {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.pass(10 * time.Millisecond)
		st := r.x.Status()[0]
		if f(st) {
			return st
		}
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain: %s; status %+v", what, st)
		}
	}
}

func sending(st Status) bool { return st.State == Sending }

func sumOf(records []flow.Record) (sum totals) {
	for i := range records {
		sum.records, sum.packets, sum.octets = sum.records+1, sum.packets+records[i].Delta.Packets, sum.octets+
			records[i].Delta.Bytes
	}
	return sum
}

// Over TCP a session begins with templates, which are not sent again; messages are framed by their length, numbers
// count data records, and options come again by time (RFC 7011 §8.1, §10.4).
func TestTCPSendsTemplatesOnceAndOptionsAgain(t *testing.T) {
	c := collectStream(t, own(4739), nil)
	conf := streaming(c, TCP)
	conf.TemplateEvery, conf.TemplateMessages = 20*time.Second, 3
	r := newRig(t, conf)
	r.until("it is connected", sending)
	records := append(kinds(), many(5000)...)
	r.send(records...)
	for range 60 {
		r.pass(time.Second)
	}
	want := r.totals(r.x.sessions[0].shape, records, false)
	st := r.until("everything is confirmed", func(st Status) bool {
		return st.Records == uint64(len(records)) &&
			st.Waiting == (Loss{})
	})
	r.x.Close(r.now)
	r.awaitRead(c)
	c.sound()
	got := c.sessions()
	if len(got) != 1 || got[0].told.records != want.records || got[0].partial != 0 || got[0].names != len(points()) {
		t.Fatalf("%d sessions, the first told of %+v, want %+v; %d names", len(got), got[0].told, want, got[0].names)
	}
	options, longest := 0, 0
	for i, res := range got[0].results {
		longest = max(longest, got[0].lengths[i])
		if i > 0 && res.Records > 0 && res.Records < 12 {
			options++
		}
	}
	if options < 4 || longest > streamMessage || longest < streamMessage-200 {
		t.Errorf("options came %d times, the longest message has %d bytes", options, longest)
	}
	if st.Messages == 0 || st.Unsure != (Loss{}) || st.Lost != (Loss{}) || st.Local == "" ||
		st.Remote != c.at.String() {
		t.Errorf("status %+v", st)
	}
}

// The exporter does not wait for a collector that is away: records that are due are stored for it, up to a limit;
// further ones count as lost, and the collector is told so when it is back. What it received plus what counts as lost
// is what was counted, to the packet and byte.
func TestTCPCollectorThatGoesAndComesBack(t *testing.T) {
	c := collectStream(t, own(4740), nil)
	r := newRig(t, streaming(c, TCP))
	r.until("it is connected", sending)
	var sent totals
	send := func(n int) {
		records := many(n)
		s := sumOf(records)
		sent.records, sent.packets, sent.octets = sent.records+s.records, sent.packets+s.packets, sent.octets+s.octets
		r.send(records...)
	}
	for round := range 4 {
		send(3000)
		r.until("it has read everything", func(st Status) bool {
			return st.Waiting == (Loss{}) && st.Records == c.told().records && r.x.sessions[0].stream.idle()
		})
		r.until("options too", func(Status) bool { return c.messages() == r.x.Status()[0].Messages })
		c.stop()
		r.until("it is seen to have gone", func(st Status) bool { return st.State == Away && st.Why != "" })
		send(20_000)
		if n := r.x.Budget(r.now); round == 0 && n == 0 && r.x.tokens > 0 {
			t.Error("the others have to wait for it")
		}
		send(round * 30_000)
		r.now.Up += 10 * time.Second
		c.listen()
		r.until("it is back, and has everything", func(st Status) bool { return sending(st) && st.Waiting == (Loss{}) })
	}
	st := r.x.Status()[0]
	r.pass(time.Minute)
	r.until("options are confirmed", func(st Status) bool { return r.x.sessions[0].stream.idle() })
	r.awaitRead(c)
	told := c.told()
	got := c.sessions()
	if told.records+st.Lost.Records != sent.records || told.packets+st.Lost.Packets != sent.packets || told.octets+
		st.Lost.Bytes != sent.octets {
		t.Errorf("told of %+v and lost %+v, sent %+v; unsure %+v", told, st.Lost, sent, st.Unsure)
	}
	if st.Lost.Records == 0 || st.Unsure != (Loss{}) || st.Records != told.records ||
		got[len(got)-1].notSent != st.Lost.Records {
		t.Errorf("status %+v; the collector was told that %d records are missing", st, got[len(got)-1].notSent)
	}
	c.sound()
}

func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	return len(s.queue)+len(s.flight) == 0
}

// A collector that is connected but reads nothing delays nobody: messages wait for it up to a limit, the rest is lost,
// and others get everything. When it reads again it gets whole messages.
func TestTCPCollectorThatDoesNotRead(t *testing.T) {
	stuck, other := collectStream(t, own(4741), nil), collectStream(t, own(4742), nil)
	goOn := stuck.pause()
	conf := streaming(stuck, TCP)
	conf.Collectors = append(conf.Collectors, streaming(other, TCP).Collectors...)
	r := newRig(t, conf)
	r.until("both are connected", func(Status) bool { a := r.x.Status(); return sending(a[0]) && sending(a[1]) })
	const portions, portion = 60, 2000
	began := time.Now()
	for i := range portions {
		r.send(many(portion)...)
		r.until("the other has read it", func(Status) bool { return other.told().records == uint64(i+1)*portion })
	}
	if took := time.Since(began); took > portions*time.Second { // an attempt that is given up takes longer than that
		t.Errorf("%v for what the other collector takes at once", took)
	}
	st := r.x.Status()
	r.x.sessions[0].stream.mu.Lock()
	held := r.x.sessions[0].stream.bytes
	r.x.sessions[0].stream.mu.Unlock()
	if st[0].Lost.Records == 0 || held > mostQueued+streamMessage || st[1].Lost != (Loss{}) {
		t.Errorf("held %d bytes; status %+v", held, st)
	}
	goOn()
	r.until("it has what waited", func(st Status) bool { return st.Waiting == (Loss{}) })
	r.x.Close(r.now)
	r.awaitTold(stuck, r.x.Status()[0].Records)
	if told, st := stuck.told(), r.x.Status()[0]; told.records+st.Lost.Records != portions*portion ||
		st.Unsure != (Loss{}) {
		t.Errorf("it was told of %+v, status %+v", told, st)
	}
	stuck.sound()
	other.sound()
}

// A collector is killed with unread data: the exporter cannot know how much that was. It is reported as unsure.
func TestTCPWhatAKilledCollectorHadNotReadIsUnsure(t *testing.T) {
	c := collectStream(t, own(4743), nil)
	goOn := c.pause()
	r := newRig(t, streaming(c, TCP))
	r.until("it is connected", sending)
	records := many(500)
	r.send(records...)
	r.until("its host has everything", func(st Status) bool { return st.Waiting == (Loss{}) && st.Records == 500 })
	_ = c.listens.Close()
	c.mu.Lock()
	for _, conn := range c.conns {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	c.mu.Unlock()
	goOn()
	st := r.until("that is seen", func(st Status) bool { return st.State == Away })
	want := sumOf(records)
	if st.Unsure != (Loss{want.records, want.packets, want.octets}) || st.Lost != (Loss{}) ||
		!strings.Contains(st.Why, "reset") && !strings.Contains(st.Why, "refused") {
		t.Errorf("status %+v", st)
	}
}

// Something else that listens, and answers, is no collector.
func TestTCPServiceThatAnswersIsNoCollector(t *testing.T) {
	l, err := net.Listen("tcp", own(4744).String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 mail.example.net\r\n"))
		}
	}()
	r := newRig(t, streaming(&streamCollector{at: own(4744)}, TCP))
	st := r.until("it is seen", func(st Status) bool { return st.State == Away })
	if !strings.Contains(st.Why, "no IPFIX collector") {
		t.Errorf("status %+v", st)
	}
}

func TestTCPNobodyListens(t *testing.T) {
	conf := streaming(&streamCollector{at: own(4745)}, TCP)
	conf.pace.finish = 2 * time.Minute // for what is under way, which nothing is
	r := newRig(t, conf)
	if r.x.Budget(r.now) == 0 {
		t.Error("the others have to wait for it")
	}
	st := r.until("it is seen", func(st Status) bool { return st.State == Away })
	if want := "nobody listens at " + own(4745).String() + " over TCP (connection refused)"; st.Why != want {
		t.Errorf("%q, want %q", st.Why, want)
	}
	r.send(many(10)...)
	began := time.Now()
	r.x.Close(r.now)
	if st := r.x.Status()[0]; st.Lost.Records != 10 || st.Waiting != (Loss{}) ||
		time.Since(began) > time.Minute {
		t.Errorf("closed after %v with %+v", time.Since(began), st)
	}
}

// A collector's name gets another address: messages under way go to the old one, and the following ones to the new one.
func TestTCPFollowsTheNameOfTheCollector(t *testing.T) {
	first := collectStream(t, own(4746), nil)
	second := collectStream(t, netip.AddrPortFrom(own(1).Addr().Next(), 4746), nil)
	conf := streaming(first, TCP)
	conf.Collectors[0].Address = "flows.example.net"
	conf.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{first.at.Addr()}, nil }
	r := newRig(t, conf)
	r.until("it is connected", sending)
	r.send(many(2000)...)
	r.x.sessions[0].names.last.Store(&resolution{addresses: []netip.Addr{second.at.Addr()}})
	r.until("the other is sent records", func(st Status) bool { return sending(st) && st.Remote == second.at.String() })
	r.send(many(3000)...)
	st := r.until("everything is confirmed", func(st Status) bool { return st.Waiting == (Loss{}) })
	r.x.Close(r.now)
	r.awaitTold(first, 2000)
	r.awaitTold(second, 3000)
	if st.Counted.Since.IsZero() {
		t.Errorf("it is not known since when what is lost is counted: %+v", st)
	}
	if a, b := first.told().records, second.told().records; a != 2000 || b != 3000 || st.Lost != (Loss{}) ||
		st.Unsure != (Loss{}) {
		t.Errorf("told of %d and %d records; status %+v", a, b, st)
	}
	first.sound()
	second.sound()
}

// switchIpAddress is the source (S67); over TCP it has to be one of the host.
func TestS67_SwitchAddressOverTCP(t *testing.T) {
	c := collectStream(t, own(4747), nil)
	conf := streaming(c, TCP)
	conf.Source = c.at.Addr().Next()
	r := newRig(t, conf)
	if st := r.until("it is connected", sending); netip.MustParseAddrPort(st.Local).Addr() != conf.Source {
		t.Errorf("status %+v", st)
	}
	conf.Source = netip.MustParseAddr("203.0.113.9")
	r = newRig(t, conf)
	if st := r.until("it can't be", func(st Status) bool { return st.State == Away }); !strings.Contains(st.Why,
		"switchIpAddress 203.0.113.9 is not an address of this host") {
		t.Errorf("status %+v", st)
	}
}

// If the connection breaks while the kernel's socket has a part of a message, the whole message is sent again: a
// session never contains part of a message that another one began.
func TestTCPMessageThatWasCutOffIsSentAgainWhole(t *testing.T) {
	c := collectStream(t, own(4748), nil)
	goOn := c.pause()
	r := newRig(t, streaming(c, TCP))
	r.until("it is connected", sending)
	stream := r.x.sessions[0].stream
	for i := 0; ; i++ { // until the kernel's buffer is full
		r.send(many(500)...)
		stream.mu.Lock()
		_, _, room := stream.line.wire.progress()
		full := !room && len(stream.queue) > 0
		w := stream.line.wire
		stream.mu.Unlock()
		if full {
			if err := w.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) }); err != nil {
				t.Fatal(err)
			}
			break
		}
		if i > 1000 {
			t.Fatal("the kernel has room for everything")
		}
	}
	goOn()
	st := r.until("everything has come in another session", func(st Status) bool {
		return st.Waiting == (Loss{}) &&
			len(c.sessions()) > 1 && sending(st)
	})
	r.x.Close(r.now)
	r.awaitTold(c, st.Records)
	c.sound()
	told := c.told()
	if counted := r.x.sessions[0].status; told.records < st.Records || told.records > st.Records+st.Unsure.Records ||
		st.Lost != (Loss{}) || counted.Waiting != (Loss{}) {
		t.Errorf("told of %+v; status %+v", told, st)
	}
	if first := c.sessions()[0]; first.partial == 0 {
		t.Log("the cut was between two messages")
	}
}
