package agent

import (
	"context"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/state"
	"heddle/internal/plan"
)

var _ cluster.Ports = (*statics)(nil)

// Bound takes in which static ports controllers have bound on this host.
func (st *statics) Bound(ctx context.Context, m *controllerv1.StaticPorts) error {
	return st.Do(ctx, func() error {
		before := st.state.NICs
		st.unbound(m)
		for _, p := range m.GetPut() {
			st.putBound(p)
		}
		if slices.EqualFunc(before, st.state.NICs, sameNIC) {
			return nil
		}
		st.changed()
		return st.resettle()
	})
}

// unbound takes in which are bound here no more. Those whose guests run here stay as they are, and are claimed again.
func (st *statics) unbound(m *controllerv1.StaticPorts) {
	var list []state.NIC
	for _, n := range st.state.NICs {
		put := slices.ContainsFunc(m.GetPut(), func(p *controllerv1.StaticPort) bool { return p.GetPort() == n.ID })
		if n.ID != "" && n.Bound && !put && (m.GetWhole() || slices.Contains(m.GetRemoved(), n.ID)) {
			if n.Bound = false; !st.state.Connected(&n) {
				continue
			}
		}
		list = append(list, n)
	}
	st.state.NICs = list
}

// putBound takes in one port that is bound here.
func (st *statics) putBound(p *controllerv1.StaticPort) {
	n, before := state.NIC{VM: p.GetVm(), Adapter: p.GetAdapter()}, ""
	if have := st.state.NIC(n.VM, n.Adapter); have != nil {
		n, before = *have, have.Trouble()
	}
	connected := st.state.Connected(&n)
	if connected && (n.Switch != p.GetSwitch() || n.PortGroup != p.GetPortGroup()) {
		return // it is connected elsewhere meanwhile; that counts, and is claimed
	}
	n.Switch, n.PortGroup, n.ID, n.MAC = p.GetSwitch(), p.GetPortGroup(), p.GetPort(), p.GetMac()
	n.Bound, n.Conflict = true, ""
	st.state.PutNIC(n, abi.MaxPorts)
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
func (st *statics) Conflicts(ctx context.Context, m *controllerv1.PortConflicts) error {
	return st.Do(ctx, func() error {
		changed := false
		for _, n := range st.state.NICs {
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
			st.state.PutNIC(n, abi.MaxPorts)
			if st.state.Connected(&n) {
				st.tell(&n, before)
			}
		}
		if !changed {
			return nil
		}
		return st.ports.save()
	})
}

// Unsettled are claims for the connected ports that should be static ones and are not bound here, as far as is known. A
// port without a device is not claimed: its VM may run on another host since this one was switched off.
func (st *statics) Unsettled(ctx context.Context) (list []*controllerv1.PortClaim, err error) {
	err = st.Do(ctx, func() error {
		st.absent = nil
		defer st.ended(st.state.NICs)
		for _, n := range st.state.NICs {
			if n.Bound || !st.state.Connected(&n) || !st.static(n.Switch, n.PortGroup) {
				continue
			}
			if !st.present(n.Port) {
				st.absent = append(st.absent, n.Port)
				st.endConflict(n)
				continue
			}
			q := &controllerv1.PortClaim{Switch: n.Switch, PortGroup: n.PortGroup, Vm: n.VM, Adapter: n.Adapter,
				Port: n.ID}
			if p := st.ports.runTime(n.Port); p != nil {
				q.Mac = p.MAC
			}
			w := st.waits(n.Switch, n.Port)
			q.Incoming = w
			list = append(list, q)
		}
		list = append(list, st.releases()...)
		return nil
	})
	return list, err
}

// endConflict ends the conflict of a port without a device: no guest runs by it here. It is claimed when the device is
// back.
func (st *statics) endConflict(n state.NIC) {
	if n.Conflict == "" {
		return
	}
	before := n.Trouble()
	n.Conflict = ""
	st.state.PutNIC(n, abi.MaxPorts)
	st.tell(&n, before)
}

// ended has the controllers told, and the state saved, where adapters are others than before.
func (st *statics) ended(before []state.NIC) {
	if slices.EqualFunc(before, st.state.NICs, sameNIC) {
		return
	}
	st.changed()
	if err := st.ports.save(); err != nil {
		st.Complain("remember whose ports are in conflict", err)
	}
}

// present reports whether a run-time port has a device.
func (st *statics) present(port string) bool {
	p := st.ports.runTime(port)
	if p == nil {
		return false
	}
	d, there, err := st.dev.Device(p.Device)
	id, ow := plan.PortID{Switch: p.Switch, Name: p.Name}, owned{st.shared}
	return err == nil && there && (!ow.isVMs(*p) || ow.mayTake(id, d, there))
}

// appeared reports, once, that a port has a device which was not claimed for want of it. It is called in the loop.
func (st *statics) appeared() bool {
	if !slices.ContainsFunc(st.absent, st.present) {
		return false
	}
	st.absent = nil
	return true
}

// Settled takes in the answer to one of these claims. The guest goes on whatever it is.
func (st *statics) Settled(ctx context.Context, q *controllerv1.PortClaim, a *controllerv1.PortAnswer) error {
	return st.Do(ctx, func() error {
		if q.GetRelease() {
			return st.released(q, a)
		}
		have := st.state.NIC(q.GetVm(), q.GetAdapter())
		if !st.static(q.GetSwitch(), q.GetPortGroup()) { // meanwhile
			return nil
		}
		if have == nil || have.Bound || have.Switch != q.GetSwitch() || have.PortGroup != q.GetPortGroup() {
			return nil
		}
		if a.GetConflict() && !st.present(have.Port) { // its device has gone since: no guest runs by it here
			st.absent = append(st.absent, have.Port)
			return nil
		}
		n, before := *have, have.Trouble()
		if answered(&n, a); sameNIC(n, *have) {
			return nil
		}
		st.state.PutNIC(n, abi.MaxPorts)
		st.tell(&n, before)
		st.changed()
		return st.resettle()
	})
}

// settleKept ends what was wrong with ports in port groups that the host keeps by now: nobody binds those.
func (st *statics) settleKept() {
	changed := false
	for _, n := range st.state.NICs {
		if n.Bound || n.Conflict == "" || !(keeper{st.ports}).isKept(n.Switch, n.PortGroup) {
			continue
		}
		before := n.Trouble()
		n.Conflict, changed = "", true
		st.state.PutNIC(n, abi.MaxPorts)
		st.tell(&n, before)
	}
	if changed {
		if err := st.ports.save(); err != nil {
			st.Complain("remember whose ports are in conflict", err)
		}
	}
}

// waits reports whether the guest of a port runs elsewhere.
func (st *statics) waits(sw, name string) bool {
	for _, w := range st.state.Waits {
		if w.ID.Switch == sw && w.ID.Name == name {
			return !w.Awake
		}
	}
	return false
}
