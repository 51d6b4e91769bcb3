package trace

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"heddle/internal/diagnose"
	"net/netip"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// Why a frame may not reach the requested port although no rule refuses it.
const (
	otherSwitch  = "other-switch"
	otherSegment = "other-vlan"
	otherUplink  = "other-uplink"
	notAddressed = "not-addressed"
	notConnected = "not-connected"
)

// Uncounted returns the reasons that no rule counts, because the requested port was never considered, with a sentence
// about each.
func Uncounted() map[string]string {
	return map[string]string{
		otherSwitch:  "The port asked about is on another switch of the host.",
		otherSegment: "The port asked about is in another VLAN.",
		otherUplink:  "The uplink asked about is not the one that the frame leaves by, if it leaves at all.",
		notAddressed: "The port asked about has another MAC, and takes no frames for others.",
		notConnected: "The port asked about has no device.",
		otherEndpoint: "The packet that carries the frame through a tunnel is for an endpoint that the host asked " +
			"does not have.",
	}
}

// maxCauses bounds the causes that are reported for one frame: a broadcast may be refused a thousand times for one
// reason.
const maxCauses = 8

// subject is what causes are about: one frame and the model's result for it.
type subject struct {
	*tracer
	from *place
	to   *place // the requested port, or the port that has the destination; may be nil
	res  *model.Result

	dst, src plan.MAC
	vid      uint16
	ad       bool
	tags     int
	inner    uint16 // the EtherType after the outermost tag
	layer3   int
	claimed  netip.Addr // the sender's address according to the frame; not valid if it is not known
}

func (t *tracer) subject(from, to *place, b []byte, res *model.Result) *subject {
	s := &subject{tracer: t, from: from, to: to, res: res}
	if len(b) < 14 {
		return s
	}
	s.dst, s.src = plan.MAC(b[:6]), plan.MAC(b[6:12])
	rest := b[12:]
	for len(rest) >= 6 && s.tags < 2 {
		kind := binary.BigEndian.Uint16(rest)
		if kind != typeQ && kind != typeAD {
			break
		}
		if s.tags == 0 {
			s.vid, s.ad = binary.BigEndian.Uint16(rest[2:])&0xfff, kind == typeAD
		}
		s.tags++
		rest = rest[4:]
	}
	if at := 12 + 4*min(s.tags, 1); len(b) >= at+2 {
		s.inner = binary.BigEndian.Uint16(b[at:])
	}
	s.layer3 = len(b) - 14 - 4*s.tags
	s.claimed, _ = model.ClaimedAddress(b)
	if s.to == nil {
		s.to = t.ownerOf(from, s.dst)
	}
	return s
}

// ownerOf returns the port, of any switch, that has a MAC; the frame's own switch comes first. nil if no port has it.
func (t *tracer) ownerOf(from *place, mac plan.MAC) *place {
	if mac.IsGroup() || mac.IsZero() {
		return nil
	}
	if id, ok := t.model.Owner(from.id.Switch, mac); ok {
		return t.places[id]
	}
	for _, sw := range t.Plan.Switches {
		if id, ok := t.model.Owner(sw.Name, mac); ok {
			return t.places[id]
		}
	}
	for _, sw := range t.Plan.Switches {
		for _, p := range sw.Ports {
			if t.model.MACOf(p.ID) == mac {
				return t.places[p.ID]
			}
		}
	}
	return nil
}

// causes explains the refusals, that of the requested port first.
func (t *tracer) causes(from, to *place, b []byte, res *model.Result) []diagnose.Cause {
	s := t.subject(from, to, b, res)
	var list []diagnose.Cause
	if !res.Delivered && !slices.ContainsFunc(res.Refused, func(r model.Refusal) bool {
		return r.Reason == res.Reason
	}) {
		list = append(list, s.explain(from, res.Reason))
	}
	if c := s.notForTo(); c != nil {
		list = append(list, *c)
	}
	refused := slices.Clone(res.Refused)
	slices.SortStableFunc(refused, func(a, b model.Refusal) int {
		return cmp.Or(s.rank(a) - s.rank(b))
	})
	for _, r := range refused {
		at := t.places[r.Port]
		if known, _ := reasons.Lookup(r.Reason); known.Case.OfFrame { // not about a single receiver
			list = append(list, s.explain(from, r.Reason))
			continue
		}
		if len(list) == maxCauses {
			break
		}
		c := s.explain(at, r.Reason)
		c.Port = at.id.Name
		list = append(list, c)
	}
	return list
}

// rank sorts the requested port first, and the reason of the frame's drop before others.
func (s *subject) rank(r model.Refusal) int {
	switch {
	case s.to != nil && r.Port == s.to.id:
		return 0
	case !s.res.Delivered && r.Reason == s.res.Reason:
		return 1
	}
	return 2
}

// notForTo returns why the requested port was not even considered; nil if it was.
func (s *subject) notForTo() *diagnose.Cause {
	to := s.to
	if to == nil || to == s.from {
		return nil
	}
	for _, c := range s.res.Copies {
		if c.To == to.id && !c.HostStack {
			return nil
		}
	}
	if slices.ContainsFunc(s.res.Refused, func(r model.Refusal) bool { return r.Port == to.id }) {
		return nil
	}
	c := s.absent(to)
	if c != nil {
		c.Port = to.id.Name
	}
	return c
}

// absent returns why a place that got no copy was not among the receivers; nil if the frame itself was dropped.
func (s *subject) absent(to *place) *diagnose.Cause {
	_, connected := s.Facts[to.id]
	switch {
	case to.sw != s.from.sw:
		return &diagnose.Cause{Reason: otherSwitch, Policy: "switch", From: "port " + to.id.Name, Value: to.id.Switch,
			Why:     fmt.Sprintf("it is on switch %s, and switches of a host have no way to each other", to.id.Switch),
			Change:  "Connect one of the two to the other's switch, or have a router that is on both.",
			Command: s.command(to.id, "port show")}
	case !connected:
		c := s.notConnected(to, s.connected(to))
		return &c
	case !s.res.Placed:
		return nil // dropped before receivers were looked up
	case to.uplink != nil:
		return s.notThatUplink(to)
	case !s.model.Admits(to.id, s.res.Segment):
		c := s.elsewhere(to)
		return &c
	case slices.ContainsFunc(s.res.Refused, func(r model.Refusal) bool { return r.Reason == abi.ReasonStormControl }):
		return nil
	case s.res.Reason == abi.ReasonMACLimit, s.res.Reason == abi.ReasonMACTableFull,
		s.res.Reason == abi.ReasonOwnDestination, s.res.Reason == abi.ReasonStormControl:
		return nil
	}
	if c := s.silent(to); c != nil {
		return c
	}
	return &diagnose.Cause{Reason: notAddressed, Policy: "none: the frame's destination", From: "the frame",
		Why: fmt.Sprintf("the frame is for %s, and the port's MAC is %s; it neither floods nor is promiscuous",
			s.dst, s.model.MACOf(to.id)),
		Change: "Send to the port's address; for addresses behind the port, set `security: {macLearning: {enabled: " +
			"true}}` on its port group.",
		Command: s.command(to.id, "mac list --port")}
}

// notConnected returns the cause for a place without a device.
func (t *tracer) notConnected(at *place, why error) diagnose.Cause {
	return diagnose.Cause{Reason: notConnected, Policy: "none: the device", From: "the host's devices",
		Why: why.Error(), Change: t.WhyWaiting(at.id).Fix(),
		Command: t.command(at.id, at.kind()+" show")}
}

// general returns what there is to say about a reason at a place, whatever the frame.
func (t *tracer) general(at *place, why abi.Reason) diagnose.Cause {
	r, _ := reasons.Lookup(why)
	return diagnose.Cause{Reason: why.String(), Policy: r.Policy, From: "always", Why: r.Meaning, Change: r.Change,
		Command: t.command(at.id, at.kind()+" show")}
}

// explain returns why a frame that entered at a place, or a copy for it, was dropped.
func (s *subject) explain(at *place, why abi.Reason) diagnose.Cause {
	c := s.general(at, why)
	switch why {
	case abi.ReasonPortBlocked, abi.ReasonReceiverBlocked:
		s.blocked(&c, at)
	case abi.ReasonLoopBlocked:
		s.looped(&c, at)
	case abi.ReasonGuestBPDU:
		s.check(&c, "blockGuestBPDU", "guests of this switch may take part in spanning tree; for one port group add "+
			"bpdu to its guestLinkControl")
	case abi.ReasonGuestLinkControl:
		s.linkControl(&c, at.port)
	case abi.ReasonIPSourceNotAllowed, abi.ReasonARPSenderNotAllowed, abi.ReasonNDTargetNotAllowed:
		s.guarded(&c, at.port)
	case abi.ReasonGuestHealthProbe:
		s.healthProbe(&c)
	case abi.ReasonForgedTransmit:
		s.forged(&c, at.port)
	case abi.ReasonGuestTagged, abi.ReasonVLANNotAllowed:
		s.tagged(&c, at.port, why)
	case abi.ReasonMACLimit:
		s.limit(&c, at.port)
	case abi.ReasonMACTableFull:
		s.tableFull(&c, at.port)
	case abi.ReasonStormControl:
		s.storm(&c, at.port)
	case abi.ReasonOwnDestination:
		c.Why = fmt.Sprintf("%s lives behind the very port the frame came from", s.dst)
		c.Command = "heddle mac show " + s.dst.String()
	case abi.ReasonUnknownUnicast, abi.ReasonNoReceiver:
		s.nobody(&c, at, why)
	case abi.ReasonMTUExceeded:
		s.tooLong(&c, at)
	case abi.ReasonUplinkVLAN:
		s.uplinkVLAN(&c, at)
	case abi.ReasonNoUplink:
		s.noUplink(&c, at)
	case abi.ReasonMACChange:
		s.changedMAC(&c, at.port)
	case abi.ReasonReversePath, abi.ReasonReflected:
		s.loop(&c, at, why)
	case abi.ReasonReceiverDown:
		c.From = "the device's state"
		s.receiverDown(&c, at)
	case abi.ReasonReceiverWaiting, abi.ReasonGuestElsewhere:
		s.waits(&c, at)
	case abi.ReasonDeviceRefused:
		c.From, c.Command = "the device's queue", s.command(at.id, "stats")
	case abi.ReasonSourceGroup, abi.ReasonSourceZero:
		c.Why = fmt.Sprintf("the source is %s, which is no sender's address", s.src)
	default:
		r, _ := reasons.Lookup(why)
		c.Why = cmp.Or(r.Case.Told, c.Why)
		if to := r.Case.Permit; to.Path != "" && at.port != nil {
			s.set(&c, at.port, to.Path, to.Value)
		}
	}
	return c
}
