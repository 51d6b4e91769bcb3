package active

import (
	"sync/atomic"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// Value is what is active since the last reconcile. Nobody changes it.
type Value struct {
	// Generation grows with each value, so that a reader knows whether it has seen this one.
	Generation uint64
	// Config is the configuration with what commands made; Plan is its plan. Both are nil before the first reconcile.
	Config *spec.Config
	Plan   *plan.Plan
	// Applied is what the kernel has: nil before anything is active. Its plan is another one than Plan while that could
	// not be activated.
	Applied *binding.Desired
	// Flip is when Applied became active.
	Flip dataplane.Instant
	// Problems are what keeps ports and uplinks from serving.
	Problems map[plan.PortID]problem.Problem
}

// InKernel returns the plan that the kernel has; before anything is active, the one that it is to have.
func (v *Value) InKernel() *plan.Plan {
	if v.Applied == nil {
		return v.Plan
	}
	return v.Applied.Plan
}

// Members returns the IDs of the uplinks and ports that the kernel has.
func (v *Value) Members() (ids []plan.PortID) {
	for _, sw := range v.Applied.Plan.Switches {
		for _, u := range sw.Uplinks {
			ids = append(ids, u.ID)
		}
		for _, p := range sw.Ports {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Current holds the value that is active. The core publishes; the parts read by a Reader.
type Current struct {
	value atomic.Pointer[Value]
}

// Reader reads what is active, from any goroutine.
type Reader struct{ of *Current }

// Active returns what is active; never nil.
func (r Reader) Active() *Value { return r.of.Active() }

// Reader returns a reader of what is published here.
func (c *Current) Reader() Reader { return Reader{c} }

// Active returns what is active; never nil.
func (c *Current) Active() *Value {
	if v := c.value.Load(); v != nil {
		return v
	}
	return &Value{}
}

// Settled publishes what a reconcile made; what the kernel has is as before.
func (c *Current) Settled(d *Draft) {
	next := *c.Active()
	next.Config, next.Plan, next.Problems = d.Config, d.Plan, d.Problems()
	c.publish(next)
}

// Activated publishes what the kernel has since an instant.
func (c *Current) Activated(applied *binding.Desired, at dataplane.Instant) {
	next := *c.Active()
	next.Applied, next.Flip = applied, at
	c.publish(next)
}

func (c *Current) publish(next Value) {
	next.Generation++
	c.value.Store(&next)
}
