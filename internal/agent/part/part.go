package part

import (
	"errors"
	"fmt"
	"slices"

	"heddle/internal/agent/active"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// Part is a part of the agent. Everything else that the core may ask of it is optional: a hook is a method of one of
// the interfaces below.
type Part interface {
	// Close ends the part and waits for its goroutines; the kernel continues forwarding.
	Close() error
}

// Preparer makes something ready before a plan is activated, in the loop, by the value that is being made.
type Preparer interface {
	Prepare(now *active.Draft)
}

// Wanter asks for something that the reconcile does. What it wants depends on the active value and on the part's own
// document alone: while that is the same, no reconcile is needed.
type Wanter interface {
	Want(now *active.Value) active.Want
}

// Activator is told in the loop when the kernel gets another plan: Activating right before the plan is active, where an
// error refuses it, and Activated right after it is, or after it could not be made active.
type Activator interface {
	Activating(next *plan.Plan) error
	Activated(done bool)
}

// Settler is told in the loop, after every reconcile, what is active, also when nothing changed. It must not block.
type Settler interface {
	Settled(now *active.Value)
}

// Follower is told the same in the words of the protocols on uplinks.
type Follower interface {
	Settled(now uplinks.InForce)
}

// Leaver is told in the loop that a port which a command connected is about to be removed, while the kernel still has
// what belongs to it.
type Leaver interface {
	Leaving(id plan.PortID)
}

// Waiter is told in the loop that ports have begun or ended to wait for their guests, before the reconcile that
// follows.
type Waiter interface {
	PresenceChanged()
}

// Successor is told in the loop, when the reconcile after a change of waits is under way or done, and every second: a
// port may take another one's place.
type Successor interface {
	Succeed()
}

// Taker is told in the loop that a port's device has just been prepared.
type Taker interface {
	Taken(p *plan.Port)
}

// Ticker is called in the loop every second.
type Ticker interface {
	Tick()
}

// order is the order in which hooks of the core's parts are called; features say behind which of them they are. Parts
// are closed in the opposite order.
func order() []string {
	return []string{"captures", "host-routes", "lacp", "lldp", "partners", "spanning-tree", "storms", "beacons",
		"load", "monitors", "domains", "link-states", "loop-search", "path-mtu",
		"flows", "standby", "migration", "arrivals", "membership", "locations", "isolation"}
}

// Table has the parts of an agent, in their order. Only the loop uses it, once it runs, but for Talks, LeftCluster and
// Find, which change nothing.
type Table struct {
	order  []string // nil for that of the core
	list   []named
	faults []error
}

type named struct {
	name string
	at   int
	part Part
}

// Add adds a part, before the loop runs. One without a place of its own in the order is not added: see Faults.
func (t *Table) Add(name string, p Part) {
	at := slices.Index(t.places(), name)
	if at < 0 || slices.ContainsFunc(t.list, func(n named) bool { return n.at == at }) {
		t.faults = append(t.faults, p.Close(), fmt.Errorf("part %s of the agent has no place of its own in the order",
			name))
		return
	}
	i, _ := slices.BinarySearchFunc(t.list, at, func(n named, at int) int { return n.at - at })
	t.list = slices.Insert(t.list, i, named{name, at, p})
}

// Faults says which parts have no place in the order.
func (t *Table) Faults() error { return errors.Join(t.faults...) }

// Names are those of the parts, in their order.
func (t *Table) Names() (names []string) {
	for _, n := range t.list {
		names = append(names, n.name)
	}
	return names
}

// all calls a hook of the parts that have it, in their order.
func all[Hook any](t *Table, call func(Hook)) {
	for _, n := range t.list {
		if h, has := n.part.(Hook); has {
			call(h)
		}
	}
}

// Prepare calls the hooks of that name.
func (t *Table) Prepare(now *active.Draft) { all(t, func(p Preparer) { p.Prepare(now) }) }

// Want is what all parts want together.
func (t *Table) Want(now *active.Value) (sum active.Want) {
	all(t, func(p Wanter) { sum.Add(p.Want(now)) })
	return sum
}

// Activating calls the hooks of that name. Activated is to be called afterwards, also after an error.
func (t *Table) Activating(next *plan.Plan) error {
	var errs []error
	all(t, func(p Activator) { errs = append(errs, p.Activating(next)) })
	return errors.Join(errs...)
}

// Activated calls the hooks of that name.
func (t *Table) Activated(done bool) { all(t, func(p Activator) { p.Activated(done) }) }

// Settled calls the hooks of that name.
func (t *Table) Settled(now *active.Value, inForce uplinks.InForce) {
	for _, n := range t.list {
		switch p := n.part.(type) {
		case Settler:
			p.Settled(now)
		case Follower:
			p.Settled(inForce)
		}
	}
}

// Leaving calls the hooks of that name.
func (t *Table) Leaving(id plan.PortID) { all(t, func(p Leaver) { p.Leaving(id) }) }

// PresenceChanged calls the hooks of that name.
func (t *Table) PresenceChanged() { all(t, func(p Waiter) { p.PresenceChanged() }) }

// Taken calls the hooks of that name.
func (t *Table) Taken(port *plan.Port) { all(t, func(p Taker) { p.Taken(port) }) }

// Succeed calls the hooks of that name.
func (t *Table) Succeed() { all(t, func(p Successor) { p.Succeed() }) }

// Tick calls the hooks of that name.
func (t *Table) Tick() { all(t, func(p Ticker) { p.Tick() }) }

// Close ends all parts.
func (t *Table) Close() error {
	var errs []error
	for _, n := range slices.Backward(t.list) {
		errs = append(errs, n.part.Close())
	}
	t.list = nil
	return errors.Join(errs...)
}
