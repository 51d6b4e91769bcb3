package linkproto

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"heddle/internal/plan"
	"heddle/internal/uplinks/lacp"
)

// Partner is a device that speaks LACP at the other end of an uplink that is in no LAG: it takes its end of the link
// for a part of a bundle, which this host does not know of.
type Partner struct {
	System lacp.System
	Key    uint16
	// Since is when the first of its LACPDUs arrived, Heard when the last one did.
	Since, Heard time.Time
}

// same reports whether both are one bundle of one device.
func (p Partner) same(o Partner) bool { return p.System == o.System && p.Key == o.Key }

// PartnerReport is a partner that appeared, was replaced by another one, or fell silent.
type PartnerReport struct {
	ID      plan.PortID
	Partner Partner
	Gone    bool
}

// partnerTimeout is how long a partner that says nothing is remembered: LACP's long timeout (IEEE 802.1AX, 6.4.4), and
// the time that a busy machine may need to hear the third of three LACPDUs.
const partnerTimeout = 100 * time.Second

// Partners listens for LACP on uplinks that are in no LAG. It never sends anything. Its methods may be called from any
// goroutine and do not wait for the network.
type Partners struct {
	engine *engine
	log    *slog.Logger
	report func([]PartnerReport)

	mu      sync.Mutex
	want    map[plan.PortID]Uplink
	at      map[uint32]plan.PortID // by the index of the device
	heard   map[plan.PortID]Partner
	reports map[plan.PortID]PartnerReport // not yet reported
}

// StartPartners starts without uplinks. Changes are passed to report, one call at a time, from a goroutine of its own.
func StartPartners(open Opener, log *slog.Logger, report func([]PartnerReport)) *Partners {
	p := &Partners{engine: newEngine(newWires(open, log, hearsLACP())), log: log, report: report,
		at: map[uint32]plan.PortID{}, heard: map[plan.PortID]Partner{}, reports: map[plan.PortID]PartnerReport{}}
	p.engine.start(p, p.deliver)
	return p
}

// Want sets the uplinks. What was heard on one that stays is kept.
func (p *Partners) Want(uplinks map[plan.PortID]Uplink) {
	p.mu.Lock()
	p.want = uplinks
	p.mu.Unlock()
	signal(p.engine.poked)
}

// Own sets the addresses whose frames are ignored.
func (p *Partners) Own(own Own) { p.engine.wires.own.Store(&own) }

// Partner returns who speaks LACP at the other end of an uplink; false for nobody.
func (p *Partners) Partner(id plan.PortID) (Partner, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.heard[id]
	return who, ok
}

// Close ends the goroutines.
func (p *Partners) Close() error {
	p.engine.stop()
	return p.engine.wires.close()
}

func (p *Partners) deliver() {
	p.mu.Lock()
	out := make([]PartnerReport, 0, len(p.reports))
	for _, r := range p.reports {
		out = append(out, r)
	}
	clear(p.reports)
	p.mu.Unlock()
	p.report(out)
}

// adopt listens on the wanted uplinks, and forgets the others.
func (p *Partners) adopt(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	sockets := map[uint32]bool{}
	at := map[uint32]plan.PortID{}
	for id, u := range p.want {
		if err := p.engine.wires.use(u.Ifindex); err != nil {
			p.log.Warn("LACP of the other end is not heard", "uplink", id.Name, "switch", id.Switch, "err", err)
			continue
		}
		sockets[u.Ifindex], at[u.Ifindex] = true, id
	}
	for ifindex, id := range p.at {
		if at[ifindex] != id { // another device, or another uplink: another link
			p.forget(id)
		}
	}
	for id := range maps.All(p.heard) {
		if u, ok := p.want[id]; !ok || !u.Up {
			p.forget(id)
		}
	}
	p.at = at
	if err := p.engine.wires.keep(sockets); err != nil {
		p.log.Warn("close LACP sockets", "err", err)
	}
	return p.expire(now)
}

func (p *Partners) frame(now time.Time, h heard) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := p.at[h.ifindex]
	if pdu, _, err := lacp.Decode(h.payload); ok && !h.own && err == nil && pdu != nil && p.want[id].Up {
		who := Partner{System: pdu.Actor.System, Key: pdu.Actor.Key, Since: now, Heard: now}
		was, known := p.heard[id]
		if known && was.same(who) {
			who.Since = was.Since
		} else {
			p.tell(PartnerReport{ID: id, Partner: who})
		}
		p.heard[id] = who
	}
	return p.expire(now)
}

func (p *Partners) tick(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expire(now)
}

// expire forgets who has been silent for too long, and returns when the next one will have been.
func (p *Partners) expire(now time.Time) (next time.Time) {
	for id, who := range maps.All(p.heard) {
		end := who.Heard.Add(partnerTimeout)
		if !now.Before(end) {
			p.forget(id)
		} else if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}

func (p *Partners) forget(id plan.PortID) {
	if who, ok := p.heard[id]; ok {
		delete(p.heard, id)
		p.tell(PartnerReport{ID: id, Partner: who, Gone: true})
	}
}

func (p *Partners) tell(r PartnerReport) {
	p.reports[r.ID] = r
	signal(p.engine.ripe)
}
