package agent

import (
	"context"

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

// applyLater applies the edited file once the loop runs.
func (cg *changer) applyLater(given *givenConfig) {
	what := "start with " + given.src.File
	cg.log.Info("the edited configuration file concerns the way to this host's own addresses, or another change is on "+
		"trial: the one applied last counts until the new one has been tried", "file", given.src.File)
	go func() {
		apply := func() error { _, err := cg.apply(given.cfg, given.src, api.Apply{}); return err }
		if err := cg.trials.tried(context.Background(), cg.do, &guard{what: what}, &api.Applied{}, apply); err != nil {
			cg.log.Error("the edited configuration file is not active; the one applied last is", "file", given.src.File,
				"err", err)
		}
	}()
}
