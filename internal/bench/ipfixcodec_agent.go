package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"heddle/internal/flow"
	"heddle/internal/meter"
	"heddle/internal/meter/export"
	"heddle/internal/plan"
)

// codecTable is how many flows the agent keeps at once: its table is far larger than the caches of a processor.
const codecTable = 1 << 17

// codecPart is how many flows come from the kernel at once.
const codecPart = 2048

// agentPath is an agent's part of flow export: what was counted is folded into its table, ended by idleTimeout, and sent to a collector.
type agentPath struct {
	dir    string
	source *memorySource
	meter  *meter.Meter
	x      *export.Exporter
	now    meter.Instant
}

// newAgentPath keeps its table where an agent has its own, in memory.
func newAgentPath(shape export.Shape, biflow bool, to *net.UDPAddr, records []flow.Record) (p *agentPath, err error) {
	p = &agentPath{now: meter.Instant{Wall: time.UnixMilli(1_700_000_000_000), Up: time.Hour}}
	if p.dir, err = os.MkdirTemp("/dev/shm", "hb-flows-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	collector := export.Collector{Address: to.IP.String(), Port: uint16(to.Port), Shape: shape}
	if p.x, err = export.New(p.now, export.Config{DomainName: "bench", Collectors: []export.Collector{collector}, Rate: 1 << 30}); err != nil {
		return nil, err
	}
	p.source = newMemorySource(records, biflow)
	if p.meter, err = meter.New(meter.Options{Dir: p.dir, Origin: "bench", Source: p.source, Log: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	set := meter.DefaultSettings()
	set.Biflow, set.MaxFlows = biflow, 2*codecTable
	return p, p.meter.Configure(p.now, map[string]meter.Switch{"bench": {Settings: set, Exporter: p.x}})
}

// run has at least so many records sent, and checks that each flow has become one.
func (p *agentPath) run(records int) (done int, err error) {
	for done < records {
		before := p.x.Status()[0]
		p.source.refill(p.now)
		for _, d := range []time.Duration{time.Second, 20 * time.Second} { // drain; all are idle for longer than idleTimeout
			p.now.Wall, p.now.Up = p.now.Wall.Add(d), p.now.Up+d
			if _, err := p.meter.Step(p.now); err != nil {
				return done, err
			}
		}
		after := p.x.Status()[0]
		if n := after.Records - before.Records; n != uint64(p.source.records) || after.Lost != before.Lost {
			return done, fmt.Errorf("%d of %d records were sent, %d are lost: %s", n, p.source.records, after.Lost.Records, after.Why)
		}
		done += p.source.records
	}
	return done, nil
}

// recordBytes is what a record takes of the messages, headers and templates included.
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
	return errors.Join(err, os.RemoveAll(p.dir))
}

// memorySource stands for the kernel: it has the same flows again and again.
type memorySource struct {
	keys    []flow.Key
	counts  []flow.Counts
	records int // that come of them
	number  uint64
	full    bool
	points  flow.Points
}

// codecPoints are the ports where the flows are observed.
func codecPoints() flow.Points {
	points := flow.Points{}
	for slot := range uint16(2) {
		points[slot+1] = flow.Point{ID: plan.PortID{Switch: "bench", Name: fmt.Sprint("vm", slot)}, Number: uint32(slot) + 10}
	}
	return points
}

// newMemorySource has codecTable flows like the records, or conversations of both directions.
func newMemorySource(records []flow.Record, biflow bool) *memorySource {
	s := &memorySource{points: codecPoints(), records: codecTable}
	if biflow {
		s.records /= 2
	}
	for i := range s.records {
		r := records[i%len(records)]
		k := r.Key
		k.Point, k.SrcPort = 1, uint16(1024+i/len(records)) // else the records' flows come again
		s.add(k, r.Delta)
		if biflow {
			k.Direction, k.SrcMAC, k.DstMAC = flow.Ingress, k.DstMAC, k.SrcMAC
			k.Src, k.Dst, k.SrcPort, k.DstPort = k.Dst, k.Src, k.DstPort, k.SrcPort
			s.add(k, r.Delta)
		}
	}
	return s
}

func (s *memorySource) add(k flow.Key, c flow.Counts) {
	c.In, c.Out = 1, 2
	s.keys, s.counts = append(s.keys, k), append(s.counts, c)
}

// refill has the flows be counted once more.
func (s *memorySource) refill(now meter.Instant) {
	s.full = true
	for i := range s.counts {
		s.counts[i].First, s.counts[i].Last = now.Wall.UnixMilli(), now.Wall.UnixMilli()
	}
}

// Drain is flow.Source's.
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

// Points is flow.Source's.
func (s *memorySource) Points() flow.Points { return s.points }

// Losses is flow.Source's: nothing is.
func (s *memorySource) Losses() ([]flow.Loss, error) { return nil, nil }
