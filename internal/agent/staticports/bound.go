package staticports

import (
	"context"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
)

var _ cluster.Ports = (*Part)(nil)

// Bound takes in which static ports controllers have bound on this host.
func (st *Part) Bound(ctx context.Context, m *controllerv1.StaticPorts) error {
	return st.host.Loop.Do(ctx, func() error {
		before := *st.host.Adapters
		st.unbound(m)
		for _, p := range m.GetPut() {
			st.putBound(p)
		}
		if slices.EqualFunc(before, *st.host.Adapters, sameNIC) {
			return nil
		}
		st.controllers.Changed()
		return st.resettle()
	})
}

// unbound takes in which are bound here no more. Those whose guests run here stay as they are, and are claimed again.
func (st *Part) unbound(m *controllerv1.StaticPorts) {
	var list []state.NIC
	for _, n := range *st.host.Adapters {
		put := slices.ContainsFunc(m.GetPut(), func(p *controllerv1.StaticPort) bool { return p.GetPort() == n.ID })
		if n.ID != "" && n.Bound && !put && (m.GetWhole() || slices.Contains(m.GetRemoved(), n.ID)) {
			if n.Bound = false; !st.host.Document.Connected(&n) {
				continue
			}
		}
		list = append(list, n)
	}
	*st.host.Adapters = list
}

// putBound takes in one port that is bound here.
func (st *Part) putBound(p *controllerv1.StaticPort) {
	n, before := state.NIC{VM: p.GetVm(), Adapter: p.GetAdapter()}, ""
	if have := st.host.Document.NIC(n.VM, n.Adapter); have != nil {
		n, before = *have, have.Trouble()
	}
	connected := st.host.Document.Connected(&n)
	if connected && (n.Switch != p.GetSwitch() || n.PortGroup != p.GetPortGroup()) {
		return // it is connected elsewhere meanwhile; that counts, and is claimed
	}
	n.Switch, n.PortGroup, n.ID, n.MAC = p.GetSwitch(), p.GetPortGroup(), p.GetPort(), p.GetMac()
	n.Bound, n.Conflict = true, ""
	st.host.Document.PutNIC(n, abi.MaxPorts)
	if connected {
		st.tell(&n, before)
	}
}

func sameNIC(a, b state.NIC) bool {
	return a.VM == b.VM && a.Adapter == b.Adapter && a.ID == b.ID && a.MAC == b.MAC && a.Bound == b.Bound &&
		a.Switch == b.Switch && a.PortGroup == b.PortGroup && a.Conflict == b.Conflict && a.Rival == b.Rival &&
		slices.Equal(a.Rivals, b.Rivals)
}

// Conflicts takes in which adapters on this host others use too.
func (st *Part) Conflicts(ctx context.Context, m *controllerv1.PortConflicts) error {
	return st.host.Loop.Do(ctx, func() error {
		changed := false
		for _, n := range *st.host.Adapters {
			text, rivals := "", []string(nil)
			for _, c := range m.GetConflicts() {
				if c.GetVm() == n.VM && c.GetAdapter() == n.Adapter {
					text, rivals = c.GetText(), c.GetRivals()
				}
			}
			if text == n.Rival && slices.Equal(rivals, n.Rivals) {
				continue
			}
			before := n.Trouble()
			n.Rival, n.Rivals, changed = text, rivals, true
			st.host.Document.PutNIC(n, abi.MaxPorts)
			if st.host.Document.Connected(&n) {
				st.tell(&n, before)
			}
		}
		if !changed {
			return nil
		}
		return st.host.Save()
	})
}

// Unsettled are claims for the connected ports that should be static ones and are not bound here, as far as is known. A
// port without a device is not claimed: its VM may run on another host since this one was switched off.
func (st *Part) Unsettled(ctx context.Context) (list []*controllerv1.PortClaim, err error) {
	err = st.host.Loop.Do(ctx, func() error {
		st.absent = nil
		defer st.ended(*st.host.Adapters)
		for _, n := range *st.host.Adapters {
			if n.Bound || !st.host.Document.Connected(&n) || !st.host.Static(n.Switch, n.PortGroup) {
				continue
			}
			if !st.host.Present(n.Port) {
				st.absent = append(st.absent, n.Port)
				st.endConflict(n)
				continue
			}
			q := &controllerv1.PortClaim{Switch: n.Switch, PortGroup: n.PortGroup, Vm: n.VM, Adapter: n.Adapter,
				Port: n.ID}
			if p := st.host.Port(n.Port); p != nil {
				q.Mac = p.MAC
			}
			q.Incoming = st.host.Waits(plan.PortID{Switch: n.Switch, Name: n.Port})
			list = append(list, q)
		}
		list = append(list, st.releases()...)
		return nil
	})
	return list, err
}

// endConflict ends the conflict of a port without a device: no guest runs by it here. It is claimed when the device is
// back.
func (st *Part) endConflict(n state.NIC) {
	if n.Conflict == "" {
		return
	}
	before := n.Trouble()
	n.Conflict = ""
	st.host.Document.PutNIC(n, abi.MaxPorts)
	st.tell(&n, before)
}

// ended has the controllers told, and the state saved, where adapters are others than before.
func (st *Part) ended(before []state.NIC) {
	if slices.EqualFunc(before, *st.host.Adapters, sameNIC) {
		return
	}
	st.controllers.Changed()
	if err := st.host.Save(); err != nil {
		st.host.Complain("remember whose ports are in conflict", err)
	}
}

// Appeared reports, once, that a port has a device which was not claimed for want of it. It is called in the loop.
func (st *Part) Appeared() bool {
	if !slices.ContainsFunc(st.absent, st.host.Present) {
		return false
	}
	st.absent = nil
	return true
}

// Settled takes in the answer to one of these claims. The guest goes on whatever it is.
func (st *Part) Settled(ctx context.Context, q *controllerv1.PortClaim, a *controllerv1.PortAnswer) error {
	return st.host.Loop.Do(ctx, func() error {
		if q.GetRelease() {
			return st.released(q, a)
		}
		have := st.host.Document.NIC(q.GetVm(), q.GetAdapter())
		if !st.host.Static(q.GetSwitch(), q.GetPortGroup()) { // meanwhile
			return nil
		}
		if have == nil || have.Bound || have.Switch != q.GetSwitch() || have.PortGroup != q.GetPortGroup() {
			return nil
		}
		if a.GetConflict() && !st.host.Present(have.Port) { // its device has gone since: no guest runs by it here
			st.absent = append(st.absent, have.Port)
			return nil
		}
		n, before := *have, have.Trouble()
		if answered(&n, a); sameNIC(n, *have) {
			return nil
		}
		st.host.Document.PutNIC(n, abi.MaxPorts)
		st.tell(&n, before)
		st.controllers.Changed()
		return st.resettle()
	})
}

// SettleKept ends what was wrong with ports in port groups that the host keeps by now: nobody binds those.
func (st *Part) SettleKept() {
	changed := false
	for _, n := range *st.host.Adapters {
		if n.Bound || n.Conflict == "" || !st.host.Kept(n.Switch, n.PortGroup) {
			continue
		}
		before := n.Trouble()
		n.Conflict, changed = "", true
		st.host.Document.PutNIC(n, abi.MaxPorts)
		st.tell(&n, before)
	}
	if changed {
		if err := st.host.Save(); err != nil {
			st.host.Complain("remember whose ports are in conflict", err)
		}
	}
}

// resettle applies the settings of static ports after it has become known which port an adapter has.
func (st *Part) resettle() error {
	if !st.host.AnySettings() {
		return st.host.Save()
	}
	return st.host.Change(func() {})
}
