package fleet

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/part"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// stopTime is how long a claim waits for another host to report that the VM has stopped there, and stopLook how often
// another controller is asked for what such a host has said.
const (
	stopTime = time.Second
	stopLook = 200 * time.Millisecond
)

// claims takes up the claims of a host, each beside the others, in its turn among those of all hosts. Those that come
// while too many are under way are answered as if the store did not answer: the host asks again.
func (p *Ports) claims(ctx context.Context, id string, c *part.Conn, list []*controllerv1.PortClaim) {
	for _, q := range list {
		select {
		case c.Slots <- struct{}{}:
		default:
			p.claimUntaken(id, c, q)
			continue
		}
		if !p.turns.enter() {
			<-c.Slots
			p.claimUntaken(id, c, q)
			continue
		}
		go func() {
			defer func() { p.turns.leave(); <-c.Slots }()
			if !p.turns.take(ctx, func() { p.bindings.Answer(id, c, p.Claim(ctx, id, c, q)) }) {
				p.claimUntaken(id, c, q)
			}
		}()
	}
}

// claimUntaken answers a claim for which there is no time.
func (p *Ports) claimUntaken(id string, c *part.Conn, q *controllerv1.PortClaim) {
	a := tooMany(q)
	p.turns.untaken(p.Hosts.Name(id), q, a.GetRefused())
	p.bindings.Answer(id, c, a)
}

// claimOf is where a claim of a host stands among the others of it.
func claimOf(c *part.Conn, q *controllerv1.PortClaim) store.Claim {
	return store.Claim{Run: hex.EncodeToString([]byte(c.Run)), Conversation: c.Number, Number: q.GetNumber(),
		Begun: c.Begun}
}

// Claim binds a static port to an adapter of a VM on the host that asks, or gives it up. A host speaks for itself
// alone, and for port groups that its labels let it serve (S104).
func (p *Ports) Claim(ctx context.Context, id string, c *part.Conn,
	q *controllerv1.PortClaim) *controllerv1.PortAnswer {
	answer := &controllerv1.PortAnswer{Number: q.GetNumber()}
	group := q.GetSwitch() + "/" + q.GetPortGroup()
	g, err := p.mayServe(id, group)
	switch {
	case err != nil:
	case !spec.ValidUUID(q.GetVm()) || q.GetAdapter() == "":
		err = fmt.Errorf("port group %s has static ports: whose port it is must be said, by the VM's UUID and the "+
			"adapter (--vm-uuid, --adapter)", group)
	case q.GetRelease():
		err = p.release(ctx, id, q, group, claimOf(c, q))
	case g.HasStaticPorts():
		err = p.bind(ctx, id, claimOf(c, q), q, &g, answer)
	}
	if port := answer.GetPort(); err == nil && port != nil && answer.GetRefused() == "" {
		port.Policy = p.policyOf(id, port)
	}
	var away *store.Unavailable
	var taken *store.Taken
	if err != nil {
		answer.Refused = p.named(err)
		answer.Unavailable = errors.As(err, &away) || errors.Is(err, store.ErrNoSpace)
		answer.Conflict = errors.As(err, &taken)
		if answer.GetUnavailable() {
			p.turns.untaken(p.Hosts.Name(id), q, answer.GetRefused())
			return answer
		}
		p.Hosts.Say(id, slog.LevelInfo, "a static port was not bound", "host", p.Hosts.Name(id), "group", group,
			"vm", q.GetVm(), "adapter", q.GetAdapter(), "why", answer.GetRefused())
	}
	return answer
}

// mayServe is a port group that a host may serve.
func (p *Ports) mayServe(id, group string) (spec.PortGroup, error) {
	g, serves, err := p.Hosts.Serves(id, group)
	if err != nil {
		return spec.PortGroup{}, err
	}
	if !serves {
		return spec.PortGroup{}, fmt.Errorf(
			"host %s does not serve port group %s: it is not in the definition, or the "+
				"host lacks the labels that the port group asks for", p.Hosts.Name(id), group)
	}
	return g, nil
}

// bindAttempts is how often a claim is made that was overtaken by another one about the same port.
const bindAttempts = 5

// bind finds the adapter's port, or takes an unbound one. The guest counts as being started on the host from then on.
func (p *Ports) bind(ctx context.Context, id string, as store.Claim, q *controllerv1.PortClaim, g *spec.PortGroup,
	answer *controllerv1.PortAnswer) error {
	n := part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter())
	p.Adapters.Starts.Begin(id, n, adapters.ClaimingTime)
	var err error
	for range bindAttempts {
		if err = p.bindAsKnown(ctx, id, n, as, q, g, answer); !overtaken(err, n) {
			break
		}
		if away := p.CatchUp(ctx); away != nil {
			err = &store.Unavailable{Cause: away}
			break
		}
	}
	if overtaken(err, n) {
		err = &store.Unavailable{Cause: err}
	}
	var away *store.Unavailable
	switch {
	case err == nil && answer.GetRefused() == "":
		p.Adapters.Starts.Begin(id, n, adapters.StartingTime)
	case !errors.As(err, &away) && !errors.Is(err, store.ErrNoSpace):
		// A write that nobody answered may have happened, and the guest starts even so.
		p.Adapters.Starts.Begin(id, n, 0)
	}
	return err
}

// overtaken reports whether a claim was refused because its adapter's port was another, or on another host, than was
// known when it was made.
func overtaken(err error, n part.Adapter) bool {
	var taken *store.Taken
	if !errors.As(err, &taken) {
		return false
	}
	b := taken.Binding
	return taken.What == "adapter" || taken.What == "port" && (b == nil || b.VM == n.VM && b.Adapter == n.Name)
}

// bindAsKnown is bind by what this controller knows. Where that is not so any more, the store refuses it.
func (p *Ports) bindAsKnown(ctx context.Context, id string, n part.Adapter, as store.Claim, q *controllerv1.PortClaim,
	g *spec.PortGroup, answer *controllerv1.PortAnswer) error {
	group := q.GetSwitch() + "/" + q.GetPortGroup()
	has, elsewhere := p.holder(ctx, id, n, q.GetIncoming())
	if has != nil && elsewhere == "" {
		if held := p.held(ctx, id, has); !held.lease || !q.GetIncoming() { // a guest that arrives takes its port along
			elsewhere = held.why
		}
	}
	if has != nil && elsewhere != "" && has.Group == group {
		answer.Port = has.Message()
		if !q.GetIncoming() {
			answer.Conflict, answer.Refused = true, elsewhere
		}
		return nil
	}
	if has != nil && has.Group != group {
		if elsewhere != "" {
			return fmt.Errorf("%s, in port group %s", elsewhere, has.Group)
		}
		if err := p.Store.Release(ctx, store.ReleaseRequest{PortGroup: has.Group, Port: has.ID, VM: n.VM,
			Adapter: n.Name, Host: has.Host, Was: has.Was()}); err != nil && !rpcerrors.IsNotFound(err) {
			return err
		}
		has = nil
	}
	port, err := p.claimAsKnown(ctx, id, n, as, q, g, has)
	if err != nil {
		return err
	}
	answer.Port = (&adapters.Binding{ID: port.ID, Group: port.Group, Adapter: n, MAC: port.Binding.MAC}).Message()
	return nil
}

// holder is the port that an adapter has, nil for none; elsewhere says that it runs on another host, or is being
// connected there. A VM that was stopped there a moment ago may not be reported yet, so that is waited for.
func (p *Ports) holder(ctx context.Context, id string, n part.Adapter, incoming bool) (has *adapters.Binding,
	elsewhere string) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return p.Adapters.Holder(ctx, id, n, incoming)
}

// claimAsKnown writes a claim that rests on the port that the adapter has, nil for none.
func (p *Ports) claimAsKnown(ctx context.Context, id string, n part.Adapter, as store.Claim, q *controllerv1.PortClaim,
	g *spec.PortGroup, has *adapters.Binding) (store.Port, error) {
	_, limit := g.StaticPorts()
	r := store.ClaimRequest{PortGroup: q.GetSwitch() + "/" + q.GetPortGroup(), Port: q.GetPort(), Limit: limit,
		Binding: store.Binding{Host: id, VM: n.VM, Adapter: n.Name, MAC: strings.ToLower(q.GetMac()),
			Claim: as}}
	if has != nil {
		if has.Host == id {
			r.Generation = has.Generation
		}
		r.Move, r.Was = true, has.Was()
		if r.Port = has.ID; r.MAC == "" {
			r.MAC = has.MAC
		}
	}
	port, err := p.Store.Claim(ctx, r)
	// It was removed, or made after a snapshot that was restored.
	if rpcerrors.IsNotFound(err) && r.Port != "" && has == nil {
		r.Port, r.Spare = "", true
		port, err = p.Store.Claim(ctx, r)
	}
	return port, err
}

// release gives up the port of an adapter on the host that asks, unless the host has claimed it again since. A host
// that does not know whether it got a port names none.
func (p *Ports) release(ctx context.Context, id string, q *controllerv1.PortClaim, group string,
	as store.Claim) error {
	if q.GetPort() == "" {
		if err := p.CatchUp(ctx); err != nil { // another controller may have bound it
			return &store.Unavailable{Cause: err}
		}
		if b := p.Of(part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter())); b.On() == id {
			q, group = proto.CloneOf(q), b.Group
			q.Port = b.ID
		}
	}
	err := p.Store.Release(ctx, store.ReleaseRequest{PortGroup: group, Port: q.GetPort(),
		VM:      strings.ToLower(q.GetVm()),
		Adapter: q.GetAdapter(), Host: id, Claim: as})
	var taken *store.Taken
	if errors.As(err, &taken) && taken.Binding != nil && taken.Binding.Host == id &&
		taken.Binding.VM == strings.ToLower(q.GetVm()) && taken.Binding.Adapter == q.GetAdapter() {
		return fmt.Errorf("static port %s stays bound: it was claimed again meanwhile, so that this release is late",
			q.GetPort())
	}
	if err == nil || rpcerrors.IsNotFound(err) {
		p.Adapters.Starts.Begin(id, part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter()), 0)
	}
	if rpcerrors.IsNotFound(err) { // it is so already
		return nil
	}
	return err
}

// named is an error's text with the names of hosts in place of their ids.
func (p *Ports) named(err error) string {
	var taken *store.Taken
	if !errors.As(err, &taken) || taken.Binding == nil {
		return err.Error()
	}
	t, b := *taken, *taken.Binding
	b.Host = p.Hosts.Name(b.Host)
	t.Binding = &b
	return t.Error()
}

// Rebind implements adapters.Bindings: it binds a port on the host that its VM has moved to.
func (p *Ports) Rebind(b *adapters.Binding, host, name string, generation uint64) {
	_, err := p.Store.Claim(context.Background(), store.ClaimRequest{PortGroup: b.Group, Port: b.ID, Move: true,
		Was: b.Was(), Binding: store.Binding{Host: host, VM: b.Adapter.VM, Adapter: b.Adapter.Name, MAC: b.MAC,
			Generation: generation}})
	if err != nil {
		p.Log.Warn("a port does not follow its VM", "port", b.ID, "group", b.Group, "host", name, "err",
			p.named(err))
		return
	}
	p.Log.Info("a port has followed its VM", "port", b.ID, "group", b.Group, "host", name)
}
