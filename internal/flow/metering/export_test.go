package metering

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/meter"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// exporting is an exporter of switch lab whose events are stored; the test advances its clock.
type exporting struct {
	*exporter
	t      *testing.T
	now    meter.Instant
	events []event.Event
}

// newExporting makes the exporter of an agent with that directory.
func newExporting(t *testing.T, dir string, x plan.IPFIX) *exporting {
	t.Helper()
	now, err := meter.Now()
	if err != nil {
		t.Fatal(err)
	}
	e := &exporting{t: t, now: now}
	make := Exporters(ExportOptions{Host: "host1", Dir: dir, Log: slog.New(slog.DiscardHandler),
		Publish: func(v event.Event) { e.events = append(e.events, v) }})
	e.exporter = make(now, "lab", x).(*exporter)
	t.Cleanup(func() { e.Close(e.now) })
	return e
}

// pass lets seconds pass.
func (e *exporting) pass(seconds int) {
	for range seconds {
		e.now.Up, e.now.Wall = e.now.Up+time.Second, e.now.Wall.Add(time.Second)
		e.Tick(e.now, func() meter.State { return meter.State{} })
		time.Sleep(time.Millisecond) // for refusals from the network
	}
}

// counted is since when losses are counted, which must not have changed.
func (e *exporting) counted(was *export.Span) export.Span {
	e.t.Helper()
	all, err := e.Status()
	if err != nil {
		e.t.Fatal(err)
	}
	span := all[0].Counted
	if was == nil && (span.Since.IsZero() || !span.Latest.IsZero()) || was != nil &&
		(span.Since != was.Since || span.Latest.IsZero()) {
		e.t.Errorf("losses are counted since %v, the last was at %v; before %+v", span.Since, span.Latest, was)
	}
	return span
}

// lose makes a record get lost, and returns the total according to the status.
func (e *exporting) lose() uint64 {
	e.t.Helper()
	e.Export(e.now, nil, []flow.Record{{Key: flow.Key{EtherType: flow.IPv4, Protocol: 17},
		Delta: flow.Counts{Packets: 3, Bytes: 300}}})
	e.pass(1)
	all, err := e.Status()
	if err != nil {
		e.t.Fatal(err)
	}
	return all[0].Lost.Records
}

// closedPort is a collector on this machine where nobody listens or will listen: at an address of this process alone,
// and at a port that the kernel does not assign.
func closedPort() plan.IPFIX {
	pid := os.Getpid() // 22 bits at most
	own := netip.AddrFrom4([4]byte{127, byte(64 | pid>>16&63), byte(pid >> 8), byte(pid)})
	return plan.IPFIX{Collectors: []plan.Collector{{Address: own.String(), Port: 4739, Shape: spec.ShapeStandard}},
		TemplateEvery: time.Minute}
}

func TestWhatWasLostIsKnownToTheNextSessionAndTheNextAgent(t *testing.T) {
	dir, x := t.TempDir(), closedPort()
	e := newExporting(t, dir, x)
	e.pass(20)
	began := e.counted(nil)
	if n := e.lose(); n != 1 {
		t.Fatalf("%d records are lost, want 1", n)
	}
	lost := e.counted(&began)
	x.ObservationDomain = 9 // the sessions begin anew
	e.Configure(e.now, x)
	e.pass(20)
	if n := e.lose(); n != 2 {
		t.Errorf("after a change: %d records are lost, want 2", n)
	}
	if span := e.counted(&began); !span.Latest.After(lost.Latest) {
		t.Errorf("after a change the last loss was at %v, before it at %v", span.Latest, lost.Latest)
	}
	next := newExporting(t, dir, x) // the first one was killed
	next.now.Up, next.now.Wall = e.now.Up, e.now.Wall.Add(time.Hour)
	next.pass(20)
	next.counted(&began)
	if n := next.lose(); n != 3 {
		t.Errorf("after a kill: %d records are lost, want 3", n)
	}
	if got := next.config(x).Lost; len(got) != 1 {
		t.Errorf("%v", got)
	}
	file := filepath.Join(dir, "lost.lab.json")
	if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := newExporting(t, dir, x).lose(); n > 1 {
		t.Errorf("with a damaged file %d records are lost", n)
	}
}

func TestCollectorsThatComeAndGoAreEvents(t *testing.T) {
	x := closedPort()
	x.Collectors = append(x.Collectors, plan.Collector{Address: "nonesuch.invalid", Port: 2055,
		Shape: spec.ShapeStandard})
	e := newExporting(t, t.TempDir(), x)
	of := func(address, to string) *event.Event {
		for i := range e.events {
			if v := &e.events[i]; v.To == to && strings.HasPrefix(v.Collector, address) {
				return v
			}
		}
		return nil
	}
	for deadline := time.Now().Add(2 * time.Minute); of(x.Collectors[0].Address, "away") == nil ||
		of("nonesuch", "resolving") == nil; e.pass(1) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", e.events)
		}
	}
	away, name := of(x.Collectors[0].Address, "away"), of("nonesuch.invalid:2055", "resolving")
	if away.Kind != event.Collector || away.Switch != "lab" || !strings.Contains(away.Text, "refused") ||
		!strings.Contains(name.Text, "nonesuch.invalid:2055 has no address: ") {
		t.Errorf("%+v %+v", away, name)
	}
	at := netip.AddrPortFrom(netip.MustParseAddr(x.Collectors[0].Address), x.Collectors[0].Port)
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	last := func() event.Event { return e.events[len(e.events)-1] }
	for deadline := time.Now().Add(2 * time.Minute); last().To != "sending" || last().From != "away"; e.pass(1) {
		if time.Now().After(deadline) {
			t.Fatalf("it is not back: %+v", e.events)
		}
	}
	n := len(e.events)
	e.pass(100)
	if len(e.events) != n {
		t.Errorf("more is told though nothing happened: %+v", e.events[n:])
	}
}

// What is lost between the last check of the collectors and a change of the settings is added, not forgotten.
func TestWhatIsLostRightBeforeAChangeIsCounted(t *testing.T) {
	x := closedPort()
	e := newExporting(t, t.TempDir(), x)
	e.pass(20)
	e.lose()
	e.Export(e.now, nil, []flow.Record{{Key: flow.Key{EtherType: flow.IPv4, Protocol: 17},
		Delta: flow.Counts{Packets: 3, Bytes: 300}}})
	x.ObservationDomain = 9
	e.Configure(e.now, x)
	all, err := e.Status()
	if err != nil || all[0].Lost.Records != 2 {
		t.Errorf("%+v, %v; want 2 records lost", all, err)
	}
}

// What waits in memory for a collector over TCP is lost when the agent is killed: the next agent reports it. A
// collector over UDP at the same address and port is a different one.
func TestWhatWaitsForACollectorIsLostWhenTheAgentIsKilled(t *testing.T) {
	dir, x := t.TempDir(), closedPort()
	udp := x.Collectors[0]
	x.Collectors[0].Transport = spec.TransportTCP
	x.Collectors = append(x.Collectors, udp)
	e := newExporting(t, dir, x)
	e.pass(1)
	e.Export(e.now, nil, []flow.Record{{Key: flow.Key{EtherType: flow.IPv4, Protocol: 17},
		Delta: flow.Counts{Packets: 3, Bytes: 300}}})
	e.pass(1)
	all, err := e.Status()
	if err != nil || all[0].Held != (export.Loss{Records: 1, Packets: 3, Bytes: 300}) ||
		all[0].Lost != (export.Loss{}) {
		t.Fatalf("%+v, %v", all, err)
	}
	next := newExporting(t, dir, x) // the first one was killed
	if all, err = next.Status(); err != nil || all[0].Lost != (export.Loss{Records: 1, Packets: 3, Bytes: 300}) {
		t.Errorf("%+v, %v", all, err)
	}
	if a, b := nameOf(all[0].Collector), nameOf(all[1].Collector); a != "tcp://"+b {
		t.Errorf("the collectors are called %s and %s", a, b)
	}
}

func TestCollectorOverTLSGetsItsFiles(t *testing.T) {
	x := closedPort()
	x.Collectors[0].Transport, x.Collectors[0].TLS = spec.TransportTLS, plan.TLS{CA: "/nonesuch/ca.pem",
		ServerName: "flows"}
	e := newExporting(t, t.TempDir(), x)
	var all []export.Status
	for end := time.Now().Add(2 * time.Minute); len(all) == 0 || all[0].State != export.Away; e.pass(1) {
		if all, _ = e.Status(); time.Now().After(end) {
			t.Fatalf("%+v", all)
		}
	}
	if !strings.Contains(all[0].Why, "ca: open /nonesuch/ca.pem: no such file") {
		t.Errorf("%+v", all[0])
	}
	before := e.now
	e.pass(1)
	if last := e.events[len(e.events)-1]; last.Kind != event.Collector || last.To != "away" ||
		!strings.HasPrefix(last.Collector, "tls://") {
		t.Errorf("%+v", e.events)
	}
	had := e.exporter.now
	if e.Configure(before, x); e.exporter.now != had {
		t.Error("the same settings begin another export")
	}
	x.Collectors[0].TLS.CA = "/nonesuch/other.pem"
	if e.Configure(e.now, x); e.exporter.now == had {
		t.Error("other files begin no other export")
	}
}
