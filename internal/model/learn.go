package model

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/spec"
)

// ownWindow is the time after a port's frame in which the same source coming from an uplink is our own reflection
// (S91). It is also how long a learned MAC must have been silent before such a frame means that it moved away (S92).
const ownWindow = time.Second

// learn keeps the table of MACs behind ports and the marks of what they sent (frame-rules §3).
func learn(r *run) abi.Reason {
	who := station{r.seg, r.head.src}
	if r.via != nil { // S18: nothing is learned from an uplink
		e := r.sw.learned[who]
		// The guest left (S99), or the frame comes from a tunnel (S155): it is no echo.
		left := e != nil && (r.via.tunnel || r.sw.waits(e.port))
		if left {
			delete(r.sw.sent, who)
		}
		silent := e != nil && r.now-e.seen >= ownWindow && !r.sw.sentLately(who, r.now) // S92, S91
		if left || silent || e != nil && r.sw.speaksOutside(who, e, r.now) {
			r.forget(who, e, Removed)
		}
		return abi.ReasonNone
	}
	hear(r, who)
	if reason := learnSource(r, who); reason != abi.ReasonNone {
		return reason
	}
	if len(r.sw.uplinks) > 0 {
		r.sw.mark(who, r.now) // S91 asks for it
	}
	return abi.ReasonNone
}

// echoTime is how long after a frame its echo may come.
const echoTime = time.Second / 10

// speaksOutside reports whether a frame from outside is the second one since the last one that a port sent from there,
// and neither came right after that (S158).
func (sw *vswitch) speaksOutside(who station, e *entry, now time.Duration) bool {
	if len(sw.owner[who.mac]) > 0 || sw.devices[who.mac] {
		return false
	}
	last := max(e.seen, sw.sent[who])
	switch {
	case now-last < echoTime:
		return false
	case e.outside > last:
		return true
	}
	e.outside = now
	return false
}

// learnSource enters the frame's source into the table if the port's policy says so.
func learnSource(r *run, who station) abi.Reason {
	p := r.from
	if !p.learns() || who.mac == p.mac {
		return abi.ReasonNone
	}
	if r.sw.owner[who.mac] != nil || r.sw.devices[who.mac] { // S19
		return abi.ReasonNone
	}
	e := r.sw.learned[who]
	if e != nil && e.port == p {
		e.seen = r.now
		return abi.ReasonNone
	}
	if p.tally.held >= p.MACRoom() {
		if p.Policy.Learning.LimitPolicy.V == spec.LimitAllow { // S16
			p.tally.notLearnedAllowed++
			return abi.ReasonNone
		}
		p.tally.notLearnedDropped++ // S15
		if p.MACShare > 0 {
			return abi.ReasonMACTableFull
		}
		return abi.ReasonMACLimit
	}
	heardHere(r, who.mac)
	if e != nil { // S20
		r.move(who, e)
		return abi.ReasonNone
	}
	r.sw.learned[who] = &entry{port: p, seen: r.now} // S12
	p.tally.held++
	r.changed(Change{Kind: Learned, Segment: r.seg, MAC: who.mac, Port: p.ID})
	return abi.ReasonNone
}

// hear notes from which port of a guest a MAC of the guest's was heard last (S111).
func hear(r *run, who station) {
	p, o := r.from, r.sw.ownerOf(who.mac)
	if o == nil || !p.siblingOf(o) {
		return
	}
	before := o
	if s := r.sw.speaks[o.ID.Name]; s.mac == who.mac {
		before = r.sw.named[s.port]
	}
	if before == p {
		return
	}
	r.sw.speaks[o.ID.Name] = speaker{who.mac, p.ID.Name}
	p.tally.moves++
	r.changed(Change{Kind: Moved, Segment: r.seg, MAC: who.mac, Port: p.ID, Before: before.ID})
}

func (r *run) move(who station, e *entry) {
	before := e.port
	before.tally.held--
	e.port, e.seen = r.from, r.now
	r.from.tally.held++
	r.from.tally.moves++
	r.changed(Change{Kind: Moved, Segment: r.seg, MAC: who.mac, Port: r.from.ID, Before: before.ID})
}

func (r *run) forget(who station, e *entry, why ChangeKind) {
	delete(r.sw.learned, who)
	e.port.tally.held--
	r.changed(Change{Kind: why, Segment: who.Segment, MAC: who.mac, Port: e.port.ID})
}

func (r *run) changed(c Change) { r.res.Changes = append(r.res.Changes, c) }

// mark notes that a port sent from a station just now. Marks that are too old to matter are removed from time to time,
// so that the table stays as large as one second's sources.
func (t *tables) mark(who station, now time.Duration) {
	if len(t.sent) >= t.pruneAt {
		for s, at := range t.sent {
			if now-at >= ownWindow {
				delete(t.sent, s)
			}
		}
		t.pruneAt = max(1024, 2*len(t.sent))
	}
	t.sent[who] = now
}

// wake ends the port's wait: its guest runs here.
func (sw *vswitch) wake(p *port) {
	if sw.waits(p) {
		sw.awake[p.ID.Name] = p.fact.Wait
	}
}

// sentLately reports whether a port of the switch sent from a station within the last second (S91). If the guest runs
// elsewhere, its frames rightly come from there (S99).
func (sw *vswitch) sentLately(who station, now time.Duration) bool {
	if len(sw.owner[who.mac]) > 0 && sw.ownerOf(who.mac) == nil {
		return false
	}
	at, ok := sw.sent[who]
	return ok && now-at < ownWindow
}

// sweep removes what is not used any more (frame-rules §3): expired entries; entries whose port is gone, has lost its
// device, no longer learns, or is no longer in the segment; and speakers that are no longer siblings, or whose
// MAC is no longer the other port's.
func (sw *vswitch) sweep(now time.Duration) {
	for who, e := range sw.learned {
		p := e.port
		if e.expired(now) || !p.connected || !p.learns() || !p.admits(who.Segment) {
			delete(sw.learned, who)
			p.tally.held--
		}
	}
	for name, s := range sw.speaks {
		o, p := sw.named[name], sw.named[s.port]
		if o == nil || p == nil || !o.connected || !p.connected || !o.siblingOf(p) || o.mac != s.mac {
			delete(sw.speaks, name)
		}
	}
}
