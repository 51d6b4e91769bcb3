package model

import (
	"maps"
	"slices"
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// faults are deliberate mistakes, at least one in every stage, to prove that the differential test finds mistakes. They
// exist only in tests.
var faults = map[string]func(*stages){
	"admit: forged transmits pass": func(s *stages) {
		right := s.admit
		s.admit = func(r *run) abi.Reason { return pardon(right(r), abi.ReasonForgedTransmit) }
	},
	"admit: a blocked port sends": func(s *stages) {
		right := s.admit
		s.admit = func(r *run) abi.Reason { return pardon(right(r), abi.ReasonPortBlocked) }
	},
	"admit: a port that a loop goes through sends": func(s *stages) {
		right := s.admit
		s.admit = func(r *run) abi.Reason { return pardon(right(r), abi.ReasonLoopBlocked) }
	},
	"rules: a port that a loop goes through receives": func(s *stages) {
		right := s.portRules
		s.portRules = func(r *run, p *port) abi.Reason { return pardon(right(r, p), abi.ReasonLoopBlocked) }
	},
	"admit: LLDP from an uplink is switched": func(s *stages) {
		right := s.admit
		s.admit = func(r *run) abi.Reason {
			reason := right(r)
			if r.host == hostOnly && r.head.dst[5] == 0x0e {
				r.host = hostToo
			}
			return reason
		}
	},
	"control: a guest gets the answers of every protocol": func(s *stages) {
		right := s.passControl
		s.passControl = func(r *run) {
			if len(r.head.raw) > 14 && r.head.dst[5] == 0x03 {
				r.head.inner = 0x888e
			}
			right(r)
		}
	},
	"admit: the MTU is a byte too large": func(s *stages) {
		right := s.admit
		s.admit = func(r *run) abi.Reason {
			reason := right(r)
			if reason == abi.ReasonMTUExceeded && r.head.layer3() == r.sw.plan.MTU+1 {
				return abi.ReasonNone
			}
			return reason
		}
	},
	"classify: a priority tag hides another tag": func(s *stages) {
		right := s.classify
		s.classify = func(r *run) abi.Reason {
			if r.from != nil && r.head.vid() == 0 {
				h := r.head
				defer func() { r.head = h }()
				r.head.tags = min(h.tags, 1)
			}
			return right(r)
		}
	},
	"classify: 802.1ad is taken for 802.1Q on an uplink": func(s *stages) {
		right := s.classify
		s.classify = func(r *run) abi.Reason {
			reason := right(r)
			if r.via != nil {
				r.seg.AD = false
			}
			return reason
		}
	},
	"learn: one more than the limit": func(s *stages) {
		s.learn = func(r *run) abi.Reason {
			if r.from == nil {
				return learn(r)
			}
			r.from.tally.held--
			defer func(t *tally) { t.held++ }(r.from.tally)
			return learn(r)
		}
	},
	"learn: from other ports' own MACs": func(s *stages) {
		right := s.learn
		s.learn = func(r *run) abi.Reason {
			owner := r.sw.owner
			defer func() { r.sw.owner = owner }()
			r.sw.owner = nil
			return right(r)
		}
	},
	"learn: silent for a second is not yet moved away": func(s *stages) {
		right := s.learn
		s.learn = func(r *run) abi.Reason {
			if r.via != nil {
				r.now--
				defer func() { r.now++ }()
			}
			return right(r)
		}
	},
	"look up: an entry lives a millisecond longer": func(s *stages) {
		right := s.lookUp
		s.lookUp = func(r *run) abi.Reason {
			r.now -= time.Millisecond
			defer func() { r.now += time.Millisecond }()
			return right(r)
		}
	},
	"look up: learned MACs come before owned ones": func(s *stages) {
		right := s.lookUp
		s.lookUp = func(r *run) abi.Reason {
			if p := r.learnedOn(); p != nil && p != r.from && r.head.class == unicast {
				r.target, r.known = known, p
				return abi.ReasonNone
			}
			return right(r)
		}
	},
	"look up: a MAC that siblings share stays with its owner": func(s *stages) {
		right := s.lookUp
		s.lookUp = func(r *run) abi.Reason {
			speaks := r.sw.speaks
			defer func() { r.sw.speaks = speaks }()
			r.sw.speaks = nil
			return right(r)
		}
	},
	"look up: a sibling that is down keeps the MAC": func(s *stages) {
		right := s.lookUp
		s.lookUp = func(r *run) abi.Reason {
			o := r.sw.ownerOf(r.head.dst)
			if o == nil || o.fact.Up {
				return right(r)
			}
			o.fact.Up = true
			defer func() { o.fact.Up = false }()
			return right(r)
		}
	},
	"storm control: one frame more": func(s *stages) {
		right := s.stormControl
		s.stormControl = func(r *run) abi.Reason {
			reason := right(r)
			if reason == abi.ReasonStormControl {
				b, s := &r.from.tally.buckets[r.head.class], &r.from.Policy.StormControl
				if left := b.left(r.now, int64(r.stormRate().V)); left <= depth(r.stormRate().V, s.Burst.V)*frameCost {
					*b = bucket{spent: left + frameCost, at: r.now}
					return abi.ReasonNone
				}
			}
			return reason
		}
	},
	"storm control: what is refused is paid for": func(s *stages) {
		right := s.stormControl
		s.stormControl = func(r *run) abi.Reason {
			reason := right(r)
			if reason != abi.ReasonNone {
				r.from.tally.buckets[r.head.class].spent += frameCost
			}
			return reason
		}
	},
	"storm control: known unicast is limited": func(s *stages) {
		right := s.stormControl
		s.stormControl = func(r *run) abi.Reason {
			before := r.target
			defer func() { r.target = before }()
			if r.target == known {
				r.target = unknown
			}
			return right(r)
		}
	},
	"storm control: all kinds are broadcast": func(s *stages) {
		right := s.stormControl
		s.stormControl = func(r *run) abi.Reason {
			before := r.head.class
			defer func() { r.head.class = before }()
			if r.head.class == multicast {
				r.head.class = broadcast
			}
			return right(r)
		}
	},
	"storm control: a rate is made good a millisecond early": func(s *stages) {
		right := s.stormControl
		s.stormControl = func(r *run) abi.Reason {
			if r.from != nil {
				b := &r.from.tally.buckets[r.head.class]
				b.at -= time.Millisecond
				before := *b
				defer func() {
					if *b == before {
						b.at += time.Millisecond
					}
				}()
			}
			return right(r)
		}
	},
	"receivers: flooding without learning": func(s *stages) {
		right := s.receivers
		s.receivers = func(r *run) ([]*port, *uplink, bool) {
			ports, up, none := right(r)
			for _, p := range r.sw.in(r.seg) {
				if r.target == unknown && p != r.from && !p.learns() && !p.promiscuous() &&
					p.Policy.Learning.UnicastFlooding.V {
					ports = append(ports, p)
				}
			}
			return ports, up, none
		}
	},
	"receivers: known unicast leaves by the uplink": func(s *stages) {
		right := s.receivers
		s.receivers = func(r *run) ([]*port, *uplink, bool) {
			ports, up, none := right(r)
			if up == nil && r.from != nil && len(r.from.active) > 0 && r.from.active[0].usable() {
				up = r.leaves(r.from.active[0])
			}
			return ports, up, none && up == nil
		}
	},
	"team: standby is not used": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			without := *p
			without.standby = nil
			return choose(&without, f, source)
		}
	},
	"team: IPv6 is hashed as if it were IPv4": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			other := *f
			if other.packet.version == 6 {
				other.packet = packet{}
			}
			return choose(p, &other, source)
		}
	},
	"LAG: fragments have ports": func(s *stages) {
		s.member = func(g *lag, f *header, seg Segment) *uplink {
			other := *f
			other.packet.fragment = false
			return member(g, &other, seg)
		}
	},
	"LAG: type and code are hashed": func(s *stages) {
		s.member = func(g *lag, f *header, seg Segment) *uplink {
			other := *f
			if icmp := f.packet.icmp; icmp != nil {
				other.packet.ports = append([]byte{0, 0}, icmp...)
			}
			return member(g, &other, seg)
		}
	},
	"rules: a port that is down receives": func(s *stages) {
		right := s.portRules
		s.portRules = func(r *run, to *port) abi.Reason { return pardon(right(r, to), abi.ReasonReceiverDown) }
	},
	"rules: our own frames come back": func(s *stages) {
		right := s.portRules
		s.portRules = func(r *run, to *port) abi.Reason { return pardon(right(r, to), abi.ReasonReflected) }
	},
	"rules: the reverse path is checked for known receivers": func(s *stages) {
		right := s.portRules
		s.portRules = func(r *run, to *port) abi.Reason {
			k := r.known
			defer func() { r.known = k }()
			r.known = nil
			return right(r, to)
		}
	},
	"rules: an uplink's range does not hold on the way out": func(s *stages) {
		right := s.uplinkRules
		s.uplinkRules = func(r *run, to *uplink) abi.Reason { return pardon(right(r, to), abi.ReasonUplinkVLAN) }
	},
	"deliver: the priority is lost": func(s *stages) {
		right := s.wire
		s.wire = func(r *run, tagged bool) []byte {
			b := right(r, tagged)
			if tagged && r.seg != (Segment{}) {
				b[14] &= 0x0f
			}
			return b
		}
	},
	"deliver: a priority tag reaches an access port": func(s *stages) {
		right := s.wire
		s.wire = func(r *run, tagged bool) []byte {
			if !tagged && r.head.tags > 0 && r.head.vid() == 0 {
				return append([]byte(nil), r.head.raw...)
			}
			return right(r, tagged)
		}
	},
	"team: a drained uplink is used": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			other := *p
			other.active, other.standby = undrained(p.active), undrained(p.standby)
			return choose(&other, f, source)
		}
	},
	"team: what rests is used": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			other := *p
			other.fact.Resting = nil
			return choose(&other, f, source)
		}
	},
	"team: what rests is not even used when nothing else is left": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			e := choose(p, f, source)
			if slices.Contains(p.fact.Resting, e.name()) {
				return path{}
			}
			return e
		}
	},
	"team: an assignment does not count": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			other := *p
			other.fact.Assigned = ""
			return choose(&other, f, source)
		}
	},
	"LAG: the VID is not hashed": func(s *stages) {
		s.member = func(g *lag, f *header, _ Segment) *uplink { return member(g, f, Segment{}) }
	},
	"LAG: only the member chosen is the receiver's own": func(s *stages) {
		right := s.portRules
		s.portRules = func(r *run, to *port) abi.Reason {
			if e := r.ownPath(to); r.via != nil && to != r.known && r.guarded() && to.fact.Up && e.lag != nil &&
				r.leaves(e) != r.via {
				if why := right(r, to); why == abi.ReasonNone {
					return abi.ReasonReversePath
				}
			}
			return right(r, to)
		}
	},
	"LAG: a member that is out is used": func(s *stages) {
		s.member = func(g *lag, f *header, seg Segment) *uplink {
			other := lag{LAG: g.LAG}
			for _, u := range g.members {
				if u != nil {
					v := *u
					v.fact.Out = nil
					u = &v
				}
				other.members = append(other.members, u)
			}
			return member(&other, f, seg)
		}
	},
	"host: copies ignore the MTU of the uplink's device": func(s *stages) {
		right := s.hostRules
		s.hostRules = func(r *run, u *uplink) abi.Reason { return pardon(right(r, u), abi.ReasonMTUExceeded) }
	},
	"host: what is for a port here leaves as well": func(s *stages) {
		right := s.fromHost
		s.fromHost = func(r *run) bool { right(r); return true }
	},
	"host: what it sends leaves no mark": func(s *stages) {
		right := s.fromHost
		s.fromHost = func(r *run) bool {
			t := *r.sw.tables
			defer func() { r.sw.tables.sent = t.sent }()
			r.sw.tables.sent = map[station]time.Duration{}
			return right(r)
		}
	},
	"host: its frames are learned like a port's": func(s *stages) {
		right := s.lookUp
		s.lookUp = func(r *run) abi.Reason {
			if r.out != nil {
				for _, p := range r.sw.in(r.seg) {
					if p.learns() {
						r.sw.learned[station{r.seg, r.head.src}] = &entry{port: p, seen: r.now}
						p.tally.held++
						break
					}
				}
			}
			return right(r)
		}
	},
	"host: every uplink's device is asked for, whoever has addresses there": func(s *stages) {
		right := s.lookUp
		s.lookUp = func(r *run) abi.Reason {
			for _, u := range r.sw.uplinks {
				defer func(u *uplink, was bool) { u.hosts = was }(u, u.hosts)
				u.hosts = true
			}
			return right(r)
		}
	},
	"team: explicit order hashes": func(s *stages) {
		s.choose = func(p *port, f *header, source plan.MAC) path {
			if p.teaming() != spec.ExplicitOrder {
				return choose(p, f, source)
			}
			other, pp, policy := *p, *p.Port, *p.Policy
			policy.Teaming.Policy.V = spec.OriginatingPort
			pp.Policy, other.Port = &policy, &pp
			return choose(&other, f, source)
		}
	},
}

// misread corrupts what was read of layers 3 and 4.
func misread(spoil func(*packet)) func(*stages) {
	return func(s *stages) {
		s.packet = func(frame []byte) packet {
			p := readPacket(frame)
			spoil(&p)
			return p
		}
	}
}

// pardon lets one reason pass.
func pardon(reason, forgiven abi.Reason) abi.Reason {
	if reason == forgiven {
		return abi.ReasonNone
	}
	return reason
}

// undrained are the uplinks of a list as if none was drained.
func undrained(list []path) []path {
	list = slices.Clone(list)
	for i := range list {
		if u := list[i].uplink; u != nil && u.Drained {
			plain, copied := *u.Uplink, *u
			plain.Drained = false
			copied.Uplink, list[i].uplink = &plain, &copied
		}
	}
	return list
}

// Faults names the deliberate mistakes.
func Faults() []string {
	return slices.Collect(maps.Keys(everyFault()))
}

func everyFault() map[string]func(*stages) {
	all := maps.Clone(faults)
	maps.Copy(all, misreadings)
	return all
}

// NewFaulty makes a maker of models with one deliberate mistake.
func NewFaulty(name string) func(*plan.Plan, plan.Facts, time.Duration) *Host {
	return func(p *plan.Plan, f plan.Facts, now time.Duration) *Host {
		h := New(p, f, now)
		everyFault()[name](&h.rules)
		return h
	}
}
