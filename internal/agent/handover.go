package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/agent/changes"
	"heddle/internal/agent/definition"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/spec"
)

// HandOver hands the switches that both the host's own file and the controller's definition declare over to the
// definition, all or nothing: ports of the file become ports connected by command, with their numbers, counters and
// MACs. Where both declare the same, nothing changes in the kernel.
func (sl *slicing) HandOver(ctx context.Context, q api.HandOver) (*api.Applied, error) {
	var next *state.Slice
	if err := sl.Do(ctx, func() error { next = sl.refused; return nil }); err != nil {
		return nil, err
	}
	if next == nil {
		return nil, api.NewError(api.Invalid, "the controllers define no switch that this host's own file has: there "+
			"is nothing to hand over (heddle host show)")
	}
	given, err := sl.read(ctx, next)
	if err != nil {
		return nil, err
	}
	out := &api.Applied{}
	if q.DryRun {
		return out, sl.Do(ctx, func() error {
			_, err := sl.handover(given.Config, out)
			out.DryRun = true
			return err
		})
	}
	g := &guard{what: "host hand-over", within: q.ConfirmWithin}
	return out, sl.trials.tried(ctx, sl.attaching.doAttached, g, out, func() error {
		if err := sl.trials.settleControllers(); err != nil {
			return err
		}
		h, err := sl.handover(given.Config, out)
		if err != nil {
			return err
		}
		return sl.handOver(next, given, h, out)
	})
}

// handover is what becomes of the host's own file, and of its ports.
type handover struct {
	switches []string
	own      *spec.Config
	text     string
	ports    []spec.Port // connected by command from now on
}

// handover finds out what a hand-over does; out gets the differences.
func (sl *slicing) handover(cfg *spec.Config, out *api.Applied) (*handover, error) {
	h := &handover{}
	both := func(name string) bool {
		return slices.ContainsFunc(cfg.Switches, func(s spec.Switch) bool { return s.Name == name })
	}
	was, own := &spec.Config{}, &spec.Config{Host: sl.ports.file.Host}
	for _, s := range sl.ports.file.Switches {
		if both(s.Name) {
			h.switches, was.Switches = append(h.switches, s.Name), append(was.Switches, s)
		} else {
			own.Switches = append(own.Switches, s)
		}
	}
	if len(h.switches) == 0 {
		return nil, api.NewError(api.Invalid, "this host's own file has no switch of a name that the controllers "+
			"define: "+
			"give it the name there, and the same uplinks")
	}
	declared := func(name string) bool {
		return slices.ContainsFunc(cfg.Ports, func(p spec.Port) bool { return p.Name == name })
	}
	for _, p := range sl.ports.file.Ports {
		switch {
		case !both(p.Switch):
			own.Ports = append(own.Ports, p)
		case !declared(p.Name):
			h.ports = append(h.ports, p)
		}
	}
	var err error
	if out.Changes, err = changes.Between(was, &spec.Config{Switches: slices.DeleteFunc(slices.Clone(cfg.Switches),
		func(s spec.Switch) bool { return !slices.Contains(h.switches, s.Name) })}); err != nil {
		return nil, err
	}
	return h, h.file(own, sl.state.Config.File)
}

// file makes the text of what stays the host's own.
func (h *handover) file(own *spec.Config, name string) error {
	if len(own.Switches) > 0 || own.Host != (spec.HostSettings{}) {
		text, err := spec.Format(own)
		if err != nil {
			return err
		}
		h.text = string(text)
	}
	var err error
	h.own, err = spec.Parse(name, []byte(h.text))
	return err
}

// handOver makes the change.
func (sl *slicing) handOver(next *state.Slice, given *definition.Handed, h *handover, out *api.Applied) error {
	if faults := spec.CheckDevices(given.Config, sl.lookup); len(faults) > 0 {
		return api.NewError(api.Invalid, faultLines(faults)...)
	}
	file := sl.state.Config.File
	src := state.Source{File: file, Content: h.text, By: "host hand-over", Seen: sl.ports.seenNow()}
	sl.refused = nil
	err := sl.effect.timed(out, 0, func() error {
		return sl.changer.change(func() {
			sl.ports.file, sl.state.Config = h.own, src
			sl.definition.Take(given, next)
			sl.state.Ports = slices.Concat(sl.state.Ports, h.ports)
		})
	})
	if err != nil {
		sl.refused = next
		return err
	}
	sl.ports.parsed.Store(h.own)
	sl.ports.warnings = sl.ports.declaredWarnings()
	names := strings.Join(h.switches, ", ")
	if file != afterLeaving {
		out.Warnings = append(out.Warnings, fmt.Sprintf("take switch %s out of %s: the agent no longer reads it "+
			"there, and an agent that is started with an edited file that still has it refuses to start", names, file))
	}
	sl.log.Info("switches of the host's own file are the controllers' now", "switches", names, "revision",
		next.Revision)
	sl.events.Publish(event.Event{Kind: event.Applied, Text: fmt.Sprintf("switch %s handed over to the controllers",
		names)})
	return nil
}
