package staticports

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// claimTime is how long the start of a guest waits for a controller: that of a host that boots may be looking for one.
const claimTime = cluster.BootTime + time.Second

// Document is what the agent remembers of adapters, as far as it is this part's: state.State has it. Its methods are
// those of that name.
type Document interface {
	NIC(vm, adapter string) *state.NIC
	Connected(*state.NIC) bool
	PutNIC(n state.NIC, most int)
	DropNIC(vm, adapter string)
	NameIs(port string, of *state.NIC)
	GiveUp(g state.GivenUp, most int)
	TakeUp(vm, adapter string)
	NotGivenUp(now time.Time) []state.GivenUp
	GaveUp(vm, adapter string, now time.Time)
}

// Host is what the part needs of its host. Its functions are called in the loop.
type Host struct {
	Loop     *loop.Loop
	Log      *slog.Logger
	Events   *event.Bus
	Complain func(what string, err error)
	Document Document
	// Adapters are those that the document has. The list is replaced and not changed in place.
	Adapters *[]state.NIC
	// Save writes the document to disk, Change makes one change of the desired state.
	Save   func() error
	Change func(edit func()) error
	// Static reports whether a port group that controllers hand this host has static ports, Kept whether the host keeps
	// it beside their definition.
	Static, Kept func(sw, group string) bool
	// OnlySwitch is the switch of a port that names none.
	OnlySwitch func() string
	// Port is a port connected by command, nil for none.
	Port func(name string) *spec.Port
	// Present reports whether such a port has a device.
	Present func(port string) bool
	// Waits reports whether the guest of a port runs elsewhere.
	Waits func(plan.PortID) bool
	// Settings reports whether the definition sets something for a static port, and has a channel that is closed when
	// another definition is active. AnySettings reports whether it sets something for any.
	Settings    func(id string) (has bool, another <-chan struct{})
	AnySettings func() bool
}

// Part has the adapters of VMs and the static ports that controllers bind to them. Only the agent's loop uses it,
// unless a method takes a context.
type Part struct {
	host        Host
	controllers Controllers
	// absent are the run-time ports that were not claimed since they have no device: no guest runs by them.
	absent []string
}

// New returns the part.
func New(h Host) *Part { return &Part{host: h} }

// Ask says who answers claims. It is called before the first one.
func (st *Part) Ask(c Controllers) { st.controllers = c }

// Controllers is the connection to the controllers as static ports need it.
type Controllers interface {
	// Claim asks a controller for a static port.
	Claim(context.Context, *controllerv1.PortClaim) (*controllerv1.PortAnswer, error)
	// Ended tells the controller that what was to be done by an answer to an adapter's claim is done, or has failed.
	Ended(vm, adapter string)
	// Settle has the ports claimed that are connected and not bound.
	Settle()
	// Changed says that what is reported may be another.
	Changed()
}

// Claim finds out whose port is to be connected, and its static port where its port group has such; nil where nobody
// says whose it is. It is called outside of the loop.
func (st *Part) Claim(ctx context.Context, q api.Connect, incoming bool) (*state.NIC, error) {
	n := &state.NIC{VM: strings.ToLower(q.VM), Adapter: q.Adapter, Port: q.Name, Switch: q.Switch,
		PortGroup: q.PortGroup}
	if (n.VM == "") != (n.Adapter == "") || n.VM != "" && !spec.ValidUUID(n.VM) {
		return nil, api.NewError(api.Invalid, fmt.Sprintf("port %s: whose port it is is said by the VM's UUID and the "+
			"name of its adapter, both", q.Name))
	}
	var static, runs bool
	var known state.NIC
	err := st.host.Loop.Do(ctx, func() error {
		n.Switch = cmp.Or(n.Switch, st.host.OnlySwitch())
		st.host.Document.TakeUp(n.VM, n.Adapter)
		static = st.host.Static(n.Switch, n.PortGroup)
		if have := st.host.Document.NIC(n.VM, n.Adapter); have != nil {
			known = *have
			have := st.host.Port(q.Name)
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

// Claimed ends what began with a claim: the adapter is connected by then, or is not going to be.
func (st *Part) Claimed(n *state.NIC) {
	if n != nil && n.ID != "" {
		st.controllers.Ended(n.VM, n.Adapter)
	}
}

// bind asks a controller for the adapter's static port. runs: its port is connected already, and stays so.
func (st *Part) bind(ctx context.Context, n *state.NIC, q api.Connect, incoming, runs bool) error {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	a, err := st.controllers.Claim(ctx, &controllerv1.PortClaim{Switch: n.Switch, PortGroup: n.PortGroup, Vm: n.VM,
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

// Connected is the part of an edit by which the port of an adapter is connected, nil for a port of nobody.
func (st *Part) Connected(port string, n *state.NIC) {
	if st.host.Document.NameIs(port, n); n == nil {
		return
	}
	was := st.host.Document.NIC(n.VM, n.Adapter)
	if was != nil && was.Rival != "" {
		n.Rival, n.Rivals = was.Rival, was.Rivals
	}
	before := ""
	if was != nil {
		before = was.Trouble()
	}
	st.host.Document.PutNIC(*n, abi.MaxPorts)
	st.tell(n, before)
	if n.Conflict != "" { // claimed again until it is bound: what is in the way may end
		st.controllers.Settle()
	}
}

// tell says in the log and by an event what is wrong with an adapter's binding, where that is new.
func (st *Part) tell(n *state.NIC, before string) {
	now := n.Trouble()
	if now == before {
		return
	}
	e := event.Event{Kind: event.Conflict, Switch: n.Switch, Port: n.Port}
	e.Text = fmt.Sprintf("port %s is in conflict: %s", n.Port, now)
	if now == "" {
		e.Text = fmt.Sprintf("port %s is in conflict no more", n.Port)
	}
	st.host.Log.Warn(e.Text, "vm", n.VM, "adapter", n.Adapter)
	st.host.Events.Publish(e)
}

// Again takes in that a port is connected as it was asked for already.
func (st *Part) Again(n *state.NIC) error {
	if n == nil {
		return nil
	}
	if have := st.host.Document.NIC(n.VM, n.Adapter); have != nil && sameNIC(*have, *n) && have.Port == n.Port {
		return nil
	}
	st.Connected(n.Port, n)
	return st.host.Save()
}

// Warn adds to an answer what is wrong with a binding.
func (st *Part) Warn(out *api.Applied, n *state.NIC) {
	if n != nil && n.Trouble() != "" {
		out.Warnings = append(out.Warnings, fmt.Sprintf("port %s is a conflict port: %s", n.Port, n.Trouble()))
	}
}

// awaitSettings returns when what the definition sets for a static port is active, so that its guest never runs without
// it; or when ctx ends, since no guest is kept from starting.
func (st *Part) awaitSettings(ctx context.Context, id string) {
	for {
		var has bool
		var another <-chan struct{}
		if err := st.host.Loop.Do(ctx, func() error {
			has, another = st.host.Settings(id)
			return nil
		}); err != nil || has {
			return
		}
		select {
		case <-another:
		case <-ctx.Done():
			st.host.Log.Warn("a guest starts before the settings of its static port are active", "port", id)
			return
		}
	}
}
