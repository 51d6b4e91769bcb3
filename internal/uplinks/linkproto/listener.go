package linkproto

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"heddle/internal/plan"
	"heddle/internal/uplinks/wire"
)

// Heard is what the other end of an uplink says of itself by a protocol.
type Heard[T comparable] struct {
	What T
	// Since is when that was heard for the first time, At when it was heard last.
	Since, At time.Time
}

// HeardReport is something that was said first, in place of something else, or that is said no more.
type HeardReport[T comparable] struct {
	ID    plan.PortID
	Heard Heard[T]
	Gone  bool
}

// hearing is a protocol that is heard.
type hearing[T comparable] struct {
	name   string
	listen wire.Listen
	// decode returns what a frame says, false for nothing.
	decode func(payload []byte) (T, bool)
	// timeout is how long something that is not repeated is remembered.
	timeout time.Duration
}

// Listener hears what the other ends of uplinks say by one protocol. It never sends anything. Its methods may be called
// from any goroutine and do not wait for the network.
type Listener[T comparable] struct {
	engine *engine
	of     hearing[T]
	log    *slog.Logger
	report func([]HeardReport[T])

	mu      sync.Mutex
	want    map[plan.PortID]Uplink
	at      map[uint32]plan.PortID // by the index of the device
	heard   map[plan.PortID]Heard[T]
	reports map[plan.PortID]HeardReport[T] // not yet reported
}

// listen starts without uplinks. Changes are passed to report, one call at a time, from a goroutine of its own.
func listen[T comparable](open Opener, log *slog.Logger, of hearing[T], report func([]HeardReport[T])) *Listener[T] {
	p := &Listener[T]{engine: newEngine(newWires(open, log, of.listen)), of: of, log: log, report: report,
		at: map[uint32]plan.PortID{}, heard: map[plan.PortID]Heard[T]{}, reports: map[plan.PortID]HeardReport[T]{}}
	p.engine.start(p, p.deliver)
	return p
}

// Want sets the uplinks. What was heard on one that stays is kept.
func (p *Listener[T]) Want(uplinks map[plan.PortID]Uplink) {
	p.mu.Lock()
	p.want = uplinks
	p.mu.Unlock()
	signal(p.engine.poked)
}

// Own sets the addresses whose frames are ignored.
func (p *Listener[T]) Own(own Own) { p.engine.wires.own.Store(&own) }

// Heard returns what the other end of an uplink says; false for nothing.
func (p *Listener[T]) Heard(id plan.PortID) (Heard[T], bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, ok := p.heard[id]
	return who, ok
}

// Close ends the goroutines.
func (p *Listener[T]) Close() error {
	p.engine.stop()
	return p.engine.wires.close()
}

func (p *Listener[T]) deliver() {
	p.mu.Lock()
	out := make([]HeardReport[T], 0, len(p.reports))
	for _, r := range p.reports {
		out = append(out, r)
	}
	clear(p.reports)
	p.mu.Unlock()
	p.report(out)
}

// adopt listens on the wanted uplinks, and forgets the others.
func (p *Listener[T]) adopt(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	sockets := map[uint32]bool{}
	at := map[uint32]plan.PortID{}
	for id, u := range p.want {
		if err := p.engine.wires.use(u.Ifindex); err != nil {
			p.log.Warn(p.of.name+" of the other end is not heard", "uplink", id.Name, "switch", id.Switch, "err", err)
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
		p.log.Warn("close sockets", "of", p.of.name, "err", err)
	}
	return p.expire(now)
}

func (p *Listener[T]) frame(now time.Time, h heard) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, ok := p.at[h.ifindex]
	if what, said := p.of.decode(h.payload); ok && !h.own && said && p.want[id].Up {
		who := Heard[T]{What: what, Since: now, At: now}
		if was, known := p.heard[id]; known && was.What == what {
			who.Since = was.Since
		} else {
			p.tell(HeardReport[T]{ID: id, Heard: who})
		}
		p.heard[id] = who
	}
	return p.expire(now)
}

func (p *Listener[T]) tick(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expire(now)
}

// expire forgets who has been silent for too long, and returns when the next one will have been.
func (p *Listener[T]) expire(now time.Time) (next time.Time) {
	for id, who := range maps.All(p.heard) {
		end := who.At.Add(p.of.timeout)
		if !now.Before(end) {
			p.forget(id)
		} else if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}

func (p *Listener[T]) forget(id plan.PortID) {
	if who, ok := p.heard[id]; ok {
		delete(p.heard, id)
		p.tell(HeardReport[T]{ID: id, Heard: who, Gone: true})
	}
}

func (p *Listener[T]) tell(r HeardReport[T]) {
	p.reports[r.ID] = r
	signal(p.engine.ripe)
}
