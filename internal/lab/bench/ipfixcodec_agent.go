package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"heddle/internal/dataplane"
	"heddle/internal/flow"
	"heddle/internal/flow/export"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// codecTable is how many flows the agent has at once, unless fewer records are requested: its table is far larger than
// a processor's caches.
const codecTable = 1 << 17

// codecPart is how many flows come from the kernel at once.
const codecPart = 2048

// agentPath is an agent's part of flow export: counts are folded into its table, ended by idleTimeout, and sent to a
// collector.
type agentPath struct {
	dir     string
	source  codecSource
	records int // that come from the source each time
	meter   *meter.Meter
	x       *export.Exporter
	now     meter.Instant
}

// codecSource is a source that has the same flows again and again.
type codecSource interface {
	flow.Source
	refill(now meter.Instant) error
	close() error
}

// newAgentPath has its table where an agent has it, in memory. With kernel, flows are drained from the kernel's tables.
func newAgentPath(s *codecShape, to *net.UDPAddr, flows int, kernel bool) (p *agentPath, err error) {
	p = &agentPath{now: meter.Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: time.Hour}}
	if p.dir, err = os.MkdirTemp("/dev/shm", "hb-flows-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	collector := export.Collector{Address: to.IP.String(), Port: uint16(to.Port), Shape: s.shape}
	if p.x, err = export.New(p.now, export.Config{DomainName: "bench", Collectors: []export.Collector{collector},
		Rate: 1 << 30}); err != nil {
		return nil, err
	}
	memory, records := newMemorySource(s.records, flows, s.biflow)
	p.source, p.records = memory, records
	if kernel {
		if p.source, err = newKernelSource(memory); err != nil {
			return nil, err
		}
	}
	if p.meter, err = meter.New(meter.Options{Dir: p.dir, Origin: "bench", Source: p.source,
		Log: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	set := meter.DefaultSettings()
	set.Biflow, set.MaxFlows = s.biflow, 2*flows
	return p, p.meter.Configure(p.now, map[string]meter.Switch{"bench": {Settings: set, Exporter: p.x}})
}

// run sends at least n records, and checks that each flow has become one. aside does work that is not measured.
func (p *agentPath) run(records int, aside func(func() error) error) (done int, err error) {
	for done < records {
		if err := aside(func() error { return p.source.refill(p.now) }); err != nil {
			return done, err
		}
		before := p.x.Status()[0]
		for _, d := range []time.Duration{time.Second, 20 * time.Second} {
			// drain; all flows have been idle for longer than idleTimeout
			p.now.Wall, p.now.Up = p.now.Wall.Add(d), p.now.Up+d
			if _, err := p.meter.Step(p.now); err != nil {
				return done, err
			}
		}
		after := p.x.Status()[0]
		if n := after.Records - before.Records; n != uint64(p.records) || after.Lost != before.Lost {
			return done, fmt.Errorf("%d of %d records were sent, %d are lost: %s", n, p.records, after.Lost.Records,
				after.Why)
		}
		done += p.records
	}
	return done, nil
}

// recordBytes is a record's share of the messages, including headers and templates.
func (p *agentPath) recordBytes() int {
	s := p.x.Status()[0]
	return int(s.Octets / max(s.Records, 1))
}

func (p *agentPath) close() error {
	var err error
	if p.meter != nil {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		err = p.meter.Stop(ctx, func() (meter.Instant, error) { return p.now, nil })
	}
	if p.x != nil {
		p.x.Close(p.now)
	}
	if p.source != nil {
		err = errors.Join(err, p.source.close())
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// memorySource replaces the kernel: it has the same flows again and again.
type memorySource struct {
	keys   []flow.Key
	counts []flow.Counts
	number uint64
	full   bool
	points flow.Points
}

// codecPoints are the ports where the flows are observed.
func codecPoints() flow.Points {
	points := flow.Points{}
	for slot := range uint16(2) {
		points[slot+1] = flow.Point{ID: plan.PortID{Switch: "bench", Name: fmt.Sprint("vm", slot)},
			Number: uint32(slot) + 10}
	}
	return points
}

// newMemorySource makes flows like the records, or half as many conversations, for n records.
func newMemorySource(like []flow.Record, flows int, biflow bool) (s *memorySource, records int) {
	s, records = &memorySource{points: codecPoints()}, flows
	if biflow {
		records /= 2
	}
	for i := range records {
		r := like[i%len(like)]
		k := r.Key
		k.Point, k.SrcPort = 1, uint16(1024+i/len(like)) // otherwise their flows would repeat
		s.add(k, r.Delta)
		if biflow {
			k.Direction, k.SrcMAC, k.DstMAC = flow.Ingress, k.DstMAC, k.SrcMAC
			k.Src, k.Dst, k.SrcPort, k.DstPort = k.Dst, k.Src, k.DstPort, k.SrcPort
			s.add(k, r.Delta)
		}
	}
	return s, records
}

func (s *memorySource) add(k flow.Key, c flow.Counts) {
	c.In, c.Out = 1, 2
	s.keys, s.counts = append(s.keys, k), append(s.counts, c)
}

// refill makes the source count the flows once more.
func (s *memorySource) refill(now meter.Instant) error {
	s.full = true
	for i := range s.counts {
		s.counts[i].First, s.counts[i].Last = now.Wall.UnixMilli(), now.Wall.UnixMilli()
	}
	return nil
}

func (s *memorySource) close() error { return nil }

// Drain implements flow.Source.
func (s *memorySource) Drain(add func(flow.Batch) error) error {
	if !s.full {
		return nil
	}
	for i := 0; i < len(s.keys); i += codecPart {
		end := min(i+codecPart, len(s.keys))
		s.number++
		if err := add(flow.Batch{Number: s.number, Keys: s.keys[i:end], Counts: s.counts[i:end]}); err != nil {
			return err
		}
	}
	s.full = false
	return nil
}

// Points implements flow.Source.
func (s *memorySource) Points() flow.Points { return s.points }

// Losses implements flow.Source: there are none.
func (s *memorySource) Losses() ([]flow.Loss, error) { return nil, nil }

// kernelSource puts the flows into kernel tables, and drains them as the agent does.
type kernelSource struct {
	*dataplane.FlowBench
	flows *memorySource
}

func newKernelSource(flows *memorySource) (*kernelSource, error) {
	b, err := dataplane.NewFlowBench(len(flows.keys), flows.keys[0].EtherType == flow.IPv4, flows.points)
	if err != nil {
		return nil, err
	}
	return &kernelSource{b, flows}, nil
}

func (s *kernelSource) refill(now meter.Instant) error {
	return s.Fill(s.flows.keys, s.flows.counts, now.Wall.UnixMilli())
}

func (s *kernelSource) close() error { return s.Close() }
