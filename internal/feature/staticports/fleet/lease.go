package fleet

import (
	"context"
	"fmt"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
)

// holding says what stands in the way of a claim.
type holding struct {
	why string // "" for nothing
	// lease: the host is lost and holds the port for a while. That ends by itself, and an operator may override it; it
	// silences nobody, and keeps no guest from starting.
	lease bool
}

// held says what keeps a port where it is bound, other than that the host reports here that the adapter runs: the guest
// is being started there, it runs on that host, which is connected to another controller, or the host is lost and its
// lease is not over.
func (p *Ports) held(ctx context.Context, host string, b *adapters.Binding) holding {
	was, there := p.Hosts.Of(b.Host)
	another := there && was.ID != host
	switch {
	case another && was.Here && p.Adapters.Starts.On(was.ID, b.Adapter):
		return holding{why: adapters.StartsText(b.Adapter, was.Name)}
	case !another || was.Here:
		return holding{}
	}
	said := p.askWhereItStarts(ctx, was.Name, b)
	if at := said.Hosts[b.Host]; at.GetConnected() && !at.GetHost().GetStale() {
		if said.Starts(b.Host, b.Adapter) {
			return holding{why: adapters.StartsText(b.Adapter, was.Name)}
		}
		if runs, _ := p.lastSaid(said, was, b.Adapter); !runs {
			return holding{}
		}
		return holding{why: fmt.Sprintf("adapter %s of VM %s runs on host %s", b.Adapter.Name, b.Adapter.VM, was.Name)}
	}
	if runs, known := p.lastWord(said, was, b.Adapter); known && !runs {
		return holding{} // it said so before it was lost
	}
	lost, lease := said.LostFor(p.now(was), p.Roster.SilentSince), p.Lease()
	if lost >= lease {
		return holding{}
	}
	return holding{lease: true, why: fmt.Sprintf("static port %s is held by host %s, which has no controller for %s: "+
		"another host gets it in %s, or at once by heddle port static settle --force", b.ID, was.Name,
		lost.Round(time.Second), (lease - lost).Round(time.Second))}
}

// askWhereItStarts asks the other controllers for a host's word, and waits a while where the adapter is being connected
// there: the host may be about to say what came of it.
func (p *Ports) askWhereItStarts(ctx context.Context, host string, b *adapters.Binding) *fanout.Answers {
	for end := time.Now().Add(stopTime); ; {
		there := p.Hosts.Ask(ctx, &controllerv1.GetHostsHereRequest{Names: []string{host}, Reports: true})
		if !there.Starts(b.Host, b.Adapter) || time.Now().After(end) {
			return there
		}
		select {
		case <-ctx.Done():
			return there
		case <-time.After(stopLook):
		}
	}
}

// lastWord is what a lost host said last of an adapter, before it was lost; known is false where a controller may have
// heard more: one that does not answer, or one that has started since, and remembers nothing of the host; and where the
// host was lost while it connected the adapter.
func (p *Ports) lastWord(there *fanout.Answers, was fanout.Host, n part.Adapter) (is, known bool) {
	if len(there.Away) > 0 || p.Adapters.Starts.On(was.ID, n) || there.Starts(was.ID, n) {
		return false, false
	}
	was = p.now(was)
	heard := was.Report != nil
	if at := there.Hosts[was.ID]; at != nil && at.GetHost().GetSince().AsTime().After(was.Since) {
		heard = at.GetReport() != nil
	}
	if !heard {
		return false, false
	}
	return there.LastSaid(was, n)
}

// now is a host by what it has said by now: others were asked meanwhile.
func (p *Ports) now(h fanout.Host) fanout.Host {
	if now, there := p.Hosts.Of(h.ID); there {
		return now
	}
	return h
}

// lastSaid is whether a host said last that an adapter runs there.
func (p *Ports) lastSaid(there *fanout.Answers, was fanout.Host, n part.Adapter) (is, known bool) {
	return there.LastSaid(p.now(was), n)
}
