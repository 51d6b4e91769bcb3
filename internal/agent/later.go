package agent

import (
	"context"

	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/reach"
	"heddle/internal/spec"
)

// startsWith makes the agent begin with the configuration that was applied last, if the edited file affects the path to
// the host's own addresses and the switch is in the kernel: the file is then put on trial like any change (S81).
func (cg *changer) startsWith(last state.Source) bool {
	if len(cg.state.Held) == 0 || last.Content == "" {
		return false
	}
	cfg, err := spec.Parse(last.File, []byte(last.Content))
	if err != nil {
		return false
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
	cg.log.Info("the edited configuration file concerns the way to this host's own addresses: the one applied last "+
		"counts until the new one has been tried", "file", given.src.File)
	go func() {
		apply := func() error { _, err := cg.apply(given.cfg, given.src, api.Apply{}); return err }
		if err := cg.trials.tried(context.Background(), cg.do, &guard{what: what}, &api.Applied{}, apply); err != nil {
			cg.log.Error("the edited configuration file is not active; the one applied last is", "file", given.src.File,
				"err", err)
		}
	}()
}
