package agent

import (
	"context"

	"heddle/internal/agent/changes"
	"heddle/internal/api"
	"heddle/internal/host/reach"
	"heddle/internal/spec"
)

// dryRun says what applying the file would change, which ways to the host's own addresses that concerns, and who would be asked.
func (a *Agent) dryRun(ctx context.Context, cfg *spec.Config, q api.Apply) (*api.Applied, error) {
	out := &api.Applied{DryRun: true}
	var ask *needsAsking
	err := a.do(ctx, func() (err error) {
		ask, err = a.dry(cfg, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	if ask != nil {
		out.Trial, err = a.plannedTrial(ctx, ask, q)
	}
	return out, err
}

// dry is what of a dry run the loop answers.
func (a *Agent) dry(cfg *spec.Config, out *api.Applied) (*needsAsking, error) {
	if faults := spec.CheckDevices(cfg, a.lookup); len(faults) > 0 {
		return nil, api.NewError(api.Invalid, faultLines(faults)...)
	}
	out.Warnings = append(spec.MissingDevices(cfg, a.lookup), cfg.Warnings()...)
	after, lines, err := a.preview(cfg)
	if len(lines) > 0 {
		return nil, api.NewError(api.Invalid, lines...)
	}
	if err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, a.macTableWarnings(cfg, after)...)
	out.Effects = changes.Effects(a.plan, after)
	if out.Changes, err = changes.Between(a.file, cfg); err != nil {
		return nil, err
	}
	risks := reach.Risks(a.plan, after, a.reachHost())
	if len(risks) == 0 {
		return nil, nil
	}
	interfaces, err := a.interfaces(risks)
	return &needsAsking{risks, interfaces, a.ownMACs()}, err
}

// plannedTrial is how the change would be tried.
func (a *Agent) plannedTrial(ctx context.Context, n *needsAsking, q api.Apply) (*api.Trial, error) {
	t := &api.Trial{State: api.TrialPlanned, Change: "apply " + q.File, AtRisk: n.risks, Asked: []reach.Ask{}}
	asks, err := reach.Before(ctx, a.adoptions.net, n.interfaces, func(mac [6]byte) bool { return n.own[mac] })
	if err != nil {
		return nil, err
	}
	t.Asked = append(t.Asked, asks...)
	if len(asks) == 0 && leadsOutside(n.risks) && q.ConfirmWithin == 0 {
		t.Reason = nobodyToAsk(n.risks)
	}
	return t, nil
}
