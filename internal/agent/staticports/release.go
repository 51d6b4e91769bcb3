package staticports

import (
	"context"
	"fmt"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/state"
	"heddle/internal/api"
)

// A static port is given up by command when its VM is deleted. Whether the adapter has one may not be known here: a
// claim that no controller answered in time may be carried out later, and so may the release. The host remembers what
// it has given up, and gives up again what is bound here nevertheless.

// mayHave reports whether an adapter has a static port, or may get one yet by what was claimed.
func (st *Part) mayHave(n *state.NIC) bool {
	return n.ID != "" || n.Conflict != "" || st.host.Static(n.Switch, n.PortGroup)
}

// GivesUp is the part of an edit by which the port of an adapter is given up, nil for nobody's.
func (st *Part) GivesUp(n *state.NIC) {
	if n != nil && st.mayHave(n) {
		st.host.Document.GiveUp(state.GivenUp{VM: n.VM, Adapter: n.Adapter, Switch: n.Switch, PortGroup: n.PortGroup},
			abi.MaxPorts)
	}
}

// Release gives up the static port of an adapter whose port has been disconnected.
func (st *Part) Release(ctx context.Context, n *state.NIC) error {
	if n == nil {
		return nil
	}
	wanted := false
	if err := st.host.Loop.Do(ctx, func() error {
		wanted = st.mayHave(n)
		return nil
	}); err != nil || !wanted {
		return err
	}
	q := &controllerv1.PortClaim{Switch: n.Switch, PortGroup: n.PortGroup, Vm: n.VM, Adapter: n.Adapter, Port: n.ID,
		Release: true}
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	a, err := st.controllers.Claim(ctx, q)
	switch {
	case err != nil && n.ID == "":
		return fmt.Errorf("port %s is disconnected, but it is not known whether it has a static port: %w; if it has, "+
			"that is given up as soon as a controller answers (see heddle port static list at a controller)", n.Port,
			err)
	case err != nil:
		return fmt.Errorf("port %s is disconnected, but its static port %s is not released: %w; it is given up as "+
			"soon as one answers (or at a controller: heddle port static release %s)", n.Port, n.ID, err, n.ID)
	}
	if err := st.host.Loop.Do(ctx, func() error { return st.released(q, a) }); err != nil {
		return err
	}
	if a.GetRefused() != "" {
		return api.NewError(api.Invalid, a.GetRefused())
	}
	return nil
}

// releases are those of ports that were given up, and are bound here nevertheless or not certainly given up.
func (st *Part) releases() (list []*controllerv1.PortClaim) {
	for _, g := range st.host.Document.NotGivenUp(time.Now()) {
		q := &controllerv1.PortClaim{Switch: g.Switch, PortGroup: g.PortGroup, Vm: g.VM, Adapter: g.Adapter,
			Release: true}
		if n := st.host.Document.NIC(g.VM, g.Adapter); n != nil && n.ID != "" {
			q.Switch, q.PortGroup, q.Port = n.Switch, n.PortGroup, n.ID
		}
		list = append(list, q)
	}
	return list
}

// released takes in the answer to a release: where it was refused, the port is another's by now.
func (st *Part) released(q *controllerv1.PortClaim, a *controllerv1.PortAnswer) error {
	n := st.host.Document.NIC(q.GetVm(), q.GetAdapter())
	if n != nil && st.host.Document.Connected(n) { // it was connected meanwhile
		return nil
	}
	if n != nil && a.GetRefused() == "" && (q.GetPort() == "" || n.ID == q.GetPort()) {
		st.host.Document.DropNIC(q.GetVm(), q.GetAdapter())
	}
	st.host.Document.GaveUp(q.GetVm(), q.GetAdapter(), time.Now())
	return st.host.Save()
}
