package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// claimTime is how long the start of a guest waits for a controller: that of a host that boots may be looking for one.
const claimTime = cluster.BootTime + time.Second

// statics has the adapters of VMs and the static ports that controllers bind to them. A guest is never kept from
// starting because no controller answers, and none that runs is cut off: what cannot be bound is a conflict port, which
// is marked and reported.
type statics struct {
	*shared
	ports *ports
	// ask asks a controller.
	ask func(context.Context, *controllerv1.PortClaim) (*controllerv1.PortAnswer, error)
	// asked has the controller told that what was to be done by an answer to an adapter's claim is done, or has failed;
	// nil where nobody claims.
	asked func(vm, adapter string)
	// changed says that what is reported may be another.
	changed func()
	// unsettled says that ports have to be claimed again; nil where nobody claims.
	unsettled func()
	// absent are the run-time ports that were not claimed since they have no device: no guest runs by them.
	absent []string
	// change makes a change of the desired state.
	change func(edit func()) error
}

// claim finds out whose port is to be connected, and its static port where its port group has such; nil where nobody
// says whose it is. It is called outside of the loop.
func (st *statics) claim(ctx context.Context, q api.Connect, incoming bool) (*state.NIC, error) {
	n := &state.NIC{VM: strings.ToLower(q.VM), Adapter: q.Adapter, Port: q.Name, Switch: q.Switch,
		PortGroup: q.PortGroup}
	if (n.VM == "") != (n.Adapter == "") || n.VM != "" && !spec.ValidUUID(n.VM) {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s: whose port it is is said by the VM's UUID and the "+
			"name of its adapter, both", q.Name))
	}
	var static, runs bool
	var known state.NIC
	err := st.Do(ctx, func() error {
		n.Switch = cmp.Or(n.Switch, st.ports.onlySwitch())
		st.state.TakeUp(n.VM, n.Adapter)
		static = st.static(n.Switch, n.PortGroup)
		if have := st.state.NIC(n.VM, n.Adapter); have != nil {
			known = *have
			have := st.ports.runTime(q.Name)
			runs = have != nil && known.Port == q.Name && have.Device == q.Device
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case n.VM == "" && !static:
		return nil, nil
	case n.VM == "":
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port group %s has static ports: say whose port %s is, by "+
			"the "+
			"VM's UUID and the name of its adapter (--vm-uuid, --adapter), or use a port group with ephemeral ports",
			n.PortGroup, q.Name))
	}
	if known.Switch == n.Switch && known.PortGroup == n.PortGroup {
		n.ID, n.MAC, n.Policy, n.Counters, n.Rival = known.ID, known.MAC, known.Policy, known.Counters, known.Rival
		n.Bound, n.Rivals = known.Bound, known.Rivals
	}
	if !static {
		n.ID, n.Bound = "", false
		return n, nil
	}
	return n, st.bind(ctx, n, q, incoming, runs)
}

// claimed ends what began with a claim: the adapter is connected by then, or is not going to be.
func (st *statics) claimed(n *state.NIC) {
	if n != nil && n.ID != "" && st.asked != nil {
		st.asked(n.VM, n.Adapter)
	}
}

// bind asks a controller for the adapter's static port. runs: its port is connected already, and stays so.
func (st *statics) bind(ctx context.Context, n *state.NIC, q api.Connect, incoming, runs bool) error {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	a, err := st.ask(ctx, &controllerv1.PortClaim{Switch: n.Switch, PortGroup: n.PortGroup, Vm: n.VM,
		Adapter: n.Adapter, Mac: q.MAC, Port: cmp.Or(q.PortID, n.ID), Incoming: incoming})
	switch {
	case err != nil && n.ID != "" && (q.PortID == "" || q.PortID == n.ID): // it was bound here last
		return nil
	case err != nil:
		n.ID, n.Bound = q.PortID, false
		n.Conflict = "it was connected while no controller answered, and its static port was not bound on this host"
		return nil
	case a.GetPort() == nil && a.GetRefused() != "" && !runs:
		return api.NewError(api.Invalid, a.GetRefused())
	}
	answered(n, a)
	if len(a.GetPort().GetPolicy()) > 0 {
		st.awaitSettings(ctx, n.ID)
	}
	return nil
}

// answered puts a controller's answer into what is remembered of an adapter.
func answered(n *state.NIC, a *controllerv1.PortAnswer) {
	n.Conflict = a.GetRefused()
	if p := a.GetPort(); p != nil {
		n.ID, n.MAC = p.GetPort(), p.GetMac()
		n.Bound = a.GetRefused() == ""
	}
}

// static reports whether a port group that controllers hand this host has static ports.
func (st *statics) static(sw, group string) bool {
	if st.ports.slice == nil || (keeper{st.ports}).isKept(sw, group) { // which no controller binds ports of
		return false
	}
	for i := range st.ports.slice.Switches {
		for k := range st.ports.slice.Switches[i].PortGroups {
			g := &st.ports.slice.Switches[i].PortGroups[k]
			if st.ports.slice.Switches[i].Name == sw && g.Name == group {
				return g.HasStaticPorts()
			}
		}
	}
	return false
}

// connected is the part of an edit by which the port of an adapter is connected, nil for a port of nobody.
func (st *statics) connected(port string, n *state.NIC) {
	if st.state.NameIs(port, n); n == nil {
		return
	}
	was := st.state.NIC(n.VM, n.Adapter)
	if was != nil && was.Rival != "" {
		n.Rival, n.Rivals = was.Rival, was.Rivals
	}
	before := ""
	if was != nil {
		before = was.Trouble()
	}
	st.state.PutNIC(*n, abi.MaxPorts)
	st.tell(n, before)
	if n.Conflict != "" && st.unsettled != nil { // claimed again until it is bound: what is in the way may end
		st.unsettled()
	}
}

// tell says in the log and by an event what is wrong with an adapter's binding, where that is new.
func (st *statics) tell(n *state.NIC, before string) {
	now := n.Trouble()
	if now == before {
		return
	}
	e := about("port", plan.PortID{Switch: n.Switch, Name: n.Port})
	e.Kind, e.Text = event.Conflict, fmt.Sprintf("port %s is in conflict: %s", n.Port, now)
	if now == "" {
		e.Text = fmt.Sprintf("port %s is in conflict no more", n.Port)
	}
	st.log.Warn(e.Text, "vm", n.VM, "adapter", n.Adapter)
	st.events.Publish(e)
}

// leaves is the part of an edit by which a run-time port ends: a static port keeps its counters.
func (ps *ports) leaves(p spec.Port) {
	id := plan.PortID{Switch: p.Switch, Name: p.Name}
	base := ps.state.BaseOf(id)
	ps.state.DropGoods(id)
	n := ps.state.NICOf(p.Name)
	if n == nil {
		return
	}
	ps.leaving(plan.PortID{Switch: p.Switch, Name: p.Name})
	if !n.Keeps() {
		ps.state.DropNIC(n.VM, n.Adapter)
		return
	}
	kept := *n
	if r := ps.kernel.CounterReader(); r.Has(id) {
		c, err := r.Read(id)
		if err != nil {
			ps.Complain("read the counters of a port that ends", err)
		}
		kept.Counters = base.With(c)
	}
	ps.state.PutNIC(kept, abi.MaxPorts)
}

// again takes in that a port is connected as it was asked for already.
func (st *statics) again(n *state.NIC) error {
	if n == nil {
		return nil
	}
	if have := st.state.NIC(n.VM, n.Adapter); have != nil && sameNIC(*have, *n) && have.Port == n.Port {
		return nil
	}
	st.connected(n.Port, n)
	return st.ports.save()
}

// warn adds to an answer what is wrong with a binding.
func (st *statics) warn(out *api.Applied, n *state.NIC) {
	if n != nil && n.Trouble() != "" {
		out.Warnings = append(out.Warnings, fmt.Sprintf("port %s is a conflict port: %s", n.Port, n.Trouble()))
	}
}
