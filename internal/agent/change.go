package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"heddle/internal/agent/changes"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func (a *Agent) layers() layers {
	return layers{file: a.file, ports: a.state.Ports, overrides: a.state.Overrides}
}

// intent is what commands change; the devices in hand are not part of it.
type intent struct {
	file      *spec.Config
	config    state.Source
	ports     []spec.Port
	overrides map[string]state.Override
	kept      []state.Kept
	cfg       *spec.Config
	waits     []state.Wait
}

func (a *Agent) intent() intent {
	return intent{a.file, a.state.Config, slices.Clone(a.state.Ports), maps.Clone(a.state.Overrides), a.state.Kept, a.cfg, a.state.Waits}
}

func (a *Agent) restore(i intent) {
	a.file, a.state.Config, a.state.Ports, a.state.Overrides = i.file, i.config, i.ports, i.overrides
	a.state.Kept, a.cfg, a.state.Waits = i.kept, i.cfg, i.waits
}

// change makes one change of what the agent shall do, all or nothing: edit changes file, state.Config, state.Ports or
// state.Overrides; when the result is not valid, or does not go into force, or is not remembered, everything is as before.
func (a *Agent) change(edit func()) error {
	before, stale := a.intent(), a.stale
	edit()
	cfg, faults := a.layers().merge()
	lines := a.newFaults(faults, before, a.file)
	if len(lines) == 0 {
		lines = a.closesLoop(cfg)
	}
	if len(lines) > 0 {
		a.restore(before)
		return api.NewError(api.Invalid, lines...)
	}
	a.cfg, a.stale = cfg, true
	a.forgetOverrides()
	if err := a.guardChange(before); err != nil {
		a.restore(before)
		a.stale = stale
		return err
	}
	a.commanded = true
	err := a.reconcile()
	if err != nil {
		// A device may have gone in between: look again before giving up.
		if errRefresh := a.dev.Refresh(); errRefresh == nil {
			err = a.reconcile()
		}
	}
	a.commanded = false
	if err == nil && a.late != nil {
		a.retry = true
		a.complain("finish what the plan in force leaves behind", a.late)
	}
	if err != nil {
		a.restore(before)
		a.stale = true
		if back := a.reconcile(); back != nil {
			a.retry = true
			err = errors.Join(err, fmt.Errorf("go back to the configuration before: %w", back))
		}
		return errors.Join(err, a.dropChange())
	}
	a.keepMisfits(faults)
	return nil
}

// newFaults are the faults that a change brings; those known since the start (the file was edited while the agent was away)
// do not stand in its way. Where another file is what does not fit ports that were connected before, the line says so: who applies
// a file looks for the fault in it, and the port is not there.
func (a *Agent) newFaults(faults spec.Faults, before intent, file *spec.Config) []string {
	var lines []string
	for _, f := range faults {
		line := f.Error()
		if slices.Contains(a.misfits, line) {
			continue
		}
		if file != before.file {
			line += byCommand(f, before.ports)
		}
		lines = append(lines, line)
	}
	return lines
}

// byCommand says of a fault at one of the run-time ports what the port is, "" of others.
func byCommand(f spec.Fault, ports []spec.Port) string {
	for _, p := range ports {
		if path := "ports[" + p.Name + "]"; strings.HasPrefix(f.Path, path) && f.Path != path+".name" {
			return fmt.Sprintf(" (port %s was connected by command: move it, or disconnect it with heddle port disconnect %q)", p.Name, p.Name)
		}
	}
	return ""
}

func (a *Agent) keepMisfits(faults spec.Faults) {
	a.misfits = nil
	for _, f := range faults {
		a.misfits = append(a.misfits, f.Error())
	}
}

// forgetOverrides drops what was set on ports that no longer are.
func (a *Agent) forgetOverrides() {
	there := make(map[string]bool, len(a.cfg.Ports))
	for _, p := range a.cfg.Ports {
		there[p.Name] = true
	}
	maps.DeleteFunc(a.state.Overrides, func(name string, o state.Override) bool { return !there[name] || o == state.Override{} })
}

// preview is the plan that a configuration would make, with the faults it would bring.
func (a *Agent) preview(file *spec.Config) (*plan.Plan, []string, error) {
	l := a.layers()
	l.file, l.ports = file, a.portsBeside(file)
	cfg, faults := l.merge()
	if lines := a.newFaults(faults, a.intent(), file); len(lines) > 0 {
		return nil, lines, nil
	}
	if lines := a.closesLoop(cfg); len(lines) > 0 {
		return nil, lines, nil
	}
	p, err := a.resolve(cfg)
	return p, nil, err
}

// apply puts a valid configuration file into force, all or nothing.
func (a *Agent) apply(cfg *spec.Config, src state.Source, q api.Apply) (*api.Applied, error) {
	if faults := spec.CheckDevices(cfg, a.lookup); len(faults) > 0 {
		return nil, api.NewError(api.Invalid, faultLines(faults)...)
	}
	out := &api.Applied{}
	defer func() {
		out.Warnings = slices.Concat(spec.MissingDevices(cfg, a.lookup), cfg.Warnings(), a.macTableWarnings(cfg, a.plan))
		a.warnBefore(out, a.allMembers()...)
	}()
	was, before := a.file, a.plan
	err := a.timed(out, q.ReadAt, func() error { return a.change(func() { a.file, a.state.Config = cfg, src; a.keepAdopted() }) })
	if err != nil {
		return nil, err
	}
	a.parsed.Store(cfg)
	a.warnings = slices.Concat(cfg.Warnings(), a.macTableWarnings(cfg, a.plan))
	// What is only said is worked out when the change is in force.
	if out.Changes, err = changes.Between(was, cfg); err != nil {
		return nil, err
	}
	out.Effects = changes.Effects(before, a.plan)
	a.logApplied(src.File, out)
	if len(out.Changes) > 0 {
		a.events.Publish(event.Event{Kind: event.Applied, Text: fmt.Sprintf("%s applied: %s", src.File, count(len(out.Changes), "change"))})
	}
	return out, nil
}

// mostLogged bounds how many changes of one configuration are logged: a thousand ports have eight thousand.
const mostLogged = 200

// logApplied logs what a new configuration changed, as a dry run would have shown it.
func (a *Agent) logApplied(file string, out *api.Applied) {
	a.log.Info("configuration applied", "file", file, "changes", len(out.Changes))
	for i, ch := range out.Changes {
		if i == mostLogged {
			a.log.Info("changed", "what", fmt.Sprintf("and %d more", len(out.Changes)-mostLogged))
			break
		}
		a.log.Info("changed", "what", ch.String())
	}
	for _, e := range out.Effects {
		a.log.Info("in effect", "what", e)
	}
}

func (a *Agent) lookup(device string) (mtu int, ok bool) {
	d, ok, err := a.dev.Device(device)
	return d.MTU, ok && err == nil
}

func faultLines(faults spec.Faults) []string {
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Error()
	}
	return lines
}

// isFile says that path is a file, whose reading ends: the loop does it, and must not wait for the other end of a pipe.
func isFile(path string) error {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: the agent can read it at its start alone; use heddle apply", path)
	}
	return err
}

// readConfig reads and parses the file given with --config; before is the one read last, nil for none.
func readConfig(path string, before *spec.Config) (*spec.Config, state.Source, error) {
	b, err := spec.ReadFile(path)
	if err != nil {
		return nil, state.Source{}, fmt.Errorf("read the configuration: %w", err)
	}
	if spec.OnlyComments(b) {
		return nil, state.Source{}, fmt.Errorf("%s: %w", path, errOnlyComments)
	}
	cfg, err := spec.ParseAfter(before, path, b)
	return cfg, state.Source{File: path, Content: string(b), Seen: digest(b)}, err
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// reload reads the --config file again, on SIGHUP. A file with faults changes nothing.
func (a *Agent) reload() {
	if a.configFile == "" {
		a.log.Warn("nothing to reload: the agent was started without --config")
		return
	}
	var cfg *spec.Config
	var src state.Source
	err := isFile(a.configFile)
	if err == nil {
		cfg, src, err = readConfig(a.configFile, a.parsed.Load())
	}
	if err == nil {
		err = a.applyAlone(cfg, src, "reload "+a.configFile)
	}
	if err != nil {
		a.log.Error("reload: nothing was changed", "err", err)
	}
}

// applyAlone applies a file that no command waits for. In the loop it is applied at once; where somebody has to be asked first, or another
// change is being tried, that is done beside the loop.
func (a *Agent) applyAlone(cfg *spec.Config, src state.Source, what string) error {
	g, out := &guard{what: what}, &api.Applied{}
	apply := func() error { _, err := a.apply(cfg, src, api.Apply{}); return err }
	err := a.underGuard(g, apply)
	var ask *needsAsking
	var other *beingTried
	if !errors.As(err, &ask) && !errors.As(err, &other) {
		return err
	}
	go func() {
		if err := a.tried(context.Background(), a.do, g, out, apply); err != nil {
			a.log.Error(what+": the configuration is as it was", "err", err)
		}
	}()
	return nil
}

// declared finds a port of the file by name.
func (a *Agent) declared(name string) *spec.Port {
	if a.file == nil {
		return nil
	}
	for i := range a.file.Ports {
		if a.file.Ports[i].Name == name {
			return &a.file.Ports[i]
		}
	}
	return nil
}

// runTime finds a port connected by command by name.
func (a *Agent) runTime(name string) *spec.Port {
	for i := range a.state.Ports {
		if a.state.Ports[i].Name == name {
			return &a.state.Ports[i]
		}
	}
	return nil
}

// planned finds a port of the plan by name; port names are unique on a host.
func planned(p *plan.Plan, name string) *plan.Port {
	for _, sw := range p.Switches {
		for _, port := range sw.Ports {
			if port.ID.Name == name {
				return port
			}
		}
	}
	return nil
}

// count is a number with its noun: "1 change", "3 changes".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
