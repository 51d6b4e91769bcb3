package agent

import (
	"cmp"
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/api"
)

// describeTime is how long the preparation of a port waits for what a controller knows of it. A guest's move does not
// fail because no controller answers.
const describeTime = cluster.BootTime + time.Second

// describe asks a controller what a port has where its guest runs.
type describe func(context.Context, *controllerv1.DescribeArrivalRequest) (*controllerv1.DescribeArrivalResponse, error)

// arrival is what a port has where its guest runs, and what it finds here.
type arrival struct {
	api.Incoming
	on string // the switch here
	// lacks says why the port would be less protected here; "" for nothing.
	lacks string
	// held is how many flows the switch's table has here, most how many it can have; 0 for no table.
	held, most int
}

// checkBerth refuses a port that this host can't serve as well as the one where its guest runs.
func (c *commands) checkBerth(ctx context.Context, q api.Incoming) error {
	if q.Force {
		return nil
	}
	a := arrival{Incoming: q}
	err := c.Do(ctx, func() error { a.on = cmp.Or(q.Switch, c.ports.onlySwitch()); return nil })
	if err != nil {
		return err
	}
	c.described(ctx, &a)
	if a.Flows > 0 {
		if err := c.flowRoom(ctx, &a); err != nil {
			return err
		}
	}
	return c.Do(ctx, func() error { return c.berth().refuses(&a) })
}

// described completes what is known of a port that a hook prepares: the host where the guest runs knows more than the
// hook. A caller that knows it, such as a controller, says so.
func (c *commands) described(ctx context.Context, a *arrival) {
	if c.describe == nil || a.VM == "" || a.NeedsUplink || a.MACs > 0 || a.Flows > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	r, err := c.describe(ctx, &controllerv1.DescribeArrivalRequest{Vm: a.VM, Adapter: a.Adapter, Switch: a.on,
		PortGroup: a.PortGroup})
	if err != nil {
		c.log.Debug("no controller says what a port has where its guest runs", "port", a.Name, "err", err)
		return
	}
	a.NeedsUplink, a.MACs, a.Flows, a.lacks = r.GetUplink(), int(r.GetMacs()), int(r.GetFlows()), r.GetLacks()
}

// flowRoom finds how full the switch's table of flows is here.
func (c *commands) flowRoom(ctx context.Context, a *arrival) error {
	if c.flowStatus == nil {
		return nil
	}
	s, err := c.flowStatus(ctx)
	if err != nil {
		return err
	}
	for _, sw := range s.Switches {
		if sw.Switch == a.on {
			a.held, a.most = sw.Flows, sw.MaxFlows
		}
	}
	return nil
}
