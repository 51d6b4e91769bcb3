package agent

import (
	"context"
	"os"
	"time"

	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/uplinks/linkproto"
)

// State is everything in force, for the command line.
func (a *Agent) State(ctx context.Context) (out *api.State, err error) {
	err = a.do(ctx, func() error {
		out = a.view()
		return nil
	})
	return out, err
}

func (a *Agent) view() *api.State { return a.source().State() }

// source is what the host is shown from.
func (a *Agent) source() view.Source {
	announcing := 0
	if a.teaming.announcer != nil {
		announcing = a.teaming.announcer.Waiting()
	}
	return view.Source{
		Agent: api.AgentInfo{Name: a.name, Version: a.version, API: api.Version, PID: os.Getpid(), Started: a.started,
			Config: a.state.Config.File, Warnings: append(append([]string{}, a.warnings...), a.misfits...), Announcing: announcing,
			Place: a.state.Place, Lookalikes: lookalikes(a.dev, a.state, a.name)},
		Config: a.cfg, Plan: a.plan, Applied: a.applied, Remembered: a.state, Problems: a.problems, Unattached: a.whyNotAttached, Before: a.before, Device: a.deviceOf,
		Links: view.Links{Out: a.verdicts.Why, LAG: a.lags.Status, LLDP: a.neighboursOf}, Now: time.Now(),
	}
}

// deviceOf says what is wrong with an uplink's device, and what was set on it.
func (a *Agent) deviceOf(uplink plan.PortID) (warnings, changed []string) {
	if h := a.state.Of(uplink); h != nil {
		changed = changedOn(h)
	}
	return a.hardware[uplink].warnings, changed
}

func (a *Agent) neighboursOf(uplink plan.PortID) (linkproto.LLDPStatus, bool) {
	if a.neighbours == nil {
		return linkproto.LLDPStatus{}, false
	}
	return a.neighbours.Status(uplink)
}

// MACs are the ports' own addresses and the learned ones.
func (a *Agent) MACs(ctx context.Context) (out []api.MAC, err error) {
	err = a.do(ctx, func() error {
		learned, err := a.kernel.MACs()
		if err != nil {
			return err
		}
		out = view.MACs(a.plan, a.applied.Facts, learned)
		return nil
	})
	return out, err
}
