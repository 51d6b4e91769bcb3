package trace

import (
	"fmt"
	"net/netip"
	"time"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// say adds a step of the tunnel.
func say(f *diagnose.Frame, format string, args ...any) {
	f.Steps = append(f.Steps, diagnose.Step{Stage: stageTunnel, Text: fmt.Sprintf(format, args...)})
}

// tellHeard says what the tunnel makes of the address that a frame says is its sender's.
func tellHeard(f *diagnose.Frame, h *model.Hearing, vni uint32) {
	switch h.What {
	case model.HeardNew:
		say(f, "this host hears in VNI %d that %s belongs to %s", vni, h.Address, h.MAC)
	case model.HeardAgain:
		say(f, "this host hears in VNI %d that %s still belongs to %s", vni, h.Address, h.MAC)
	case model.HeardMoved:
		say(f, "this host hears in VNI %d that %s belongs to %s from now on, and no longer to %s", vni, h.Address,
			h.MAC, h.Was)
	case model.HeardSpoofed:
		say(f, "this host believes nothing that the packet says of addresses: the MAC in it is not %s, the frame's "+
			"source", h.MAC)
	case model.HeardUnbound:
		say(f, "this host does not believe that %s belongs to %s, which has named %d new addresses within a second",
			h.Address, h.MAC, abi.BindingsPerSecond)
	}
	if h.Unverified && h.Contested == 0 {
		say(f, "that is not sure until %s answers a question: questions for %s pass to all hosts", h.MAC, h.Address)
	}
	if h.Contested != 0 {
		say(f, "%s is contested: for %s this host answers for nobody who is asked for it", h.Address, h.Contested)
	}
}

// tellPlaced says what the tunnel learns from the source of a frame.
func tellPlaced(f *diagnose.Frame, p *model.Placing, from netip.Addr, mac plan.MAC) {
	switch p.What {
	case model.PlacedNew:
		say(f, "this host learns that %s is behind endpoint %s", mac, from)
	case model.PlacedMoved:
		was := "an endpoint that is none any more"
		if p.Was.IsValid() {
			was = p.Was.String()
		}
		say(f, "this host learns that %s is behind endpoint %s, and no longer behind %s", mac, from, was)
	case model.PlacedFull:
		say(f, "this host does not learn where %s is: %d MACs are learned behind endpoint %s, as many as may be", mac,
			abi.EndpointMACs, from)
	}
}

// tellAsked says why a question that the tunnel could answer goes to other hosts.
func tellAsked(f *diagnose.Frame, l *model.Left, vni uint32, asker plan.MAC) {
	q := &l.Question
	switch {
	case !q.Asked.IsValid():
	case q.Contested && q.Owner.Rival.IsZero():
		say(f, "other hosts are asked in VNI %d who has %s: it is contested since a MAC claimed it that named too "+
			"many new addresses", vni, q.Asked)
	case q.Contested:
		say(f, "other hosts are asked in VNI %d who has %s: it is contested, as %s and %s both claim it", vni, q.Asked,
			q.Owner.MAC, q.Owner.Rival)
	case q.Unverified:
		say(f, "other hosts are asked in VNI %d who has %s: it is not sure that %s has it, which has not answered a "+
			"question since that was in doubt", vni, q.Asked, q.Owner.MAC)
	case !q.Known:
		say(f, "other hosts are asked in VNI %d who has %s: this host does not know", vni, q.Asked)
	case q.Owner.MAC == asker:
		say(f, "other hosts are asked in VNI %d who has %s: as far as this host knows, the asker itself", vni, q.Asked)
	case q.Announces:
		say(f, "other hosts are asked in VNI %d who has %s, though this host knows that %s has it: by the question "+
			"they hear that %s belongs to %s now", vni, q.Asked, q.Owner.MAC, l.Heard.Address, asker)
	case q.Again:
		say(f, "other hosts are asked in VNI %d who has %s: the asker was told %s before, and asks again", vni, q.Asked,
			q.Owner.MAC)
	case len(l.Outers) > 0 && !l.Outers[0].Asked.IsValid():
		say(f, "other hosts are asked in VNI %d who has %s: %s, which has not said yet whether it is a router", vni,
			q.Asked, q.Owner.MAC)
	}
}

// answerWords says who answers for an address, and how it is known who has it.
func answerWords(o *model.Outer) string {
	how := fmt.Sprintf("the owner was heard %s ago", o.Owner.Age.Round(time.Second))
	if o.Owner.Told {
		how = "the controllers say so"
	}
	switch o.Reason {
	case abi.ReasonNeighbourHere:
		return fmt.Sprintf("no other host is asked in VNI %d: %s belongs to %s behind a port of this host (%s)", o.VNI,
			o.Asked, o.Owner.MAC, how)
	case abi.ReasonNeighbourLimit:
		return fmt.Sprintf("nobody answers or is asked in VNI %d: %s belongs to %s (%s), but the asker has had %d "+
			"answers within a second", o.VNI, o.Asked, o.Owner.MAC, how, abi.AnswersPerSecond)
	}
	return fmt.Sprintf("this host answers in VNI %d: %s belongs to %s (%s)", o.VNI, o.Asked, o.Owner.MAC, how)
}

// tellBack says who gets the frame by which the tunnel answered.
func tellBack(f *diagnose.Frame, back *model.Result) {
	if back == nil {
		return
	}
	for _, c := range back.Copies {
		say(f, "%s gets the answer", c.To.Name)
	}
	if !back.Delivered {
		say(f, "nobody gets the answer: %s", back.Reason)
	}
}
