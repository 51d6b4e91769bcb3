package agent

import (
	"errors"
	"fmt"

	"heddle/internal/agent/definition"
	"heddle/internal/agent/held"
	"heddle/internal/agent/loopsearch"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// changer changes the desired state, all or nothing.
type changer struct {
	*shared
	definition *definition.Part
	ports      *ports
	records    *records
	effect     *effect
	settler    *settler
	attaching  *attaching
	chains     *chains
	loops      *loopsearch.Search
	reconciler *reconciler
	trials     *trials
	teaming    *teaming
	restoring  *held.Restoring
}

// change makes one change of the agent's desired state, all or nothing: edit changes file, state.Config, state.Ports or
// state.Overrides. If the result is not valid, or cannot be activated or saved, everything stays as before.
func (cg *changer) change(edit func()) error {
	before, stale := cg.ports.intent(), cg.ports.stale
	cfg, faults, err := cg.edited(edit, before)
	if err != nil {
		cg.ports.restore(before)
		return err
	}
	cg.ports.cfg, cg.ports.stale = cfg, true
	cg.ports.forgetOverrides()
	if err := cg.trials.guardChange(before); err != nil {
		cg.ports.restore(before)
		cg.ports.stale = stale
		return err
	}
	err = cg.effect.forCommand(func() error {
		err := cg.reconciler.reconcile()
		if err != nil {
			// A device may have disappeared in between: refresh before giving up.
			if errRefresh := cg.dev.Refresh(); errRefresh == nil {
				err = cg.reconciler.reconcile()
			}
		}
		return err
	})
	if err == nil && cg.settler.late != nil {
		cg.settler.retry = true
		cg.Complain("finish the work that the active plan leaves", cg.settler.late)
	}
	if err != nil {
		cg.ports.restore(before)
		cg.ports.stale = true
		if back := cg.reconciler.reconcile(); back != nil {
			cg.settler.retry = true
			err = errors.Join(err, fmt.Errorf("go back to the configuration before: %w", back))
		}
		return errors.Join(err, cg.trials.dropChange())
	}
	cg.ports.keepMisfits(faults)
	return nil
}

// edited makes an edit and returns the configuration that it makes, with its faults that were there before. On an error
// the caller takes the edit back.
func (cg *changer) edited(edit func(), before intent) (*spec.Config, spec.Faults, error) {
	edit()
	if err := cg.definition.Keep(before.definition, before.uses()); err != nil {
		return nil, nil, err
	}
	if _, clash := cg.ports.whole(cg.ports.file); len(clash) > 0 {
		return nil, nil, api.NewError(api.Invalid, clashLines(clash)...)
	}
	cfg, faults := cg.ports.layers().merge()
	lines, missing := cg.ports.newFaults(faults, before, cg.ports.file)
	kind := map[bool]api.ErrorKind{true: api.NotFound, false: api.Invalid}[missing]
	if len(lines) == 0 {
		lines, kind = cg.loops.Closes(cfg), api.Invalid
	}
	if len(lines) > 0 {
		return nil, nil, api.NewError(kind, lines...)
	}
	return cfg, faults, nil
}

// rehearse makes the plan of an edit and compiles it, in memory: the error says why the edit can't be made. Nothing of
// it is in force, and everything is as before.
func (cg *changer) rehearse(edit func()) error {
	before := cg.ports.intent()
	defer cg.ports.restore(before)
	cfg, _, err := cg.edited(edit, before)
	if err == nil {
		_, err = cg.ports.resolve(cfg)
	}
	return err
}

// ahead is a configuration that is not active, and the plan that it would make.
type ahead struct {
	cfg  *spec.Config
	plan *plan.Plan
	// file is where it comes from.
	file string
}

// preview returns what a configuration file would make, and its faults.
func (cg *changer) preview(file *spec.Config) (*ahead, []string, error) {
	whole, clash := cg.ports.whole(file)
	if len(clash) > 0 {
		return nil, clashLines(clash), nil
	}
	l := cg.ports.layers()
	l.file, l.ports = whole, cg.records.portsBeside(file)
	cfg, faults := l.merge()
	if lines, _ := cg.ports.newFaults(faults, cg.ports.intent(), file); len(lines) > 0 {
		return nil, lines, nil
	}
	if lines := cg.loops.Closes(cfg); len(lines) > 0 {
		return nil, lines, nil
	}
	p, err := cg.ports.resolve(cfg)
	return &ahead{cfg: cfg, plan: p}, nil, err
}

// count returns a number with its noun: "1 change", "3 changes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
