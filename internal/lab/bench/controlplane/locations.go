package controlplane

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"heddle/internal/agent/segments"
	"heddle/internal/api"
	"heddle/internal/lab/report"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
)

// Extent of the overlay segments.
const (
	// macsPerSegment are behind the ports of the hosts of one segment, segmentHosts the hosts.
	macsPerSegment, segmentHosts = 100, 2
	// hostsPerRack have the same switch, which has port groups of some of the segments.
	hostsPerRack = 50
	// wideVNI is the segment that all hosts are in.
	wideVNI span.VNI = 1
	// locationRounds is how many MACs turn up in one round.
	locationRounds = 10
	// settleTime is how long nothing happens between two changes.
	settleTime = 100 * time.Millisecond
)

// locationLoad is what was measured of many locations.
type locationLoad struct {
	macs, segments int
	// known are the seconds until the controller and all hosts had everything: first, and after the controller was
	// killed, from its answer on. starts are until it answered.
	first         float64
	known, starts []float64
	// hosts are the seconds until each host knew each change; all, until the last one did.
	hosts, all []float64
	used       []float64 // CPU time of the controller for one change, in seconds
	rested     float64   // memory of the controller when all was known, in bytes
}

// joinRacks lets all hosts join, each as one of the racks that the segments are spread over.
func (m *measurement) joinRacks(ctx context.Context) error {
	s := m.shapeFor(m.hosts)
	for _, h := range m.crowd.hosts {
		h.rack = rackNumbered(h.number % s.racks)
	}
	return m.join(ctx)
}

// claims has a host claim what it has, with one more MAC; the zero MAC for none.
func (h *host) claims(more plan.MAC) {
	have := make(map[span.VNI]map[span.Key]span.Claim, len(h.locating.own))
	for vni, items := range h.locating.own {
		mine := make(map[span.Key]span.Claim, len(items))
		for k, c := range items {
			mine[k] = c
		}
		have[vni] = mine
	}
	if more != (plan.MAC{}) {
		have[wideVNI][span.MACKey(more)] = span.Claim{Source: span.Learned, Since: 1}
	}
	h.locating.Set([]span.Endpoint{{Address: endpointOf(h.number), MTU: 1600}}, have)
}

// locate measures many overlay segments.
func (m *measurement) locate(ctx context.Context) error {
	s := m.shapeFor(m.hosts)
	m.spread = &locationLoad{segments: s.racks*s.perRack + 1}
	out, err := m.process.Define(ctx, api.Define{File: "fleet.yaml", Content: s.text(), Force: true})
	if err != nil {
		return err
	}
	m.revision = out.Revision
	for _, h := range m.crowd.hosts {
		h.locating = newLocatingHost(h)
	}
	m.spread.macs = s.fill(m.crowd.hosts)
	for _, h := range m.crowd.hosts {
		h.claims(plan.MAC{})
	}
	runtime.GC()
	began := time.Now()
	m.crowd.run(ctx)
	if err := m.allLocated(ctx); err != nil {
		return err
	}
	m.spread.first = time.Since(began).Seconds()
	if m.spread.rested, _, err = m.process.memory(); err != nil {
		return err
	}
	if err := m.locationChanges(ctx); err != nil {
		return err
	}
	if err := m.locationStarts(ctx); err != nil {
		return err
	}
	return m.weigh()
}

// allLocated waits until the controller has all locations, and all hosts were told theirs.
func (m *measurement) allLocated(ctx context.Context) error {
	for began := time.Now(); ; {
		macs, behind := 0, 0
		for _, h := range m.crowd.hosts {
			if heard, _ := h.locating.Hears(); !heard {
				behind++
			}
		}
		if behind == 0 {
			list, err := m.process.Segments(ctx)
			if err != nil {
				return err
			}
			for i := range list {
				macs += int(list[i].MACs)
			}
			if macs == m.spread.macs && m.knowWide() {
				return nil
			}
		}
		if err := m.process.failed(ctx); err != nil {
			return err
		}
		if time.Since(began) > patience {
			return fmt.Errorf("after %s the controller has %d of %d MACs, and %d hosts were not told all", patience,
				macs, m.spread.macs, behind)
		}
		time.Sleep(20 * poll)
	}
}

// knowWide reports whether every host knows the endpoints of all others.
func (m *measurement) knowWide() bool {
	for _, h := range m.crowd.hosts {
		if r := h.locating.Reach([]uint32{uint32(wideVNI)}); len(r.Endpoints) != m.hosts-1 {
			return false
		}
	}
	return true
}

// locationChanges lets a MAC turn up behind one host after the other, and measures when the others know it.
func (m *measurement) locationChanges(ctx context.Context) error {
	for round := range locationRounds * m.Rounds {
		at := round * 7 % m.hosts
		mac := macOf(at, 1<<20+round)
		key := overlay.Key{VNI: uint32(wideVNI), MAC: mac}
		for _, h := range m.crowd.hosts {
			h.locating.expect(key, endpointOf(at))
		}
		before, err := m.begin()
		if err != nil {
			return err
		}
		began := time.Now()
		m.crowd.hosts[at].locating.Note([]segments.Noted{{VNI: wideVNI, Key: span.MACKey(mac),
			Claim: span.Claim{Source: span.Learned, Since: began.UnixMilli()}}})
		m.crowd.hosts[at].locating.own[wideVNI][span.MACKey(mac)] = span.Claim{Source: span.Learned, Since: 1}
		m.spread.macs++
		last, err := m.knownBy(ctx, at, began)
		if err != nil {
			return err
		}
		m.spread.all = append(m.spread.all, last.Seconds())
		after, err := m.process.working()
		if err != nil {
			return err
		}
		m.spread.used = append(m.spread.used, after.since(before).controller)
		if !sleepUntil(ctx, time.Now().Add(settleTime)) {
			return ctx.Err()
		}
	}
	return nil
}

// knownBy waits until all hosts but one know what they wait for, and notes after how long each did.
func (m *measurement) knownBy(ctx context.Context, but int, began time.Time) (last time.Duration, err error) {
	for {
		last, lacking := time.Duration(0), 0
		took := make([]float64, 0, m.hosts)
		for _, h := range m.crowd.hosts {
			if h.number == but {
				continue
			}
			came := h.locating.cameAt()
			if came.IsZero() {
				lacking++
				break
			}
			took = append(took, came.Sub(began).Seconds())
			last = max(last, came.Sub(began))
		}
		if lacking == 0 {
			m.spread.hosts = append(m.spread.hosts, took...)
			return last, nil
		}
		if err := m.process.failed(ctx); err != nil {
			return 0, err
		}
		if time.Since(began) > patience {
			return 0, errors.New("a host was not told where a MAC is")
		}
		time.Sleep(poll)
	}
}

// locationStarts kills the controller, which has locations in memory alone, and starts it again.
func (m *measurement) locationStarts(ctx context.Context) error {
	for range min(m.Rounds, mostRestarts) {
		if err := m.process.kill(syscall.SIGKILL); err != nil {
			return err
		}
		took, err := m.process.start(ctx, m.revision)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := m.allLocated(ctx); err != nil {
			return err
		}
		m.spread.starts = append(m.spread.starts, took.Seconds())
		m.spread.known = append(m.spread.known, time.Since(began).Seconds())
		if err := m.weigh(); err != nil {
			return err
		}
	}
	return nil
}

// locationNote says how it was measured.
func locationNote(macs int) string {
	return fmt.Sprintf("A real controller process with etcd inside, on this machine's disk; simulated hosts, all in "+
		"one other process, with the client and the keeper of locations that real agents have, no kernel and no "+
		"disk. %d MACs in segments of %d MACs and %d hosts each, %d hosts to a switch with its segments, and "+
		"one segment that all hosts are in. A MAC turns up behind one host, %d times a round with %s in "+
		"between; p50, p99 and max are until each other host has it for its kernel. A controller has "+
		"locations in memory alone: after kill -9 the hosts say them again; then until all know, it has all "+
		"and every host was told so.", macs,
		macsPerSegment, segmentHosts, hostsPerRack, locationRounds, settleTime)
}

// rows of the table.
func (l *locationLoad) rows(hosts int) []report.Row {
	return []report.Row{
		{{Name: "hosts", Value: hosts}, {Name: "work", Value: "locations known"},
			{Name: "macs", Title: "MACs", Value: l.macs, Unit: report.Count},
			{Name: "segments", Value: l.segments, Unit: report.Count},
			{Name: "first", Title: "first, until all know", Value: l.first, Unit: report.Seconds},
			{Name: "start", Title: "controller's start", Value: report.Summarise(l.starts), Unit: report.Seconds},
			{Name: "known", Title: "then until all know", Value: report.Summarise(l.known), Unit: report.Seconds},
			{Name: "rested", Title: "memory", Value: l.rested, Unit: report.Bytes},
			{Name: "per_mac", Title: "memory/MAC", Value: l.rested / float64(l.macs), Unit: report.Bytes}},
		{{Name: "hosts", Value: hosts}, {Name: "work", Value: locationChange},
			{Name: "all", Title: "all (quartiles)", Value: report.Summarise(l.all), Unit: report.Seconds},
			{Name: "p50", Value: percentile(l.hosts, 0.5), Unit: report.Seconds},
			{Name: "p99", Value: percentile(l.hosts, 0.99), Unit: report.Seconds},
			{Name: "max", Value: percentile(l.hosts, 1), Unit: report.Seconds},
			{Name: "cpu_change", Title: "CPU/change: controller", Value: report.Summarise(l.used),
				Unit: report.Seconds},
			{Name: "samples", Value: l.all, Hidden: true}},
	}
}

// budgets hold for any number of hosts up to a span of 1,000, and a million MACs.
func (l *locationLoad) budgets(hold func(what string, value float64, unit report.Unit, budget float64), most float64) {
	hold(locationChange+": p99 of hosts", percentile(l.hosts, 0.99), report.Seconds, locationBudget)
	hold("controller's start, until all locations are known", report.Summarise(l.known).Max+
		report.Summarise(l.starts).Max, report.Seconds, reconnectBudget+startBudget)
	hold("controller's memory", most, report.Bytes, memoryBudget)
}
