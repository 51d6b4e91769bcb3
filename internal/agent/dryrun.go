package agent

import (
	"context"
	"slices"

	"heddle/internal/agent/bypass"
	"heddle/internal/agent/changes"
	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/diagnose/advise"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/reach"
	"heddle/internal/observe/undone"
	"heddle/internal/spec"
)

// dryRun returns what applying the file would change, which paths to the host's own addresses that affects, and who
// would be asked.
func (fl *files) dryRun(ctx context.Context, cfg *spec.Config, q api.Apply) (*api.Applied, error) {
	out := &api.Applied{DryRun: true}
	var ask *needsAsking
	var next *ahead
	err := fl.Do(ctx, func() (err error) {
		next, ask, err = fl.changer.dry(cfg, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	next.file = q.File
	out.Foreseen = fl.foreseer.of(ctx, next)
	if ask != nil {
		out.Trial, err = fl.trials.plannedTrial(ctx, ask, "apply "+q.File, q.Window)
	}
	return out, err
}

// dry returns the part of a dry run that the loop computes.
func (cg *changer) dry(cfg *spec.Config, out *api.Applied) (*ahead, *needsAsking, error) {
	if faults := spec.CheckDevices(cfg, cg.lookup); len(faults) > 0 {
		return nil, nil, api.NewError(api.Invalid, faultLines(faults)...)
	}
	out.Notes = append(cfg.Hints(), advise.NeighbourNotes(cfg, cg.heardAt)...)
	out.Warnings = append(spec.MissingDevices(cfg, cg.lookup, hostdev.NamedOtherwise), cfg.Warnings()...)
	next, lines, err := cg.preview(cfg)
	if len(lines) > 0 {
		return nil, nil, api.NewError(api.Invalid, lines...)
	}
	if err != nil {
		return nil, nil, err
	}
	after := next.plan
	out.Warnings = slices.Concat(out.Warnings, cg.ports.macTableWarnings(cfg, after), bypass.Warnings(cg.dev, cfg),
		cg.ports.maintained(cfg))
	out.Effects, out.Kept = changes.Effects(cg.Active().Plan, after), cg.ports.keptBeside(cfg)
	if out.Changes, err = changes.Between(cg.ports.file, cfg); err != nil {
		return nil, nil, err
	}
	risks := reach.Risks(cg.Active().Plan, after, cg.trials.reachHost())
	if len(risks) == 0 {
		return next, nil, nil
	}
	interfaces, err := cg.trials.interfaces(risks)
	return next, &needsAsking{risks, interfaces, cg.trials.ownMACs()}, err
}

// heardAt is what LLDP hears at a device that serves an uplink now.
func (cg *changer) heardAt(device string) (heard []api.Neighbour) {
	if cg.Active().Plan == nil {
		return nil
	}
	for _, sw := range cg.Active().Plan.Switches {
		for _, u := range sw.Uplinks {
			if s, ok := cg.teaming.neighboursOf(u.ID); ok && u.Device == device {
				heard = append(heard, view.Neighbours(s.Neighbours)...)
			}
		}
	}
	return heard
}

// plannedTrial describes the trial that the change would have.
func (tr *trials) plannedTrial(ctx context.Context, n *needsAsking, what string, q api.Window) (*api.Trial, error) {
	t := &api.Trial{State: api.TrialPlanned, Change: what, AtRisk: n.risks, Asked: []reach.Ask{}}
	asks, err := reach.Before(ctx, tr.records.net, n.interfaces, func(mac [6]byte) bool { return n.own[mac] })
	if err != nil {
		return nil, err
	}
	t.Asked = append(t.Asked, asks...)
	if len(asks) == 0 && leadsOutside(n.risks) && q.ConfirmWithin == 0 {
		t.Reason, t.ReasonCode = nobodyToAsk(n.risks), undone.NobodyToAsk
	}
	return t, nil
}
