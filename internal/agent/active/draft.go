package active

import (
	"maps"
	"net/netip"
	"reflect"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Bound is a port or uplink with the device on the switch's side.
type Bound struct {
	ID     plan.PortID
	Device hostdev.Device
	Port   *plan.Port // nil for an uplink
	Uplink *plan.Uplink
}

// Want is what parts ask of a reconcile. Two that are equal make the same of the kernel.
type Want struct {
	// Blocked are the ports that must not forward, with the reason.
	Blocked map[plan.PortID]problem.Problem
	// Down are the ports whose owner's link is down although that of their device is not, with the reason.
	Down map[plan.PortID]problem.Problem
	// Lengths are how long packets to endpoints of other hosts may be, where that is known.
	Lengths map[netip.Addr]int
}

// Equal reports whether both ask for the same.
func (w Want) Equal(o Want) bool {
	same := func(a, b problem.Problem) bool { return reflect.DeepEqual(a, b) }
	return maps.EqualFunc(w.Blocked, o.Blocked, same) && maps.EqualFunc(w.Down, o.Down, same) &&
		maps.Equal(w.Lengths, o.Lengths)
}

// Add adds what another part asks for.
func (w *Want) Add(o Want) {
	w.Blocked, w.Down = joined(w.Blocked, o.Blocked), joined(w.Down, o.Down)
	w.Lengths = joined(w.Lengths, o.Lengths)
}

func joined[K comparable, V any](a, b map[K]V) map[K]V {
	if len(a) == 0 {
		return b
	}
	a = maps.Clone(a)
	maps.Copy(a, b)
	return a
}

// Draft is the value that a reconcile is making: whoever takes part in the reconcile is handed it, and adds to it.
type Draft struct {
	Config *spec.Config
	Plan   *plan.Plan
	// Bounds are the ports and uplinks that have a device, in the order of the plan.
	Bounds []Bound
	// Want is what the parts ask for.
	Want Want

	problems map[plan.PortID]problem.Problem
}

// NewDraft begins a value for a configuration and its plan.
func NewDraft(cfg *spec.Config, p *plan.Plan) *Draft {
	return &Draft{Config: cfg, Plan: p, problems: map[plan.PortID]problem.Problem{}}
}

// Report says what keeps a port or uplink from serving, in place of what was said of it before.
func (d *Draft) Report(id plan.PortID, why problem.Problem) { d.problems[id] = why }

// Reported reports whether something is said of a port or uplink already.
func (d *Draft) Reported(id plan.PortID) bool { return !d.problems[id].None() }

// TakeDown has the link of a port down that a part wants down.
func (d *Draft) TakeDown(id plan.PortID, f *plan.Fact) {
	if why := d.Want.Down[id]; !why.None() && f.Up {
		f.Up = false
		d.Report(id, why)
	}
}

// Problems returns what was reported so far.
func (d *Draft) Problems() map[plan.PortID]problem.Problem { return maps.Clone(d.problems) }
