package export

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

// templatesIn is how many messages of c have a template set.
func (c *collector) templatesIn(from int) (n int) {
	c.read()
	for _, r := range c.results[from:] {
		if r.Templates > 0 {
			n++
		}
	}
	return n
}

func TestS70_TemplatesAreSentFirstAndAgainByTime(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	conf := to(c, VDS)
	conf.TemplateEvery = 20 * time.Second
	r := newRig(t, conf)
	r.send(record(0))
	c.awaitMessages(2)
	if len(c.results) != 2 || c.results[0].Templates != 13 || c.results[1].Unknown != 0 {
		t.Errorf("first messages %+v", c.results)
	}
	for range 60 {
		r.pass(time.Second)
		r.send(record(1))
	}
	if n := c.templatesIn(0); n != 4 {
		t.Errorf("templates were sent %d times in a minute, want at the beginning and every 20 s", n)
	}
}

func TestS70_TemplatesAreSentAgainByNumberOfMessages(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	conf := to(c, VDS)
	conf.TemplateMessages = 10
	r := newRig(t, conf)
	r.sendTo(c, many(2000)) // 20 records of 72 bytes in a message
	n := len(c.await(2000))
	since := 0
	for i, res := range c.results {
		if res.Templates > 0 {
			since = 0
		} else if since++; since > 10 {
			t.Fatalf("message %d is the %dth since the templates", i, since)
		}
	}
	if n != 2000 {
		t.Errorf("%d records", n)
	}
}

// Messages that are not full, because one is sent whenever something is due, count as well.
func TestS70_TemplatesAreSentAgainByNumberOfMessagesThatAreNotFull(t *testing.T) {
	for _, shape := range []Shape{Standard, VDS} {
		c := collect(t, "127.0.0.1:0")
		conf := to(c, shape)
		conf.TemplateMessages = 3
		r := newRig(t, conf)
		for i := range 10 {
			r.send(record(i))
		}
		if n := len(c.await(10)); n != 10 {
			t.Fatalf("%s: %d records", shape, n)
		}
		again, before := 0, false
		for _, res := range c.results {
			if res.Templates > 0 && !before {
				again++
			}
			before = res.Templates > 0
		}
		if again != 4 { // before the 1st, 4th, 7th and 10th
			t.Errorf("%s: templates were sent %d times, want 4", shape, again)
		}
	}
}

// A collector that begins later can read what comes after the next templates.
func TestS70_CollectorThatComesLaterReadsTheData(t *testing.T) {
	early := collect(t, "127.0.0.1:0")
	r := newRig(t, to(early, Standard))
	r.send(record(0))
	early.await(1)
	late := &collector{t: t, conn: early.conn, decoder: ipfix.NewDecoder(ipfix.Limits{})}
	r.send(record(1))
	if late.awaitMessages(1); len(late.records) != 0 || late.results[0].Unknown != 1 {
		t.Fatalf("read without a template: %v", late.records)
	}
	for range 61 {
		r.pass(time.Second)
	}
	r.send(record(2))
	if n := len(late.await(1)); n != 1 {
		t.Errorf("%d records were read after the templates came", n)
	}
}

// RFC 7011 §3.1: the sequence number counts data records, options records among them, modulo 2^32, for each session.
func TestSequenceNumbersCountDataRecords(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	n := 0
	for i := range 30 {
		r.sendTo(c, many(i*7))
		r.pass(10 * time.Second)
		n += i * 7
		c.await(n)
	}
	var next uint32
	for i, res := range c.results {
		if res.Header.Sequence != next || res.Lost != 0 || res.Header.Domain != 7 {
			t.Fatalf("message %d: %+v, want sequence %d", i, res, next)
		}
		next += uint32(res.Records)
	}
	if next < 3000 {
		t.Errorf("only %d records", next)
	}
	sessions := map[netip.AddrPort]bool{}
	for _, m := range c.messages {
		sessions[m.from] = true
	}
	// After a restart there is another session: it has another port, and begins with sequence 0 and templates.
	again := newRig(t, to(c, Standard))
	n = len(c.messages)
	again.send(record(0))
	if c.awaitMessages(n + 1); sessions[c.messages[n].from] || c.results[n].Header.Sequence != 0 ||
		c.results[n].Templates == 0 {
		t.Errorf("first message after a restart: %+v from %v", c.results[n], c.messages[n].from)
	}
}

func TestMessagesKeepToTheMTU(t *testing.T) {
	for _, mtu := range []int{0, 600, 1400, 9000} {
		c := collect(t, "127.0.0.1:0")
		conf := to(c, Standard)
		conf.MTU = mtu
		r := newRig(t, conf)
		r.sendTo(c, append(kinds(), many(500)...))
		n := len(c.await(500 + len(kinds())))
		want, largest := mtu, 0
		if mtu == 0 {
			want = 1500
		}
		for _, m := range c.messages {
			largest = max(largest, len(m.bytes)+28)
		}
		if largest > want || largest < want-400 {
			t.Errorf("MTU %d: the largest packet has %d bytes", mtu, largest)
		}
		if n != 500+len(kinds()) {
			t.Errorf("MTU %d: %d records", mtu, n)
		}
	}
}

func TestS67_SwitchAddressIsTheSourceOfWhatGoesToIPv4Collectors(t *testing.T) {
	four, six := collect(t, "127.0.0.1:0"), collect(t, "[::1]:0")
	r := newRig(t, Config{Source: netip.MustParseAddr("127.0.0.77"), Collectors: []Collector{
		{Address: "127.0.0.1", Port: four.port(), Shape: VDS}, {Address: "::1", Port: six.port(), Shape: VDS}}})
	r.send(record(0))
	four.await(1)
	six.await(1)
	if len(four.messages) != 2 || four.messages[1].from.Addr().String() != "127.0.0.77" {
		t.Errorf("the IPv4 collector sees %+v", four.messages)
	}
	if len(six.messages) != 2 || six.messages[1].from.Addr().String() != "::1" {
		t.Errorf("the IPv6 collector sees %+v", six.messages)
	}
	if len(four.flows()) != 1 || len(six.flows()) != 1 {
		t.Errorf("records %v, %v", four.flows(), six.flows())
	}
}

// RFC 5471 §3.5.6.
func TestRFC5471_3_5_6_CollectorsHaveSessionsOfTheirOwn(t *testing.T) {
	a, b := collect(t, "127.0.0.1:0"), collect(t, "127.0.0.1:0")
	conf := to(a, Standard)
	conf.Collectors = append(conf.Collectors, Collector{Address: "127.0.0.1", Port: b.port(), Shape: VDS})
	r := newRig(t, conf)
	in := record(0)
	in.Key.Direction = flow.Ingress
	r.send(in, record(1), record(2))
	if x, y := len(a.await(3)), len(b.await(2)); x != 3 || y != 2 {
		t.Errorf("%d records at the standard collector, %d at that of the vds shape", x, y)
	}
	if a.messages[0].from == b.messages[0].from {
		t.Error("both sessions have the same source port")
	}
	st := r.x.Status()
	if st[0].Records != 3 || st[1].Records != 2 || st[1].Unshaped != 1 || st[0].State != Sending ||
		st[0].Local != a.messages[0].from.String() {
		t.Errorf("status %+v", st)
	}
}

// RFC 5471 §3.6.3. A collector closes its port: refused messages count as lost, then records wait, then they count as
// lost. When it is back it is told the number of records it missed.
func TestRFC5471_3_6_3_CollectorThatRestartsIsToldWhatItMissed(t *testing.T) {
	c := collect(t, own(4740).String())
	r := newRig(t, to(c, Standard))
	for range 12 {
		r.pass(time.Second)
		r.send(many(20)...)
	}
	first := c.await(12 * 20)
	c.close()
	given := 12 * 20
	r.send(many(100)...)
	given += 100
	r.await(func(st Status) bool { return st.State == Away })
	if st := r.x.Status()[0]; st.Lost.Records != 100 {
		t.Fatalf("status %+v", st)
	}
	if n := r.x.Budget(r.now); n != 0 {
		t.Errorf("%d records are asked for though the collector went a moment ago", n)
	}
	for range 6 {
		r.pass(time.Second)
	}
	if n := r.x.Budget(r.now); n == 0 {
		t.Error("records are kept back though the collector is away for long")
	}
	r.send(many(50)...)
	given += 50
	back := collect(t, c.address().String())
	for range 3 {
		r.pass(time.Second)
	}
	r.send(many(30)...)
	given += 30
	second := back.await(30)
	st := r.x.Status()[0]
	if st.State != Sending || st.Why != "" || int(st.Lost.Records) != given-len(first)-len(second) ||
		int(st.Records) != len(first)+len(second) || len(second) != 30 {
		t.Errorf("%d records were given, %d and %d arrived; status %+v", given, len(first), len(second), st)
	}
	told := back.with("notSentFlowTotalCount")
	lost := append(many(100), many(50)...)
	var packets, octets uint64
	for _, l := range lost {
		packets, octets = packets+l.Delta.Packets, octets+l.Delta.Bytes
	}
	last := told[len(told)-1]
	if number(t, last, "notSentFlowTotalCount") != 150 || number(t, last, "notSentPacketTotalCount") != packets ||
		number(t, last, "notSentOctetTotalCount") != octets {
		t.Errorf("the collector was told %v, want 150 records, %d packets, %d octets", last, packets, octets)
	}
}

// One collector that is away does not keep records from another.
func TestOtherCollectorsGoOnDuringAnOutage(t *testing.T) {
	a, b := collect(t, "127.0.0.1:0"), collect(t, "127.0.0.1:0")
	conf := to(a, Standard)
	conf.Collectors = append(conf.Collectors, Collector{Address: "127.0.0.1", Port: b.port(), Shape: Standard})
	r := newRig(t, conf)
	a.close()
	r.send(many(100)...)
	r.pass(10 * time.Second)
	r.send(many(100)...)
	if n := len(b.await(200)); n != 200 {
		t.Errorf("%d of 200 records arrived at the other collector", n)
	}
	if st := r.x.Status(); st[0].Lost.Records != 200 || st[1].Lost.Records != 0 {
		t.Errorf("status %+v", st)
	}
}

func TestNameThatDoesNotResolveIsTriedAgainAndSeen(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	conf := to(c, Standard)
	conf.Collectors[0].Address = "collector.example"
	answers := make(chan error)
	conf.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
		select {
		case err := <-answers:
			if err != nil {
				return nil, err
			}
			return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1")}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	r := newRig(t, conf)
	if r.x.Budget(r.now) != 0 {
		t.Error("records are asked for before the name is resolved")
	}
	answers <- errors.New("no such host")
	r.await(func(st Status) bool { return st.Why == "look the name up: no such host" && st.State == Resolving })
	r.now.Up += 6 * time.Second
	if r.x.Budget(r.now) == 0 {
		t.Error("records wait for ever for a name")
	}
	r.send(many(3)...)
	answers <- nil
	r.await(func(st Status) bool { return st.State == Sending })
	r.send(many(4)...)
	if st := r.x.Status()[0]; len(c.await(4)) != 4 || st.Lost.Records != 3 {
		t.Errorf("%d records arrived; status %+v", len(c.flows()), st)
	}
}

// await ticks until the first collector's status is as wanted.
func (r *rig) await(want func(Status) bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.x.Tick(r.now, func() meter.State { return r.state })
		if want(r.x.Status()[0]) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("status %+v", r.x.Status())
		}
	}
}

func TestRateBoundsWhatIsAskedFor(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	conf := to(c, VDS)
	conf.Rate = 10_000
	r := newRig(t, conf)
	sent := 0
	for range 100 {
		n := r.x.Budget(r.now)
		r.send(many(n)...)
		sent += n
		r.pass(10 * time.Millisecond)
		c.read()
	}
	if sent < 9_000 || sent > 11_000 {
		t.Errorf("%d records in a second at 10000 a second", sent)
	}
	r.send(many(50_000)...)
	if n := r.x.Budget(r.now); n != 0 {
		t.Errorf("%d records are asked for after a burst", n)
	}
	r.pass(600 * time.Millisecond)
	if r.x.Budget(r.now) == 0 {
		t.Error("a burst is a debt for longer than half a second")
	}
}

func TestCloseTellsWhatWasSent(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	r.send(many(5)...)
	r.x.Close(r.now)
	c.awaitMessages(4)
	told := c.with("exportedFlowRecordTotalCount")
	if last := told[len(told)-1]; number(t, last, "exportedFlowRecordTotalCount") != 5 ||
		number(t, last, "exportedMessageTotalCount") < 2 {
		t.Errorf("told %v", last)
	}
}

// Message headers: version 10, the length of the message, whole seconds of export.
func TestMessageHeaders(t *testing.T) {
	c := collect(t, "127.0.0.1:0")
	r := newRig(t, to(c, Standard))
	r.send(many(40)...)
	c.await(40)
	for i, m := range c.messages {
		if binary.BigEndian.Uint16(m.bytes) != 10 || int(binary.BigEndian.Uint16(m.bytes[2:])) != len(m.bytes) ||
			int64(binary.BigEndian.Uint32(m.bytes[4:])) != begin.Wall.Unix() {
			t.Errorf("header of message %d: %x", i, m.bytes[:16])
		}
	}
	if !slices.IsSortedFunc(c.results, func(a, b ipfix.Result) int {
		return int(a.Header.Sequence) - int(b.Header.Sequence)
	}) {
		t.Error("sequence numbers are not in order")
	}
}
