package model

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// This file only explains; nothing here decides. Every sentence names the port, the segment, the policy and the level
// that set it, in the words of the configuration file.

// say adds a step. Callers in the path of every frame check r.h.explain first.
func (r *run) say(s Stage, format string, args ...any) {
	r.res.Steps = append(r.res.Steps, Step{Stage: s, Text: fmt.Sprintf(format, args...)})
}

// String names a segment as a user would.
func (s Segment) String() string {
	switch {
	case s.VNI != 0 && s.VLAN == 0:
		return fmt.Sprintf("VNI %d", s.VNI)
	case s.VNI != 0:
		return fmt.Sprintf("VLAN %d of VNI %d", s.VLAN, s.VNI)
	case s == Segment{}:
		return "the untagged VLAN"
	case s.AD:
		return fmt.Sprintf("802.1ad VLAN %d", s.VLAN)
	}
	return fmt.Sprintf("VLAN %d", s.VLAN)
}

// listWords names a list's members.
func listWords(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

func (r *run) saySegment() {
	if !r.h.explain {
		return
	}
	if r.via != nil && r.via.tunnel {
		r.say(StageClassify, "it belongs to %s: it came from tunnel %s", r.seg, r.via.ID)
		return
	}
	if r.via != nil {
		r.say(StageAdmit, "uplink %s takes the frame", r.via.ID)
		r.say(StageClassify, "it belongs to %s: uplink %s carries %s", r.seg, r.via.ID, setWords(r.via.VLANs))
		return
	}
	r.say(StageAdmit, "port %s may send it (forged transmits: %s)", r.from.ID, answer(r.from.Policy.ForgedTransmits))
	r.say(StageClassify, "it belongs to %s: port %s is %s", r.seg, r.from.ID, vlanWords(r.from.Policy.VLAN))
}

func (r *run) sayChanges() {
	if !r.h.explain {
		return
	}
	for _, c := range r.res.Changes {
		switch c.Kind {
		case Learned:
			r.say(StageLearn, "%s is now known on port %s in %s", c.MAC, c.Port, c.Segment)
		case Moved:
			r.say(StageLearn, "%s moved from port %s to port %s in %s", c.MAC, c.Before, c.Port, c.Segment)
		case Removed:
			r.say(StageLearn, "%s is no longer on port %s: it sends from outside now", c.MAC, c.Port)
		}
	}
}

func (r *run) sayTarget() {
	if !r.h.explain {
		return
	}
	dst := r.head.dst
	switch {
	case r.target == group:
		r.say(StageLookUp, "%s is a group address: it is for everybody in %s", dst, r.seg)
	case r.target == hostAlone:
		r.say(StageLookUp, "%s is the MAC of uplink %s's own device: the frame is the host's", dst, r.via.ID)
	case r.target == hostBehind:
		r.say(StageLookUp, "%s is the MAC of uplink %s's own device, and the host has addresses there: the frame is "+
			"the host's", dst, r.behind.ID)
	case r.target == known && r.sw.owner[dst] != nil && r.sw.ownerOf(dst) != r.known:
		r.saySibling(r.sw.ownerOf(dst))
	case r.target == known && r.known.mac == dst:
		r.say(StageLookUp, "%s is the MAC of port %s", dst, r.known.ID)
	case r.target == known:
		r.say(StageLookUp, "%s was learned on port %s", dst, r.known.ID)
	case r.target == outside:
		sayOutside(r)
	case r.seg.VNI != 0:
		r.say(StageLookUp, "%s is behind no port of this host in %s", dst, r.seg)
	default:
		r.say(StageLookUp, "%s is not known in %s", dst, r.seg)
	}
}

// saySibling explains why a port gets a frame whose destination another port owns.
func (r *run) saySibling(o *port) {
	if s := r.sw.speaks[o.ID.Name]; s.mac == r.head.dst && s.port == r.known.ID.Name {
		r.say(StageLookUp, "%s is the MAC of port %s, and %s sent last from it by port %s", r.head.dst, o.ID, o.Owner,
			r.known.ID)
		return
	}
	r.say(StageLookUp, "%s is the MAC of port %s, which is down, and of port %s, which is %s's too", r.head.dst, o.ID,
		r.known.ID, o.Owner)
}

// sayHostAnyway explains why the switch does not deliver a frame that the host's stack still gets.
func (r *run) sayHostAnyway(reason abi.Reason) {
	if r.h.explain {
		stage, why := why{r}.whyUplinkDropped(reason)
		r.say(stage, "not for any port (%s): %s", reason, why)
	}
}

func (r *run) sayHost(u *uplink) {
	if r.h.explain {
		r.say(StageDeliver, "a copy for the host's own stack on uplink %s", u.ID)
	}
}

func (r *run) sayCopy(to plan.PortID) {
	if r.h.explain {
		r.say(StageDeliver, "a copy for %s", to)
	}
}

func (r *run) sayRefusal(at plan.PortID, reason abi.Reason) {
	if !r.h.explain {
		return
	}
	if reason == abi.ReasonStormControl {
		r.say(StageRules, "no copy for any port (%s): %s", reason, why{r}.stormWords())
		return
	}
	if reason == abi.ReasonNoUplink {
		t := r.from.Policy.Teaming
		r.say(StageRules, "no uplink or LAG that port %s may use is usable (%s): active %v (%s), standby %v (%s)",
			r.from.ID, reason, t.Active.V, words(t.Active.From), t.Standby.V, words(t.Standby.From))
		return
	}
	r.say(StageRules, "no copy for %s (%s): %s", at, reason, why{r}.whyRefused(r.h.places[at], reason))
}

// why phrases the reasons for which a run dropped or refused something.
type why struct{ *run }

func (w why) whyRefused(at arrivalPoint, reason abi.Reason) string {
	switch reason {
	case abi.ReasonReceiverBlocked:
		if at.port != nil {
			return "it is blocked, " + setBy(at.port.Policy.Blocked.From)
		}
		return "the uplink is blocked"
	case abi.ReasonLoopBlocked:
		return "Heddle has blocked it: " + at.port.fact.LoopBlocked.Cause()
	case abi.ReasonReceiverDown:
		return "its device is down"
	case abi.ReasonReceiverWaiting:
		return "its guest has not arrived yet"
	case abi.ReasonGuestElsewhere:
		return "its guest has left by a migration"
	case abi.ReasonMACChange:
		p := at.port
		return fmt.Sprintf(
			"its adapter uses %s instead of %s (MAC changes: %s), or the address belongs to another port",
			p.fact.SeenMAC, p.InitialMAC, answer(p.Policy.MACChanges))
	case abi.ReasonReversePath:
		return fmt.Sprintf("it came on uplink %s, and the port's %s teaming (%s) uses another one",
			w.via.ID, at.port.teaming(), words(at.port.Policy.Teaming.Policy.From))
	case abi.ReasonReflected:
		return fmt.Sprintf("%s sent from this host within the last second: this is our own frame coming back",
			w.head.src)
	case abi.ReasonUplinkVLAN:
		return fmt.Sprintf("the uplink carries %s, not %s", setWords(at.uplink.VLANs), w.seg)
	case abi.ReasonMTUExceeded:
		mtu := 0
		if at.port != nil {
			mtu = at.port.fact.MTU
		} else {
			mtu = at.uplink.fact.MTU
		}
		return fmt.Sprintf("%d bytes of layer 3 are more than its device's MTU of %d", w.head.layer3(), mtu)
	}
	return "refused"
}

// sayFate explains why a frame was dropped, or that the switch dropped it but the host got it.
func (r *run) sayFate() {
	if !r.h.explain || r.res.Reason == abi.ReasonNone {
		return
	}
	stage, why := why{r}.whyDropped(r.res.Reason)
	r.say(stage, "dropped (%s): %s", r.res.Reason, why)
}

func (w why) whyDropped(reason abi.Reason) (Stage, string) {
	f := &w.head
	switch reason {
	case abi.ReasonMalformed:
		return StageAdmit, fmt.Sprintf("%d bytes are too few for its headers", len(f.raw))
	case abi.ReasonSourceGroup:
		return StageAdmit, fmt.Sprintf("the source %s is a group address", f.src)
	case abi.ReasonSourceZero:
		return StageAdmit, "the source address is zero"
	case abi.ReasonUnknownUnicast:
		return StageLookUp, fmt.Sprintf("no port of %s floods or is promiscuous, and there is no uplink to send by",
			w.seg)
	case abi.ReasonStormControl:
		return StageLookUp, w.stormWords()
	case abi.ReasonNoReceiver:
		return StageLookUp, fmt.Sprintf("nobody else is in %s", w.seg)
	case abi.ReasonOwnDestination:
		return StageLookUp, "the destination is behind the port it came from"
	}
	if len(w.res.Refused) > 0 {
		return StageDeliver, "every receiver refused its copy"
	}
	if w.via != nil {
		return w.whyUplinkDropped(reason)
	}
	return w.whyPortDropped(reason)
}

const probeWords = "the frame is a probe that looks for loops: it is for the agent alone"

func (w why) whyUplinkDropped(reason abi.Reason) (Stage, string) {
	switch reason {
	case abi.ReasonPortBlocked:
		return StageAdmit, fmt.Sprintf("uplink %s is blocked", w.via.ID)
	case abi.ReasonLoopBlocked:
		return StageAdmit, probeWords
	case abi.ReasonMTUExceeded:
		return StageAdmit, w.mtuWords()
	}
	return StageClassify, fmt.Sprintf("uplink %s carries %s, not VLAN %d", w.via.ID, setWords(w.via.VLANs),
		w.head.vid())
}

func (w why) whyPortDropped(reason abi.Reason) (Stage, string) {
	p, pol := w.from, w.from.Policy
	switch reason {
	case abi.ReasonPortBlocked:
		return StageAdmit, fmt.Sprintf("port %s is blocked, %s", p.ID, setBy(pol.Blocked.From))
	case abi.ReasonLoopBlocked:
		if p.fact.LoopBlocked == nil {
			return StageAdmit, probeWords
		}
		return StageAdmit, fmt.Sprintf("Heddle has blocked port %s: %s", p.ID, p.fact.LoopBlocked.Cause())
	case abi.ReasonGuestBPDU:
		return StageAdmit, fmt.Sprintf("switch %s blocks spanning-tree frames of guests (checks.blockGuestBPDU)",
			p.ID.Switch)
	case abi.ReasonGuestLinkControl:
		return StageAdmit, fmt.Sprintf("%s is a link control address: what the %s lets port %s send there is %s",
			w.head.dst,
			words(pol.GuestLinkControl.From), p.ID, listWords(pol.GuestLinkControl.V))
	case abi.ReasonIPSourceNotAllowed, abi.ReasonARPSenderNotAllowed, abi.ReasonNDTargetNotAllowed:
		return StageAdmit, w.guardWords()
	case abi.ReasonGuestDHCPServer:
		return StageAdmit, fmt.Sprintf("port %s answers DHCP (DHCP servers: %s)", p.ID, answer(pol.DHCPServer))
	case abi.ReasonGuestRouterAdvertisement:
		return StageAdmit, fmt.Sprintf("port %s says that it is an IPv6 router (router advertisements: %s)", p.ID,
			answer(pol.RouterAdvertisements))
	case abi.ReasonGuestHealthProbe:
		return StageAdmit, fmt.Sprintf("the frame has the type of hosts' probes (0x%04x), and switch %s has a health "+
			"check", typeHealthProbe, p.ID.Switch)
	case abi.ReasonForgedTransmit:
		return StageAdmit, fmt.Sprintf("the source %s is not port %s's MAC %s (forged transmits: %s)",
			w.head.src, p.ID, p.mac, answer(pol.ForgedTransmits))
	case abi.ReasonMTUExceeded:
		return StageAdmit, w.mtuWords()
	case abi.ReasonGuestTagged:
		return StageClassify, fmt.Sprintf("port %s is %s: its owner may not tag", p.ID, vlanWords(pol.VLAN))
	case abi.ReasonVLANNotAllowed:
		return StageClassify, fmt.Sprintf("port %s is %s", p.ID, vlanWords(pol.VLAN))
	case abi.ReasonMACLimit:
		return StageLearn, fmt.Sprintf("port %s holds its limit of %d MACs (%s), and the limit policy is drop (%s)",
			p.ID,
			pol.Learning.Limit.V, words(pol.Learning.Limit.From), words(pol.Learning.LimitPolicy.From))
	case abi.ReasonMACTableFull:
		return StageLearn, fmt.Sprintf("port %s holds its share of %d MACs of the host's table, and the limit policy "+
			"is drop (%s)", p.ID,
			p.MACShare, words(pol.Learning.LimitPolicy.From))
	}
	return StageDeliver, reason.String()
}

func (w why) guardWords() string {
	p := w.from
	what := "the frame's IP address can't be read"
	if a, ok := ClaimedAddress(w.head.raw); ok {
		what = a.String() + " is not the port's"
	}
	return fmt.Sprintf("%s: the address guard (%s) lets port %s use %s", what,
		words(p.Policy.AddressGuard.Enabled.From), p.ID,
		listWords(append(slices.Clone(p.Policy.AddressGuard.Addresses.V), p.Addresses...)))
}

func (w why) mtuWords() string {
	return fmt.Sprintf("%d bytes of layer 3 are more than switch %s's MTU of %d", w.head.layer3(), w.sw.plan.Name,
		w.sw.plan.MTU)
}

func answer(v plan.Value[bool]) string {
	a := spec.Reject
	if v.V {
		a = spec.Accept
	}
	return fmt.Sprintf("%s, %s", a, setBy(v.From))
}

// setBy says what set a value.
func setBy(l plan.Level) string {
	if l == "" || l == plan.FromBuiltIn {
		return "the " + string(plan.FromBuiltIn)
	}
	return "as set by the " + string(l)
}

func words(l plan.Level) string {
	if l == "" {
		return string(plan.FromBuiltIn)
	}
	return string(l)
}

func vlanWords(v plan.Value[plan.VLAN]) string {
	what := "in no VLAN"
	switch v.V.Mode {
	case plan.VLANAccess:
		what = fmt.Sprintf("in VLAN %d", v.V.ID)
	case plan.VLANTrunk:
		kind := "802.1q"
		if v.V.AD {
			kind = "802.1ad"
		}
		what = fmt.Sprintf("an %s trunk of VLANs %s", kind, setWords(v.V.Set))
	}
	return fmt.Sprintf("%s, %s", what, setBy(v.From))
}

func setWords(s plan.VLANSet) string {
	if t := s.String(); t != "" {
		return t
	}
	return "no VLAN"
}
