package model

import (
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Bindings are which MAC has which address in the overlay segments of a tunnel, as the host hears it and is told
// (frame-rules §10). The zero value, with Hold set, knows nobody.
type Bindings struct {
	// Hold is for how long a binding counts.
	Hold  time.Duration
	heard map[boundAt]*heardOwner
	told  map[boundAt]toldOwner
	share map[askerAt]*share
}

type boundAt struct {
	Segment
	ip netip.Addr
}

type askerAt struct {
	Segment
	mac plan.MAC
}

type heardOwner struct {
	Owner
	rival           plan.MAC
	seen            time.Duration
	changed, doubts time.Duration // 0 = never
	turns           int
}

type toldOwner struct {
	mac  plan.MAC
	seen time.Duration
}

// share is what a MAC has used up of the second that began then.
type share struct {
	since         time.Duration
	answers, news int
}

// Tell takes in what the controllers say: the MAC had the address then.
func (b *Bindings) Tell(s Segment, ip netip.Addr, mac plan.MAC, seen time.Duration) {
	if b.told == nil {
		b.told = map[boundAt]toldOwner{}
	}
	b.told[boundAt{s, ip}] = toldOwner{mac, seen}
}

// Hear takes in a frame without its tag.
func (b *Bindings) Hear(s Segment, frame []byte, here bool, now time.Duration) {
	n, ok := ReadNeighbour(frame)
	if !ok || !n.Sender.IsValid() {
		return
	}
	if b.heard == nil {
		b.heard = map[boundAt]*heardOwner{}
	}
	at, owner := boundAt{s, n.Sender}, Owner{MAC: plan.MAC(frame[6:12]), Here: here, Advertised: n.Advertised,
		Router: n.Router}
	was := b.heard[at]
	if was != nil && was.MAC == owner.MAC {
		if !n.Advertised {
			owner.Advertised, owner.Router = was.Advertised, was.Router
		}
		was.Owner, was.seen = owner, now
		return
	}
	used := b.shareOf(s, owner.MAC, now)
	if used.news >= abi.BindingsPerSecond {
		if was != nil {
			was.doubts = now + b.Hold
		}
		return
	}
	used.news++
	next := &heardOwner{Owner: owner, seen: now}
	if was != nil && now-was.seen <= b.Hold {
		b.takeOver(next, was, now)
	}
	b.heard[at] = next
}

// takeOver decides whether the address is contested.
func (b *Bindings) takeOver(next, was *heardOwner, now time.Duration) {
	next.rival, next.changed, next.doubts = was.MAC, now, was.doubts
	if was.changed == 0 || was.rival != next.MAC || now-was.changed > b.Hold {
		return
	}
	next.turns = was.turns + 1
	if next.turns >= 2 || now-was.changed <= abi.DefenceTime*time.Second {
		next.doubts = now + b.Hold
	}
}

func (b *Bindings) shareOf(s Segment, mac plan.MAC, now time.Duration) *share {
	if b.share == nil {
		b.share = map[askerAt]*share{}
	}
	at := askerAt{s, mac}
	if used := b.share[at]; used == nil || now-used.since >= time.Second {
		b.share[at] = &share{since: now}
	}
	return b.share[at]
}

// Find says who has an address, for a station that asks.
func (b *Bindings) Find(s Segment, ip netip.Addr, asker plan.MAC, now time.Duration) (o Owner, ok bool) {
	at := boundAt{s, ip}
	heard, told := b.heard[at], b.told[at]
	if heard != nil && heard.doubts > now {
		return o, false
	}
	var seen time.Duration
	if heard != nil && now-heard.seen <= b.Hold {
		o, seen, ok = heard.Owner, heard.seen, true
	}
	if told.seen != 0 && now-told.seen <= b.Hold && (!ok || told.seen > seen) {
		o, ok = Owner{MAC: told.mac, Advertised: true, Told: true}, true
	}
	if !ok || o.MAC == asker || o.Here || ip.Is6() && !o.Advertised {
		return o, ok
	}
	used := b.shareOf(s, asker, now)
	if o.Spent = used.answers >= abi.AnswersPerSecond; !o.Spent {
		used.answers++
	}
	return o, true
}
