package store

import (
	"context"
)

// ReleaseRequest gives up a port. VM and Adapter have to be those that it is bound to, and Host, when it is given, the
// one where it is: what came from a host after the port moved on is refused.
type ReleaseRequest struct {
	PortGroup, Port   string
	VM, Adapter, Host string
	// Claim, if not zero, is where the release stands among the claims of the host: what its agent has claimed after
	// it,
	// in the same run or a later one, stays bound.
	Claim Claim
	// Was, if not nil, is the binding that is given up, as in a ClaimRequest.
	Was *Binding
}

// still reports whether a binding is the one that it was, nil for none.
func (b *Binding) still(was *Binding) bool {
	return b != nil && b.Host == was.Host && b.Generation == was.Generation && b.Claim == was.Claim
}

// of reports whether a release is one of this binding.
func (r *ReleaseRequest) of(b *Binding) bool {
	return b.VM == r.VM && b.Adapter == r.Adapter && (r.Host == "" || r.Host == b.Host) && !b.Claim.after(r.Claim) &&
		(r.Was == nil || b.still(r.Was))
}

// Release makes a port unbound. Its own fields stay. It gives up no other binding than the one that the port has when
// the release is first tried, but those of earlier claims of the host; and none after ctx has ended, unless that was
// under way.
func (s *Store) Release(ctx context.Context, r ReleaseRequest) error {
	var first *Binding
	_, err := s.do(ctx, vital, func(t *tx) error {
		if err := ctx.Err(); err != nil {
			return &Unavailable{Cause: err}
		}
		return t.release(&r, &first)
	})
	return err
}

// release makes a port unbound; first is the binding that it had when the release was first tried.
func (t *tx) release(r *ReleaseRequest, first **Binding) error {
	c, p, err := t.port(r.PortGroup, r.Port)
	if err != nil {
		return err
	}
	switch {
	case p == nil:
		return &NotFound{"port " + r.Port + " in port group " + r.PortGroup}
	case p.Binding == nil:
		return &NotFound{"binding of port " + r.Port}
	case !r.of(p.Binding), *first != nil && **first != *p.Binding && !r.Claim.after(p.Binding.Claim):
		return &Taken{What: "port", Name: r.Port, Group: r.PortGroup, Port: r.Port, Binding: p.Binding}
	}
	*first = p.Binding
	t.unindex(p)
	p.Binding = nil
	return t.putPort(c, p)
}

// unindex gives back what a bound port had. Nothing of it is compared: only who changes the port changes that.
func (t *tx) unindex(p *Port) {
	t.drop(t.keys.index(nicIndex(p.Binding)))
	if p.Binding.MAC != "" {
		t.drop(t.keys.index(macIndex(p.Group, p.Binding)))
	}
}
