package agent

import (
	"context"
	"fmt"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/reach"
	"heddle/internal/spec"
)

// startsWith makes the agent begin with the configuration that was applied last, if another file is on trial still or
// the edited one affects the path to the host's own addresses and the switch is in the kernel: the file is then put on
// trial like any change (S81), after what is on trial is kept or taken back.
func (cg *changer) startsWith(last state.Source) bool {
	trial := cg.trials.records.journal.Change
	tried := trial != nil && trial.File != nil
	if last.Content == "" || len(cg.state.Held) == 0 && !tried {
		return false
	}
	cfg, err := spec.Parse(last.File, []byte(last.Content))
	if err != nil {
		return false
	}
	if tried {
		cg.ports.file, cg.state.Config = cfg, last
		return true
	}
	before, err := cg.ports.planWith(cfg)
	if err != nil {
		return false
	}
	after, err := cg.ports.planWith(cg.ports.file)
	if err != nil || len(reach.Risks(before, after, cg.trials.reachHost())) == 0 {
		return false
	}
	cg.ports.file, cg.state.Config = cfg, last
	return true
}

// applyLater applies the edited file once the loop runs and the change that is on trial, if any, is decided. Until then
// status says that the file is not read yet, and afterwards why, if it could not be applied.
func (cg *changer) applyLater(given *givenConfig) {
	file := given.src.File
	cg.log.Info("the edited configuration file concerns the way to this host's own addresses, or another change is on "+
		"trial: the one applied last counts until the new one has been tried", "file", file)
	cg.ports.unused = append(cg.ports.unused, fmt.Sprintf("the configuration file %s was edited and is not read yet, "+
		"what was applied last counts: it concerns the way to this host's own addresses, or another change is on "+
		"trial (heddle events): it is read once that is decided", file))
	go func() {
		err := cg.applyDecided(context.Background(), given)
		if err == nil {
			return
		}
		cg.log.Error("the edited configuration file is not active; the one applied last is", "file", file, "err", err)
		err = cg.Do(context.Background(), func() error {
			given.unusable = err
			cg.ports.unused = given.unused()
			return nil
		})
		if err != nil { // the agent ends, and the next one reads the file
			cg.log.Info("status does not say so any more", "err", err)
		}
	}()
}

// applyDecided applies the edited file after the trial, unless somebody has applied a file meanwhile, which is newer.
func (cg *changer) applyDecided(ctx context.Context, given *givenConfig) error {
	if err := cg.trials.awaitFree(ctx); err != nil {
		return err
	}
	apply := func() error {
		if cg.state.Config.Seen == given.src.Seen {
			return nil
		}
		_, err := cg.apply(given.cfg, given.src, api.Apply{})
		return err
	}
	g := &guard{what: "start with " + given.src.File}
	return cg.trials.tried(ctx, cg.Do, g, &api.Applied{}, apply)
}

// awaitFree waits until no change is on trial, whoever decides it. Commands do not wait for an operator.
func (tr *trials) awaitFree(ctx context.Context) error {
	for {
		var open *beingTried
		err := tr.Do(ctx, func() error {
			if tr.records.journal.Change != nil {
				open = &beingTried{tr.decided}
			}
			return nil
		})
		if err != nil || open == nil {
			return err
		}
		if err := tr.awaitOther(ctx, open); err != nil {
			return err
		}
	}
}
