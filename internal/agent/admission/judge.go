package admission

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/active"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/view"
	"heddle/internal/api"
)

// describeTime is how long the preparation of a port waits for what a controller knows of it. A guest's move does not
// fail because no controller answers.
const describeTime = cluster.BootTime + time.Second

// Host is what the judge needs of its host.
type Host struct {
	active.Reader
	Loop *loop.Loop
	Log  *slog.Logger
	// Source has the ports and uplinks as they are shown. It is called in the loop, as are MACTable, MACsHeld and
	// OnlySwitch.
	Source func() view.Source
	// MACTable is how many learned MACs the host can hold, MACsHeld how many it holds.
	MACTable func() int
	MACsHeld func() (int, error)
	// OnlySwitch is the switch of a port that names none.
	OnlySwitch func() string
	// Describe asks a controller what a port has where its guest runs.
	Describe func(context.Context, *controllerv1.DescribeArrivalRequest) (*controllerv1.DescribeArrivalResponse, error)
	// Flows is how full the tables of flows are.
	Flows func(context.Context) (*api.FlowStatus, error)
}

// Judge decides whether this host can serve guests that are to arrive.
type Judge struct{ host Host }

// New returns a judge.
func New(h Host) *Judge { return &Judge{h} }

// berth is what is known now. It is called in the loop.
func (j *Judge) berth() berth {
	return berth{cfg: j.host.Active().Config, src: j.host.Source(), table: j.host.MACTable(), held: j.host.MACsHeld}
}

// RefusesGuest says by an error what the host lacks for a guest beside its ports; nil for nothing. It is called in the
// loop.
func (j *Judge) RefusesGuest(q api.Expect) error { return j.berth().refusesGuest(q) }

// arrival is what a port has where its guest runs, and what it finds here.
type arrival struct {
	api.Incoming
	on string // the switch here
	// lacks says why the port would be less protected here; "" for nothing.
	lacks string
	// held is how many flows the switch's table has here, most how many it can have; 0 for no table.
	held, most int
}

// Check refuses a port that this host can't serve as well as the one where its guest runs.
func (j *Judge) Check(ctx context.Context, q api.Incoming) error {
	if q.Force {
		return nil
	}
	a := arrival{Incoming: q}
	err := j.host.Loop.Do(ctx, func() error { a.on = cmp.Or(q.Switch, j.host.OnlySwitch()); return nil })
	if err != nil {
		return err
	}
	j.described(ctx, &a)
	if a.Flows > 0 {
		if err := j.flowRoom(ctx, &a); err != nil {
			return err
		}
	}
	return j.host.Loop.Do(ctx, func() error { return j.berth().refuses(&a) })
}

// described completes what is known of a port that a hook prepares: the host where the guest runs knows more than the
// hook. A caller that knows it, such as a controller, says so.
func (j *Judge) described(ctx context.Context, a *arrival) {
	if a.VM == "" || a.NeedsUplink || a.MACs > 0 || a.Flows > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	r, err := j.host.Describe(ctx, &controllerv1.DescribeArrivalRequest{Vm: a.VM, Adapter: a.Adapter, Switch: a.on,
		PortGroup: a.PortGroup})
	if err != nil {
		j.host.Log.Debug("no controller says what a port has where its guest runs", "port", a.Name, "err", err)
		return
	}
	a.NeedsUplink, a.MACs, a.Flows, a.lacks = r.GetUplink(), int(r.GetMacs()), int(r.GetFlows()), r.GetLacks()
}

// flowRoom finds how full the switch's table of flows is here.
func (j *Judge) flowRoom(ctx context.Context, a *arrival) error {
	s, err := j.host.Flows(ctx)
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
