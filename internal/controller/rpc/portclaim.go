package rpc

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
	"heddle/internal/controller/staticports"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// portKeeper is the part of a fleet that says what hosts may do with static ports, and what people see of them.
type portKeeper struct{ *fleet }

// claimant is the half of a server that takes the claims of hosts.
type claimant struct{ *Server }

func (f *fleet) keeper() portKeeper { return portKeeper{f} }

func (s claimant) keeper() portKeeper { return portKeeper{s.fleet} }

// mostClaims is how many claims of one host are under way at a time.
const mostClaims = 256

// stopTime is how long a claim waits for another host to report that the VM has stopped there, and stopLook how often
// another controller is asked for what such a host has said.
const (
	stopTime = time.Second
	stopLook = 200 * time.Millisecond
)

// claims takes up the claims of a host, each beside the others, in its turn among those of all hosts. Those that come
// while too many are under way are answered as if the store did not answer: the host asks again.
func (s claimant) claims(ctx context.Context, h *host, c *conn, list []*controllerv1.PortClaim) {
	for _, q := range list {
		select {
		case c.slots <- struct{}{}:
		default:
			s.claimUntaken(h, c, q)
			continue
		}
		if !s.turns.enter() {
			<-c.slots
			s.claimUntaken(h, c, q)
			continue
		}
		go func() {
			defer func() { s.turns.leave(); <-c.slots }()
			if !s.turns.take(ctx, func() { s.fleet.bindings.Answer(h.id, c.Conn, s.claimPort(ctx, h, c, q)) }) {
				s.claimUntaken(h, c, q)
			}
		}()
	}
}

// claimUntaken answers a claim for which there is no time.
func (s claimant) claimUntaken(h *host, c *conn, q *controllerv1.PortClaim) {
	a := tooMany(q)
	s.turns.untaken(s.keeper().nameOf(h), q, a.GetRefused())
	s.fleet.bindings.Answer(h.id, c.Conn, a)
}

// claimOf is where a claim of a host stands among the others of it.
func claimOf(c *conn, q *controllerv1.PortClaim) store.Claim {
	return store.Claim{Run: hex.EncodeToString([]byte(c.start)), Conversation: c.conversation, Number: q.GetNumber(),
		Begun: c.begun}
}

// claimPort binds a static port to an adapter of a VM on the host that asks, or gives it up. A host speaks for itself
// alone, and for port groups that its labels let it serve (S104).
func (s claimant) claimPort(ctx context.Context, h *host, c *conn, q *controllerv1.PortClaim) *controllerv1.PortAnswer {
	answer := &controllerv1.PortAnswer{Number: q.GetNumber()}
	group := q.GetSwitch() + "/" + q.GetPortGroup()
	g, err := s.keeper().mayServe(h, group)
	switch {
	case err != nil:
	case !spec.ValidUUID(q.GetVm()) || q.GetAdapter() == "":
		err = fmt.Errorf("port group %s has static ports: whose port it is must be said, by the VM's UUID and the "+
			"adapter (--vm-uuid, --adapter)", group)
	case q.GetRelease():
		err = s.release(ctx, h, q, group, claimOf(c, q))
	case g.HasStaticPorts():
		err = s.bind(ctx, h, claimOf(c, q), q, &g, answer)
	}
	if p := answer.GetPort(); err == nil && p != nil && answer.GetRefused() == "" {
		p.Policy = s.keeper().policyOf(h, p)
	}
	var away *store.Unavailable
	var taken *store.Taken
	if err != nil {
		answer.Refused = s.keeper().named(err)
		answer.Unavailable = errors.As(err, &away) || errors.Is(err, store.ErrNoSpace)
		answer.Conflict = errors.As(err, &taken)
		if answer.GetUnavailable() {
			s.turns.untaken(s.keeper().nameOf(h), q, answer.GetRefused())
			return answer
		}
		h.say(s.Log, slog.LevelInfo, "a static port was not bound", "host", s.keeper().nameOf(h), "group", group,
			"vm", q.GetVm(), "adapter", q.GetAdapter(), "why", answer.GetRefused())
	}
	return answer
}

func (f portKeeper) nameOf(h *host) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return h.doc.Name
}

// mayServe is a port group that a host may serve.
func (f portKeeper) mayServe(h *host, group string) (spec.PortGroup, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set, err := f.target(h)
	if err != nil {
		return spec.PortGroup{}, err
	}
	if _, ok := set.Get(slice.Key{Kind: slice.PortGroup, Name: group}); !ok {
		return spec.PortGroup{}, fmt.Errorf(
			"host %s does not serve port group %s: it is not in the definition, or the "+
				"host lacks the labels that the port group asks for", h.doc.Name, group)
	}
	v, err := withheld(f).definitionOf(f.inventory, h)
	if err != nil {
		return spec.PortGroup{}, err
	}
	return v.Group(group), nil
}

// bindAttempts is how often a claim is made that was overtaken by another one about the same port.
const bindAttempts = 5

// bind finds the adapter's port, or takes an unbound one. The guest counts as being started on the host from then on.
func (s claimant) bind(ctx context.Context, h *host, as store.Claim, q *controllerv1.PortClaim, g *spec.PortGroup,
	answer *controllerv1.PortAnswer) error {
	n := part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter())
	s.fleet.adapters.Starts.Begin(h.id, n, adapters.ClaimingTime)
	var err error
	for range bindAttempts {
		if err = s.bindAsKnown(ctx, h, n, as, q, g, answer); !overtaken(err, n) {
			break
		}
		if away := s.catchUp(ctx); away != nil {
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
		s.fleet.adapters.Starts.Begin(h.id, n, adapters.StartingTime)
	case !errors.As(err, &away) && !errors.Is(err, store.ErrNoSpace):
		// A write that nobody answered may have happened, and the guest starts even so.
		s.fleet.adapters.Starts.Begin(h.id, n, 0)
	}
	return err
}

// overtaken reports whether a claim was refused because its adapter's port was another, or on another host, than was
// known when it was made.
func overtaken(err error, n nic) bool {
	var taken *store.Taken
	if !errors.As(err, &taken) {
		return false
	}
	b := taken.Binding
	return taken.What == "adapter" || taken.What == "port" && (b == nil || b.VM == n.VM && b.Adapter == n.Name)
}

// bindAsKnown is bind by what this controller knows. Where that is not so any more, the store refuses it.
func (s claimant) bindAsKnown(ctx context.Context, h *host, n nic, as store.Claim, q *controllerv1.PortClaim,
	g *spec.PortGroup, answer *controllerv1.PortAnswer) error {
	group := q.GetSwitch() + "/" + q.GetPortGroup()
	has, elsewhere := s.holder(ctx, h, n, q.GetIncoming())
	if has != nil && elsewhere == "" {
		if held := s.held(ctx, h, has); !held.lease || !q.GetIncoming() { // a guest that arrives takes its port along
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
		if err := s.Store.Release(ctx, store.ReleaseRequest{PortGroup: has.Group, Port: has.ID, VM: n.VM,
			Adapter: n.Name, Host: has.Host, Was: has.Was()}); err != nil && !rpcerrors.IsNotFound(err) {
			return err
		}
		has = nil
	}
	p, err := s.claimAsKnown(ctx, h, n, as, q, g, has)
	if err != nil {
		return err
	}
	answer.Port = (&staticports.Binding{ID: p.ID, Group: p.Group, Adapter: n, MAC: p.Binding.MAC}).Message()
	return nil
}

// holder is the port that an adapter has, nil for none; elsewhere says that it runs on another host, or is being
// connected there. A VM that was stopped there a moment ago may not be reported yet, so that is waited for.
func (s claimant) holder(ctx context.Context, h *host, n nic, incoming bool) (has *staticports.Binding,
	elsewhere string) {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	return s.fleet.adapters.Holder(ctx, h.id, n, incoming)
}

// claimAsKnown writes a claim that rests on the port that the adapter has, nil for none.
func (s claimant) claimAsKnown(ctx context.Context, h *host, n nic, as store.Claim, q *controllerv1.PortClaim,
	g *spec.PortGroup, has *staticports.Binding) (store.Port, error) {
	_, limit := g.StaticPorts()
	r := store.ClaimRequest{PortGroup: q.GetSwitch() + "/" + q.GetPortGroup(), Port: q.GetPort(), Limit: limit,
		Binding: store.Binding{Host: h.id, VM: n.VM, Adapter: n.Name, MAC: strings.ToLower(q.GetMac()),
			Claim: as}}
	if has != nil {
		if has.Host == h.id {
			r.Generation = has.Generation
		}
		r.Move, r.Was = true, has.Was()
		if r.Port = has.ID; r.MAC == "" {
			r.MAC = has.MAC
		}
	}
	p, err := s.Store.Claim(ctx, r)
	// It was removed, or made after a snapshot that was restored.
	if rpcerrors.IsNotFound(err) && r.Port != "" && has == nil {
		r.Port, r.Spare = "", true
		p, err = s.Store.Claim(ctx, r)
	}
	return p, err
}

// release gives up the port of an adapter on the host that asks, unless the host has claimed it again since. A host
// that does not know whether it got a port names none.
func (s claimant) release(ctx context.Context, h *host, q *controllerv1.PortClaim, group string,
	as store.Claim) error {
	if q.GetPort() == "" {
		if err := s.catchUp(ctx); err != nil { // another controller may have bound it
			return &store.Unavailable{Cause: err}
		}
		if b := s.fleet.bindings.Of(part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter())); b.On() == h.id {
			q, group = proto.CloneOf(q), b.Group
			q.Port = b.ID
		}
	}
	err := s.Store.Release(ctx, store.ReleaseRequest{PortGroup: group, Port: q.GetPort(),
		VM:      strings.ToLower(q.GetVm()),
		Adapter: q.GetAdapter(), Host: h.id, Claim: as})
	var taken *store.Taken
	if errors.As(err, &taken) && taken.Binding != nil && taken.Binding.Host == h.id &&
		taken.Binding.VM == strings.ToLower(q.GetVm()) && taken.Binding.Adapter == q.GetAdapter() {
		return fmt.Errorf("static port %s stays bound: it was claimed again meanwhile, so that this release is late",
			q.GetPort())
	}
	if err == nil || rpcerrors.IsNotFound(err) {
		s.fleet.adapters.Starts.Begin(h.id, part.AdapterOf(strings.ToLower(q.GetVm()), q.GetAdapter()), 0)
	}
	if rpcerrors.IsNotFound(err) { // it is so already
		return nil
	}
	return err
}

// named is an error's text with the names of hosts in place of their ids.
func (f portKeeper) named(err error) string {
	var taken *store.Taken
	if !errors.As(err, &taken) || taken.Binding == nil {
		return err.Error()
	}
	t, b := *taken, *taken.Binding
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[b.Host]; h != nil {
		b.Host = h.doc.Name
	}
	t.Binding = &b
	return t.Error()
}

// moved binds a port on the host that its VM has moved to.
func (s claimant) moved(b *staticports.Binding, host, name string, generation uint64) {
	_, err := s.Store.Claim(context.Background(), store.ClaimRequest{PortGroup: b.Group, Port: b.ID, Move: true,
		Was: b.Was(), Binding: store.Binding{Host: host, VM: b.Adapter.VM, Adapter: b.Adapter.Name, MAC: b.MAC,
			Generation: generation}})
	if err != nil {
		s.Log.Warn("a port does not follow its VM", "port", b.ID, "group", b.Group, "host", name, "err",
			s.keeper().named(err))
		return
	}
	s.Log.Info("a port has followed its VM", "port", b.ID, "group", b.Group, "host", name)
}
