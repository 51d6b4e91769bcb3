package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

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

// arrive reports why a frame from a tunnel does not get as far as the switch; nil where it does.
func (t *tracer) arrive(from *place, f *diagnose.Frame, b []byte) *diagnose.Cause {
	c := t.Crossings[from.id.Switch]
	if !from.tunnel || c == nil {
		return nil
	}
	p := &t.through
	f.Copies = []diagnose.Copy{}
	if p.Destination.IsValid() && !slices.Contains(c.Own(), p.Destination) {
		f.Reason = otherEndpoint
		return &diagnose.Cause{Reason: otherEndpoint, Policy: "none: the packet's destination", From: "the packet",
			Why: fmt.Sprintf("the packet is for %s, and this host's endpoints are %s", p.Destination,
				ownWords(c.Own())),
			Change:  "Nothing on this host: the sender takes the guest to be behind another endpoint.",
			Command: t.command(from.id, "uplink show")}
	}
	why := c.Arrive(p.Source, p.VNI, b)
	if why == abi.ReasonNone {
		f.Steps = append(f.Steps, diagnose.Step{Stage: stageTunnel, Text: fmt.Sprintf("the frame comes in VNI %d%s",
			p.VNI, fromWords(p.Source))})
		return nil
	}
	f.Reason = why.String()
	cause := t.general(from, why)
	return &cause
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

// enter hands a frame to the model's switch.
func (t *tracer) enter(from *place, b []byte) model.Result {
	if from.tunnel {
		return t.model.FrameFrom(from.id.Switch, t.through.VNI, b, t.Now)
	}
	return t.model.Frame(from.id, b, t.Now)
}

// leave says in which packets copies leave by a tunnel. A copy of which none leaves is none, and a frame without any
// other is dropped by the tunnel.
func (t *tracer) leave(from *place, f *diagnose.Frame, res *model.Result) {
	if from.port == nil || from.port.VNI == 0 {
		return
	}
	crossing := t.Crossings[from.id.Switch]
	for i, c := range res.Copies {
		if !t.places[c.To].tunnel || crossing == nil {
			continue
		}
		refused := map[abi.Reason]bool{}
		outers := crossing.Leave(from.port.VNI, c.Frame)
		for _, o := range outers {
			outer := outerOf(&o)
			f.Copies[i].Outer = append(f.Copies[i].Outer, outer)
			text := outerWords(&outer, c.Frame)
			if o.Asked.IsValid() {
				text = answerWords(&o)
			}
			f.Steps = append(f.Steps, diagnose.Step{Stage: stageTunnel, Text: text})
			if o.Reason != abi.ReasonNone && !refused[o.Reason] {
				refused[o.Reason] = true
				cause := t.general(t.places[c.To], o.Reason)
				cause.Port = c.To.Name
				f.Causes = append(f.Causes, cause)
			}
		}
		if room, ok := model.RoomIn(crossing.TooBig(c.Frame, outers)); ok {
			f.Steps = append(f.Steps, diagnose.Step{Stage: stageTunnel, Text: fmt.Sprintf("%s is told by ICMP that "+
				"packets of %d bytes fit", from.id.Name, room)})
		}
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

// answerWords says who answers for an address, and how it is known who has it.
func answerWords(o *model.Outer) string {
	how := "the controllers say so"
	if !o.Owner.Told {
		how = fmt.Sprintf("the owner was heard %s ago", o.Owner.Age.Round(time.Second))
	}
	if o.Owner.Here {
		return fmt.Sprintf("no other host is asked in VNI %d: %s belongs to %s behind a port of this host (%s)", o.VNI,
			o.Asked, o.Owner.MAC, how)
	}
	return fmt.Sprintf("this host answers in VNI %d: %s belongs to %s (%s)", o.VNI, o.Asked, o.Owner.MAC, how)
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
