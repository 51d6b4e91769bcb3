package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"heddle/internal/agent/changes"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// slicing activates what a controller hands the host.
type slicing struct {
	*shared
	definition *definition.Part
	ports      *ports
	effect     *effect
	attaching  *attaching
	trials     *trials
	changer    *changer
	// refused is the slice that was handed over last and is not active, beside what the host had then; nil for none.
	refused *state.Slice
	beside  intent
	// prepared is the version that hosts are about to activate together; nil for none.
	prepared *prepared
}

// worthAnother reports, once, that a slice that was refused may be active now: something else is asked for of the host
// since, such as a port that was in its way and is gone.
func (sl *slicing) worthAnother() bool {
	if sl.refused == nil {
		return false
	}
	now := sl.ports.intent()
	if now.asksAs(sl.beside) {
		return false
	}
	sl.beside = now
	return true
}

// asksAs reports whether the same is asked for of the host itself.
func (i intent) asksAs(o intent) bool {
	return i.file == o.file && spec.SamePorts(i.ports, o.ports) && reflect.DeepEqual(i.overrides, o.overrides)
}

// Take activates another version of the controller's definition, all or nothing. It returns when the version is active
// in the kernel, or with the reasons why the one before still is. A change that concerns the way to the host's own
// addresses goes back later where no controller is reached any more (S81).
func (sl *slicing) Take(ctx context.Context, next *state.Slice) (problems []string, err error) {
	var before string
	if err := sl.Do(ctx, func() error {
		next = next.Noting(sl.definition.Given())
		before = triedBefore(next, sl.definition.Reverted())
		return nil
	}); err != nil {
		return nil, err
	}
	if before != "" {
		return []string{before}, nil
	}
	h, err := sl.read(ctx, next)
	g := &guard{what: fmt.Sprintf("revision %d of the controller's definition", next.Revision), controllers: true}
	if err == nil {
		err = sl.awaitLead(ctx, next)
	}
	if err == nil {
		err = sl.trials.tried(ctx, sl.attaching.doAttached, g, &api.Applied{}, func() error {
			if sl.outdated(next) {
				return nil
			}
			if sl.effect.notBefore = next.NotBefore; next.NotBefore != 0 {
				defer hurry()()
				defer func() { sl.effect.notBefore = 0 }()
			}
			return sl.apply(next, h, g.what)
		})
	}
	if problems, err = sl.problemsOf(ctx, err); err != nil {
		return nil, err
	}
	return problems, sl.Do(ctx, func() error {
		sl.prepared = nil
		if sl.refused = nil; len(problems) > 0 {
			sl.refused, sl.beside = next, sl.ports.intent()
			return nil
		}
		noted := next.Together != "" && sl.definition.Given() == next
		if noted {
			sl.definition.Note(next.Noted(sl.Active().Flip.After))
		}
		over := sl.definition.Reverted() != nil && g.change == nil // a trial says what becomes of it
		if over {
			sl.definition.Stay()
		}
		if noted || over {
			return sl.ports.save()
		}
		return nil
	})
}

// problemsOf parts the reasons why a version can't be active from errors that pass or end the agent.
func (sl *slicing) problemsOf(ctx context.Context, err error) (problems []string, _ error) {
	var faults spec.Faults
	var refused *api.Error
	switch {
	case errors.As(err, &faults):
		return faultLines(faults), nil
	case errors.As(err, &refused):
		return refused.Lines, nil
	case err != nil && ctx.Err() == nil && !sl.Ends():
		return nil, &cluster.MayPass{Cause: err}
	}
	return nil, err
}

// read reads a slice beside the loop, with what the host keeps beside it.
func (sl *slicing) read(ctx context.Context, next *state.Slice) (*definition.Handed, error) {
	var before *spec.Config
	var kept []slice.Object
	if err := sl.Do(ctx, func() error {
		kept, before = sl.definition.Beside(next)
		return nil
	}); err != nil {
		return nil, err
	}
	return definition.Read(next, kept, before)
}

func (sl *slicing) apply(next *state.Slice, h *definition.Handed, what string) error {
	cfg, before := h.Config, sl.ports.intent()
	if faults := spec.CheckDevices(cfg, sl.lookup); len(faults) > 0 {
		return api.NewError(api.Invalid, faultLines(faults)...)
	}
	was := sl.definition.Config()
	if was == nil {
		was = &spec.Config{}
	}
	changed, err := changes.Between(was, cfg)
	if err != nil {
		return err
	}
	same, err := sl.definition.SameSettings(next)
	if err != nil {
		return err
	}
	if len(changed) == 0 && same && sl.definition.Given() != nil { // nothing that concerns this host
		sl.definition.Renew(h, next)
		if err := sl.definition.Keep(before.definition, before.uses()); err != nil {
			sl.ports.restore(before)
			return err
		}
		if err := sl.ports.save(); err != nil { // a version that is not on disk is not the host's
			sl.ports.restore(before)
			return err
		}
		return nil
	}
	if err := sl.changer.change(func() { sl.definition.Take(h, next) }); err != nil {
		return err
	}
	sl.definition.Activated()
	sl.ports.warnings = sl.ports.declaredWarnings()
	sl.log.Info("the controller's definition is active", "revision", next.Revision, "epoch", next.Epoch, "changes",
		len(changed))
	if next.NotBefore != 0 {
		sl.log.Info("changed together with other hosts", "revision", next.Revision, "instant", next.NotBefore,
			"active", sl.Active().Flip.After)
	}
	for _, line := range sl.definition.KeptWarnings() {
		sl.log.Warn(line)
	}
	if !same {
		sl.log.Info("changed", "what", "settings of static ports")
	}
	for i, ch := range changed {
		if i == mostLogged {
			break
		}
		sl.log.Info("changed", "what", ch.String())
	}
	sl.events.Publish(event.Event{Kind: event.Applied, Text: fmt.Sprintf("%s applied: %s", what,
		count(len(changed), "change"))})
	return nil
}

// given is what a controller handed the host last.
func (sl *slicing) given(ctx context.Context) (given *state.Slice, err error) {
	err = sl.Do(ctx, func() error { given = sl.definition.Given(); return nil })
	return given, err
}

// afterLeaving is the name of the configuration that a host has which has left a cluster: no file has it.
const afterLeaving = "the configuration after leaving a cluster"

// own makes what the controllers declared part of the host's own configuration, by which nothing changes. peers returns
// the endpoints of other hosts that a switch's tunnel knows, which the controllers do not declare, but tell.
func (sl *slicing) own(ctx context.Context, cluster string, peers func(sw string) []spec.TunnelPeer) error {
	return sl.Do(ctx, func() error {
		sl.trials.keepControllers()
		if sl.definition.Given() == nil {
			return nil
		}
		whole, _ := sl.ports.whole(sl.ports.file)
		cfg, text, err := sl.ownConfig(whole, peers)
		if err != nil {
			return err
		}
		src := state.Source{File: afterLeaving, Content: string(text), By: "host leave " + cluster,
			Seen: sl.ports.seenNow()}
		err = sl.changer.change(func() {
			sl.ports.file, sl.state.Config = cfg, src
			sl.definition.Leave()
		})
		if err == nil {
			sl.ports.parsed.Store(cfg)
		}
		return err
	})
}
