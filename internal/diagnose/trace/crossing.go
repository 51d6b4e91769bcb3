package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// stageTunnel is what a tunnel does with a frame before the switch has it, or after.
const stageTunnel = "tunnel"

// otherEndpoint is why a host does not get a packet: it is for another one.
const otherEndpoint = "other-endpoint"

// cross prepares for frames that come from a tunnel: they are in a VNI, that of the port they are for where the request
// has none.
func (t *tracer) cross(from, to *place, through *diagnose.Through) error {
	if through != nil && !from.tunnel {
		return fmt.Errorf("%s is no tunnel: frames come from there in no VNI", from.id.Name)
	}
	if through != nil {
		t.through = *through
	}
	if t.through.VNI == 0 && to != nil && to.port != nil {
		t.through.VNI = to.port.VNI
	}
	switch {
	case from.tunnel && t.through.VNI == 0:
		return fmt.Errorf("say in which VNI the frame comes from the tunnel (--vni)")
	case to != nil && to.tunnel && from.port != nil && from.port.VNI == 0:
		return fmt.Errorf("port %s has no VNI: its frames leave by the uplinks of the switch", from.id.Name)
	case to != nil && to.tunnel && from.port != nil:
		t.through.VNI = from.port.VNI
	}
	return nil
}

// enter hands a frame to the model: to the switch, or to its tunnel. The cause is why a frame from a tunnel does not
// get as far as the switch; nil where it does.
func (t *tracer) enter(from *place, f *diagnose.Frame, b []byte) (model.Result, *diagnose.Cause) {
	if !from.tunnel {
		return t.model.Frame(from.id, b, t.Now), nil
	}
	p, c := &t.through, t.model.Crossing(from.id.Switch)
	if c == nil {
		return t.model.FrameFrom(from.id.Switch, p.VNI, b, t.Now), nil
	}
	f.Copies = []diagnose.Copy{}
	if p.Destination.IsValid() && !slices.Contains(c.Own(), p.Destination) {
		f.Reason = otherEndpoint
		return model.Result{}, &diagnose.Cause{Reason: otherEndpoint, Policy: "none: the packet's destination",
			From: "the packet", Why: fmt.Sprintf("the packet is for %s, and this host's endpoints are %s",
				p.Destination, ownWords(c.Own())),
			Change:  "Nothing on this host: the sender takes the guest to be behind another endpoint.",
			Command: t.command(from.id, "uplink show")}
	}
	a, res := t.model.Arrive(from.id.Switch, p.Source, p.VNI, b, t.Now)
	if a.Reason != abi.ReasonNone {
		f.Reason = a.Reason.String()
		cause := t.general(from, a.Reason)
		return res, &cause
	}
	say(f, "the frame comes in VNI %d%s", p.VNI, fromWords(p.Source))
	for _, o := range a.Repeated {
		outer := outerOf(&o)
		say(f, "repeated, as the proxy of this host's subnet: %s", outerWords(&outer, b))
	}
	tellHeard(f, &a.Heard, p.VNI)
	tellPlaced(f, &a.Placed, p.Source, plan.MAC(b[6:12]))
	return res, nil
}

func fromWords(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return " from endpoint " + a.String()
}

func ownWords(list []netip.Addr) string {
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return strings.Join(words, ", ")
}

// leave says in which packets the copy for a tunnel leaves, and what the tunnel makes of it. A copy of which none
// leaves is none, and a frame without any other is dropped by the tunnel.
func (t *tracer) leave(from *place, f *diagnose.Frame, res *model.Result) {
	left := res.Left
	if left == nil {
		return
	}
	for i, c := range res.Copies {
		if !t.places[c.To].tunnel {
			continue
		}
		tellHeard(f, &left.Heard, from.port.VNI)
		tellAsked(f, left, from.port.VNI, plan.MAC(c.Frame[6:12]))
		refused := map[abi.Reason]bool{}
		for _, o := range left.Outers {
			outer := outerOf(&o)
			f.Copies[i].Outer = append(f.Copies[i].Outer, outer)
			text := outerWords(&outer, c.Frame)
			if o.Asked.IsValid() {
				text = answerWords(&o)
			}
			say(f, "%s", text)
			if o.Reason != abi.ReasonNone && !refused[o.Reason] {
				refused[o.Reason] = true
				cause := t.general(t.places[c.To], o.Reason)
				cause.Port = c.To.Name
				f.Causes = append(f.Causes, cause)
			}
		}
		if room, ok := model.RoomIn(left.Error()); ok {
			say(f, "%s is told by ICMP that packets of %d bytes fit", from.id.Name, room)
		}
		tellBack(f, res.Back)
	}
	f.Copies = slices.DeleteFunc(f.Copies, func(c diagnose.Copy) bool {
		gone := len(c.Outer) > 0 && len(c.Leaves()) == 0
		if gone {
			f.Reason = c.Outer[0].Reason
		}
		return gone
	})
	switch {
	case len(f.Copies) == 0 && f.Reason != "":
		f.Delivered = false
	case f.Delivered:
		f.Reason = ""
	}
}

func outerOf(o *model.Outer) diagnose.Outer {
	out := diagnose.Outer{VNI: o.VNI, Source: o.From, Destination: o.To, Host: o.Host, TOS: o.TOS,
		Known: o.Known.String()}
	if o.Reason != abi.ReasonNone {
		out.Reason = o.Reason.String()
	}
	return out
}

// outerWords says where a packet goes, and why there.
func outerWords(o *diagnose.Outer, frame []byte) string {
	switch {
	case !o.Destination.IsValid():
		return fmt.Sprintf("nothing leaves in VNI %d: %s", o.VNI, o.Reason)
	case o.Reason != "":
		return fmt.Sprintf("nothing leaves for %s in VNI %d: %s", o.Receiver(), o.VNI, o.Reason)
	}
	text := fmt.Sprintf("in VNI %d from %s to %s", o.VNI, o.Source, o.Receiver())
	if o.TOS != 0 {
		text += fmt.Sprintf(", DSCP %d", o.TOS>>2)
	}
	known := map[string]string{"static": "the file says", "announced": "the controllers say",
		"learned": "frames from there show"}
	if how, ok := known[o.Known]; ok {
		return fmt.Sprintf("%s: %s that %s is there", text, how, plan.MAC(frame[:6]))
	}
	return text + ": a host of the segment"
}
