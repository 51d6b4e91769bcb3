package export

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heddle/internal/flow"
	"heddle/internal/flow/ipfix"
	"heddle/internal/flow/meter"
)

// For any sequence of packets, timeouts, overflows of the agent's table and outages of the collector: what the
// collector received plus what counts as lost is what was counted, to the packet and byte.
func TestAccountsBalanceAcrossOutages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		shape := rapid.SampledFrom([]Shape{Standard, VDS}).Draw(rt, "shape")
		a := newAccount(t, shape, rapid.IntRange(3, 40).Draw(rt, "maxFlows"))
		defer a.close()
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "what") {
			default:
				a.count(rapid.IntRange(0, 50).Draw(rt, "flow"), uint64(rapid.IntRange(1, 9).Draw(rt, "packets")))
			case 4, 5, 6:
				a.pass(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds")) * time.Second)
			case 7:
				a.outage()
			}
		}
		told, lost := a.end()
		if told.packets+lost.Packets != a.counted.packets || told.octets+lost.Bytes != a.counted.octets {
			rt.Fatalf("the collector was told of %+v, %+v counts as lost, %+v was counted", told, lost, a.counted)
		}
	})
}

// account is an agent's path from the kernel to a collector; the test advances its clock.
type account struct {
	t       *testing.T
	c       *collector
	x       *Exporter
	m       *meter.Meter
	source  *source
	now     meter.Instant
	counted totals
	told    totals
	batch   uint64
}

func newAccount(t *testing.T, shape Shape, maxFlows int) *account {
	a := &account{t: t, c: collect(t, own(4739).String()), source: &source{}, now: begin}
	var err error
	if a.x, err = New(a.now, to(a.c, shape)); err != nil {
		t.Fatal(err)
	}
	if a.m, err = meter.New(meter.Options{Dir: t.TempDir(), Source: a.source,
		Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	set := meter.Settings{ActiveTimeout: 20 * time.Second, IdleTimeout: 10 * time.Second, MaxFlows: maxFlows}
	if err := a.m.Configure(a.now, map[string]meter.Switch{"lab": {Settings: set, Exporter: a.x}}); err != nil {
		t.Fatal(err)
	}
	return a
}

// count makes the kernel count packets of a flow that leaves by a port.
func (a *account) count(i int, packets uint64) {
	r := record(i)
	c := r.Delta
	c.Packets, c.Bytes, c.First, c.Last = packets, packets*100, a.now.Wall.UnixMilli(), a.now.Wall.UnixMilli()
	a.batch++
	a.source.batches = append(a.source.batches, flow.Batch{Number: a.batch, Keys: []flow.Key{r.Key},
		Counts: []flow.Counts{c}})
	a.counted.packets, a.counted.octets = a.counted.packets+c.Packets, a.counted.octets+c.Bytes
}

func (a *account) pass(d time.Duration) {
	a.now.Wall, a.now.Up = a.now.Wall.Add(d), a.now.Up+d
	if _, err := a.m.Step(a.now); err != nil {
		a.t.Fatal(err)
	}
}

// outage stops the collector until the exporter notices, and starts it again later. The collector leaves nothing
// unread, and comes back when no message is on its way to the old port, because nobody could know what happened to such
// a message.
func (a *account) outage() {
	a.await("everything is at the collector", func() bool { return a.read() == a.x.Status()[0].Records })
	a.c.close()
	for i := 0; a.x.Status()[0].State == Sending; i++ {
		if i == 1000 {
			a.t.Fatal("nobody sees that the collector has gone")
		}
		a.count(60, 1)
		a.pass(time.Second)
	}
	a.pass(7 * time.Second)
	a.count(61, 1)
	a.pass(20 * time.Second)
	a.await("every message has been refused", func() bool {
		a.x.sessions[0].listen(a.now)
		return !a.x.sessions[0].probed
	})
	a.c = collect(a.t, a.c.address().String())
	for i := 0; a.x.Status()[0].State != Sending; i++ {
		if i == 100 {
			a.t.Fatalf("status %+v", a.x.Status())
		}
		a.pass(time.Second)
	}
}

func (a *account) await(what string, holds func() bool) {
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("waited in vain: %s; told %+v, status %+v", what, a.told, a.x.Status())
		}
	}
}

// read adds up what the collector received since the last call, and returns the total number of records.
func (a *account) read() uint64 {
	for _, f := range a.c.flows() {
		a.told.records++
		a.told.packets += number(a.t, f, "packetDeltaCount")
		a.told.octets += number(a.t, f, "octetDeltaCount")
	}
	a.c.records = nil
	return a.told.records
}

// end stops the agent and waits until the collector has everything.
func (a *account) end() (told totals, lost Loss) {
	if err := a.m.Stop(context.Background(), func() (meter.Instant, error) { return a.now, nil }); err != nil {
		a.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		a.read()
		if lost = a.x.Status()[0].Lost; a.told.packets+lost.Packets >= a.counted.packets {
			break
		}
	}
	return a.told, lost
}

func (a *account) close() {
	a.x.Close(a.now)
	a.c.close()
	a.c.decoder = ipfix.NewDecoder(ipfix.Limits{})
}
