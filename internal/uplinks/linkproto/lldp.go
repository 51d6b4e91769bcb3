package linkproto

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"heddle/internal/plan"
	"heddle/internal/uplinks/cdp"
	"heddle/internal/uplinks/lldp"
	"heddle/internal/uplinks/wire"
)

// LLDPPort is an uplink on which LLDP runs.
type LLDPPort struct {
	ID        plan.PortID
	Device    Uplink
	Listen    bool
	Advertise *lldp.PDU // what is advertised; nil for nothing
}

// LLDPReport is a neighbour that appeared, changed or disappeared.
type LLDPReport struct {
	ID        plan.PortID
	Change    lldp.Change // New, Updated or Gone
	Neighbour lldp.Neighbour
}

// LLDPStatus is the LLDP state of one uplink.
type LLDPStatus struct {
	Neighbours []lldp.Neighbour
	In         uint64 // LLDPDUs received
	Out        uint64 // LLDPDUs sent
	Bad        uint64 // malformed frames
	Refused    uint64 // LLDPDUs of new neighbours while lldp.MaxNeighbours were known
}

// LLDP runs LLDP on uplinks, or listens for CDP there. Its methods may be called from any goroutine and do not wait for
// the network.
type LLDP struct {
	engine *engine
	log    *slog.Logger
	report func([]LLDPReport)
	decode func(payload []byte) (*lldp.PDU, error)

	mu      sync.Mutex
	want    []LLDPPort
	running map[plan.PortID]*runningPort
	reports []LLDPReport // not yet handed over
}

type runningPort struct {
	LLDPPort
	said  []byte // not yet reported
	table lldp.Table
	times lldp.Advertiser
	count LLDPStatus
}

// mostReports bounds the reports that wait to be passed on: a neighbour that changes with every frame is reported less
// often.
const mostReports = 256

// StartLLDP starts without uplinks. Changes are passed to report, one call at a time, from a goroutine of its own.
func StartLLDP(open Opener, log *slog.Logger, report func([]LLDPReport)) *LLDP {
	return startDiscovery(open, log, report, hearsLLDP(), lldp.Decode)
}

// StartCDP is StartLLDP for CDP, which is heard and never sent: no port has an Advertise.
func StartCDP(open Opener, log *slog.Logger, report func([]LLDPReport)) *LLDP {
	return startDiscovery(open, log, report, hearsCDP(), cdp.Decode)
}

func startDiscovery(open Opener, log *slog.Logger, report func([]LLDPReport), hears wire.Listen,
	decode func([]byte) (*lldp.PDU, error)) *LLDP {
	l := &LLDP{engine: newEngine(newWires(open, log, hears)), log: log, report: report, decode: decode,
		running: map[plan.PortID]*runningPort{}}
	l.engine.start(l, l.deliver)
	return l
}

// Want sets the uplinks on which LLDP runs. An uplink that stays keeps its neighbours; one that is no longer to be
// advertised on says goodbye.
func (l *LLDP) Want(ports []LLDPPort) {
	l.mu.Lock()
	l.want = ports
	l.mu.Unlock()
	signal(l.engine.poked)
}

// Own sets the addresses whose frames are ignored.
func (l *LLDP) Own(own Own) { l.engine.wires.own.Store(&own) }

// Status returns the LLDP state of an uplink; ok is false if LLDP is off there.
func (l *LLDP) Status(id plan.PortID) (s LLDPStatus, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.running[id]
	if !ok {
		return LLDPStatus{}, false
	}
	s = r.count
	s.Neighbours, s.Refused = r.table.Neighbours(), r.table.Refused
	return s, true
}

// Close ends the goroutines. No goodbye is sent: what was advertised stays valid until the next process advertises it
// again.
func (l *LLDP) Close() error {
	l.engine.stop()
	return l.engine.wires.close()
}

func (l *LLDP) deliver() {
	l.mu.Lock()
	out := l.reports
	l.reports = nil
	l.mu.Unlock()
	l.report(out)
}

func (l *LLDP) tell(r *runningPort, c lldp.Change, n lldp.Neighbour) {
	if len(l.reports) < mostReports {
		l.reports = append(l.reports, LLDPReport{r.ID, c, n})
	}
	signal(l.engine.ripe)
}

func (l *LLDP) frame(now time.Time, h heard) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.running {
		if r.Device.Ifindex == h.ifindex && r.Listen && !h.own {
			l.heard(now, r, h)
		}
	}
	return l.work(now)
}

func (l *LLDP) heard(now time.Time, r *runningPort, h heard) {
	p, err := l.decode(h.payload)
	if err != nil {
		r.count.Bad++
		return
	}
	r.count.In++
	before := r.table.Neighbours()
	c, displaced := r.table.Learn(now, h.source, *p)
	if displaced != nil {
		l.tell(r, lldp.Gone, *displaced)
	}
	switch c {
	case lldp.New:
		r.times.Restart(now)
		l.tell(r, c, lldp.Neighbour{PDU: *p, Source: h.source, Since: now, Heard: now})
	case lldp.Updated:
		l.tell(r, c, lldp.Neighbour{PDU: *p, Source: h.source, Heard: now})
	case lldp.Gone:
		for _, n := range before {
			if n.PDU.Chassis.String() == p.Chassis.String() && n.PDU.Port.String() == p.Port.String() {
				l.tell(r, c, n)
			}
		}
	}
}

func (l *LLDP) tick(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.work(now)
}

// work does what is due and returns when more is due.
func (l *LLDP) work(now time.Time) time.Time {
	var next time.Time
	soonest := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, r := range l.running {
		for _, n := range r.table.Sweep(now) {
			l.tell(r, lldp.Gone, n)
		}
		soonest(r.table.Next())
		if r.Advertise == nil || !r.Device.Up {
			continue
		}
		if r.times.Due(now) {
			l.say(r, *r.Advertise)
		}
		soonest(r.times.Next())
	}
	return next
}

func (l *LLDP) say(r *runningPort, p lldp.PDU) {
	b, err := p.Encode()
	if err == nil {
		r.said = b
		err = l.engine.wires.send(r.Device, lldp.Groups[0], b)
	}
	if err != nil {
		l.log.Debug("LLDPDU not sent", "uplink", r.ID.String(), "err", err)
		return
	}
	r.count.Out++
}

// goodbye withdraws the advertisement.
func (l *LLDP) goodbye(r *runningPort) {
	if r.said == nil || r.Advertise == nil || !r.Device.Up {
		return
	}
	bye := *r.Advertise
	bye.TTL = 0
	l.say(r, bye)
	r.said = nil
}

// adopt replaces the uplinks by the wanted ones.
func (l *LLDP) adopt(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	sockets, keep := map[uint32]bool{}, map[plan.PortID]bool{}
	for _, w := range l.want {
		keep[w.ID], sockets[w.Device.Ifindex] = true, true
	}
	for id, r := range maps.All(l.running) {
		if !keep[id] {
			l.goodbye(r)
			delete(l.running, id)
		}
	}
	for _, w := range l.want {
		if err := l.engine.wires.use(w.Device.Ifindex); err != nil {
			l.log.Warn("no LLDP on an uplink", "uplink", w.ID.String(), "err", err)
			continue
		}
		l.adoptPort(now, w)
	}
	if err := l.engine.wires.keep(sockets); err != nil {
		l.log.Warn("close LLDP sockets", "err", err)
	}
	return l.work(now)
}

func (l *LLDP) adoptPort(now time.Time, w LLDPPort) {
	r, known := l.running[w.ID]
	if !known {
		r = &runningPort{LLDPPort: w}
		l.running[w.ID] = r
		return
	}
	another := r.Device.Ifindex != w.Device.Ifindex
	if r.Advertise != nil && (w.Advertise == nil || another || !sameIDs(*r.Advertise, *w.Advertise)) {
		l.goodbye(r)
	}
	if another || !w.Device.Up || !w.Listen { // the previous neighbour may be gone
		for _, n := range r.table.Neighbours() {
			l.tell(r, lldp.Gone, n)
		}
		r.table = lldp.Table{Refused: r.table.Refused}
	}
	cameUp := w.Device.Up && (another || !r.Device.Up)
	r.LLDPPort = w
	if w.Advertise != nil && (cameUp || r.said == nil || changed(r.said, *w.Advertise)) {
		r.times.Restart(now)
	}
}

func sameIDs(a, b lldp.PDU) bool {
	return a.Chassis.String() == b.Chassis.String() && a.Port.String() == b.Port.String()
}

// changed reports whether the PDU differs from the last one sent.
func changed(said []byte, p lldp.PDU) bool {
	b, err := p.Encode()
	return err == nil && string(b) != string(said)
}
