package linkproto

import (
	"log/slog"
	"sync"
	"time"

	"heddle/internal/fabric"
	"heddle/internal/uplinks/wire"
)

// ProbePlan says what is probed.
type ProbePlan struct {
	// Uplinks are the devices of this host's uplinks that take part.
	Uplinks map[fabric.End]Uplink
	Tasks   []fabric.Task
	// Keys sign probes; the first one signs, all are accepted.
	Keys []fabric.Secret
}

// ProbeReport is what the probes have found so far.
type ProbeReport struct {
	Results []fabric.Result
	Deaf    []fabric.Deaf
	Counts  ProbeCounts
}

// ProbeCounts count frames since the start.
type ProbeCounts struct {
	// Sent are probes, Answered echoes of others' probes.
	Sent, Answered uint64
	// Forged are frames that are signed with no key of the cluster.
	Forged uint64
}

// refreshEvery is how often results are reported whose states stay the same: delays and losses are others.
const refreshEvery = time.Minute

// Probes sends and answers probes between uplinks. Its methods may be called from any goroutine and do not wait for the
// network.
type Probes struct {
	engine *engine
	log    *slog.Logger
	report func(ProbeReport)

	mu      sync.Mutex
	want    ProbePlan
	machine *fabric.Machine
	counts  ProbeCounts
	told    time.Time
	// running is the plan that counts; by are its uplinks by device, ids by their names in probes.
	running ProbePlan
	by      map[uint32]fabric.End
	ids     map[fabric.EndID]bool
}

// StartProbes starts without uplinks. Results are passed to report, one call at a time, from a goroutine of its own.
func StartProbes(open Opener, log *slog.Logger, report func(ProbeReport)) *Probes {
	p := &Probes{log: log, report: report, machine: fabric.NewMachine(), by: map[uint32]fabric.End{},
		ids: map[fabric.EndID]bool{}}
	w := newWires(open, log, hearsProbes())
	w.most = mostBeacons
	p.engine = newEngine(w)
	p.engine.start(p, p.deliver)
	return p
}

// hearsProbes returns the filter for probes and echoes. They are sent to the uplink's own address, in the VLANs of the
// ports; the signature prevents forgery.
func hearsProbes() wire.Listen {
	return hearsKinds(false)
}

// hearsKinds returns the filter for the probes of the health check, or for those of a benchmark.
func hearsKinds(benchmark bool) wire.Listen {
	at, kinds := fabric.Kinds(benchmark)
	return wire.Listen{EtherType: fabric.EtherType, Tagged: true, MinPayload: fabric.Shortest,
		Fields: []wire.Field{{Offset: 0, Values: [][]byte{fabric.Head()}}, {Offset: at, Values: kinds}}}
}

// Want sets what is probed.
func (p *Probes) Want(plan ProbePlan) {
	p.mu.Lock()
	p.want = plan
	p.mu.Unlock()
	signal(p.engine.poked)
}

// Close ends the goroutines.
func (p *Probes) Close() error {
	p.engine.stop()
	return p.engine.wires.close()
}

func (p *Probes) deliver() {
	p.mu.Lock()
	r := ProbeReport{Results: p.machine.Results(), Deaf: p.machine.Deaf(), Counts: p.counts}
	p.told = time.Now()
	p.mu.Unlock()
	p.report(r)
}

func (p *Probes) adopt(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = p.want
	clear(p.by)
	clear(p.ids)
	sockets := map[uint32]bool{}
	for end, u := range p.running.Uplinks {
		p.by[u.Ifindex], p.ids[end.ID()], sockets[u.Ifindex] = end, true, true
		if err := p.engine.wires.use(u.Ifindex); err != nil {
			p.log.Warn("no probes on an uplink", "uplink", end.Uplink, "err", err)
		}
	}
	if err := p.engine.wires.keep(sockets); err != nil {
		p.log.Warn("close sockets of probes", "err", err)
	}
	var tasks []fabric.Task
	for _, t := range p.running.Tasks {
		if _, ok := p.running.Uplinks[t.From]; ok {
			tasks = append(tasks, t)
		}
	}
	p.machine.Set(tasks, now)
	return p.rest(now)
}

// rest reports what has changed, and returns when something is due.
func (p *Probes) rest(now time.Time) time.Time {
	if p.machine.Changed() || now.Sub(p.told) > refreshEvery && !p.machine.Next().IsZero() {
		signal(p.engine.ripe)
	}
	return p.machine.Next()
}

func (p *Probes) tick(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.running.Keys) == 0 {
		return time.Time{}
	}
	for _, s := range p.machine.Due(now) {
		p.counts.Sent++
		u := p.running.Uplinks[s.Path.From]
		p.send(u, p.running.Keys[0].Frame(s.Probe, u.MAC, s.MAC))
	}
	return p.rest(now)
}

func (p *Probes) send(u Uplink, frame []byte) {
	r, ok := p.engine.wires.conns[u.Ifindex]
	if !ok {
		return // opening failed, and the error was reported
	}
	if err := r.Send(frame); err != nil {
		p.log.Debug("probe not sent", "device", u.Ifindex, "bytes", len(frame), "err", err)
	}
}

func (p *Probes) frame(now time.Time, h heard) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	end, ok := p.by[h.ifindex]
	if !ok {
		return p.machine.Next()
	}
	probe, err := fabric.Read(h.payload, p.running.Keys)
	switch {
	case err != nil:
		p.counts.Forged++
	case probe.Echo:
		p.machine.Echo(probe, end.Uplink, now)
	case p.ids[probe.To]:
		p.counts.Answered++
		p.machine.Heard(probe, now)
		u := p.running.Uplinks[end]
		p.send(u, p.running.Keys[0].Frame(probe.Answer(), u.MAC, h.source))
	}
	return p.rest(now)
}
