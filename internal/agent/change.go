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
	"sync/atomic"

	"heddle/internal/agent/changes"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// ports are what the file and commands ask for.
type ports struct {
	*shared
	// configFile is what --config named; "" without.
	configFile string
	file       *spec.Config                // what the file declares
	parsed     atomic.Pointer[spec.Config] // the file last read, for whoever reads the next one
	cfg        *spec.Config                // with what commands made
	warnings   []string                    // about the configuration; a port whose device is missing says so itself, for as long as it is
	misfits    []string                    // known faults of what commands made against the file
	plan       *plan.Plan                  // of cfg, unless stale
	stale      bool                        // cfg, or a MAC taken over, changed since plan was made
	next       *plan.Plan                  // of cfg, where it has been made ahead of reconcile
}

func (ps *ports) layers() layers {
	return layers{file: ps.file, ports: ps.state.Ports, overrides: ps.state.Overrides}
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

func (ps *ports) intent() intent {
	return intent{ps.file, ps.state.Config, slices.Clone(ps.state.Ports), maps.Clone(ps.state.Overrides), ps.state.Kept, ps.cfg, ps.state.Waits}
}

func (ps *ports) restore(i intent) {
	ps.file, ps.state.Config, ps.state.Ports, ps.state.Overrides = i.file, i.config, i.ports, i.overrides
	ps.state.Kept, ps.cfg, ps.state.Waits = i.kept, i.cfg, i.waits
}

// changer changes what is asked for, all or nothing.
type changer struct {
	*shared
	ports      *ports
	records    *records
	effect     *effect
	settler    *settler
	attaching  *attaching
	chains     *chains
	looping    *looping
	reconciler *reconciler
	trials     *trials
}

// change makes one change of what the agent shall do, all or nothing: edit changes file, state.Config, state.Ports or
// state.Overrides; when the result is not valid, or does not go into force, or is not remembered, everything is as before.
func (cg *changer) change(edit func()) error {
	before, stale := cg.ports.intent(), cg.ports.stale
	edit()
	cfg, faults := cg.ports.layers().merge()
	lines := cg.ports.newFaults(faults, before, cg.ports.file)
	if len(lines) == 0 {
		lines = cg.looping.closesLoop(cfg)
	}
	if len(lines) > 0 {
		cg.ports.restore(before)
		return api.NewError(api.Invalid, lines...)
	}
	cg.ports.cfg, cg.ports.stale = cfg, true
	cg.ports.forgetOverrides()
	if err := cg.trials.guardChange(before); err != nil {
		cg.ports.restore(before)
		cg.ports.stale = stale
		return err
	}
	cg.effect.commanded = true
	err := cg.reconciler.reconcile()
	if err != nil {
		// A device may have gone in between: look again before giving up.
		if errRefresh := cg.dev.Refresh(); errRefresh == nil {
			err = cg.reconciler.reconcile()
		}
	}
	cg.effect.commanded = false
	if err == nil && cg.settler.late != nil {
		cg.settler.retry = true
		cg.complain("finish what the plan in force leaves behind", cg.settler.late)
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

// newFaults are the faults that a change brings; those known since the start (the file was edited while the agent was away)
// do not stand in its way. Where another file is what does not fit ports that were connected before, the line says so: who applies
// a file looks for the fault in it, and the port is not there.
func (ps *ports) newFaults(faults spec.Faults, before intent, file *spec.Config) []string {
	var lines []string
	for _, f := range faults {
		line := f.Error()
		if slices.Contains(ps.misfits, line) {
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

func (ps *ports) keepMisfits(faults spec.Faults) {
	ps.misfits = nil
	for _, f := range faults {
		ps.misfits = append(ps.misfits, f.Error())
	}
}

// forgetOverrides drops what was set on ports that no longer are.
func (ps *ports) forgetOverrides() {
	there := make(map[string]bool, len(ps.cfg.Ports))
	for _, p := range ps.cfg.Ports {
		there[p.Name] = true
	}
	maps.DeleteFunc(ps.state.Overrides, func(name string, o state.Override) bool { return !there[name] || o == state.Override{} })
}

// preview is the plan that a configuration would make, with the faults it would bring.
func (cg *changer) preview(file *spec.Config) (*plan.Plan, []string, error) {
	l := cg.ports.layers()
	l.file, l.ports = file, cg.records.portsBeside(file)
	cfg, faults := l.merge()
	if lines := cg.ports.newFaults(faults, cg.ports.intent(), file); len(lines) > 0 {
		return nil, lines, nil
	}
	if lines := cg.looping.closesLoop(cfg); len(lines) > 0 {
		return nil, lines, nil
	}
	p, err := cg.ports.resolve(cfg)
	return p, nil, err
}

// apply puts a valid configuration file into force, all or nothing.
func (cg *changer) apply(cfg *spec.Config, src state.Source, q api.Apply) (*api.Applied, error) {
	if faults := spec.CheckDevices(cfg, cg.lookup); len(faults) > 0 {
		return nil, api.NewError(api.Invalid, faultLines(faults)...)
	}
	out := &api.Applied{}
	defer func() {
		out.Warnings = slices.Concat(spec.MissingDevices(cfg, cg.lookup), cfg.Warnings(), cg.ports.macTableWarnings(cfg, cg.ports.plan),
			cg.looping.pastWarnings(cfg))
		cg.chains.warnBefore(out, cg.effect.allMembers()...)
	}()
	was, before := cg.ports.file, cg.ports.plan
	err := cg.effect.timed(out, q.ReadAt, func() error {
		return cg.change(func() { cg.ports.file, cg.state.Config = cfg, src; cg.records.keepAdopted() })
	})
	if err != nil {
		return nil, err
	}
	cg.ports.parsed.Store(cfg)
	cg.ports.warnings = slices.Concat(cfg.Warnings(), cg.ports.macTableWarnings(cfg, cg.ports.plan))
	// What is only said is worked out when the change is in force.
	if out.Changes, err = changes.Between(was, cfg); err != nil {
		return nil, err
	}
	out.Effects = changes.Effects(before, cg.ports.plan)
	cg.logApplied(src.File, out)
	if len(out.Changes) > 0 {
		cg.events.Publish(event.Event{Kind: event.Applied, Text: fmt.Sprintf("%s applied: %s", src.File, count(len(out.Changes), "change"))})
	}
	return out, nil
}

// mostLogged bounds how many changes of one configuration are logged: a thousand ports have eight thousand.
const mostLogged = 200

// logApplied logs what a new configuration changed, as a dry run would have shown it.
func (cg *changer) logApplied(file string, out *api.Applied) {
	cg.log.Info("configuration applied", "file", file, "changes", len(out.Changes))
	for i, ch := range out.Changes {
		if i == mostLogged {
			cg.log.Info("changed", "what", fmt.Sprintf("and %d more", len(out.Changes)-mostLogged))
			break
		}
		cg.log.Info("changed", "what", ch.String())
	}
	for _, e := range out.Effects {
		cg.log.Info("in effect", "what", e)
	}
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
func (cg *changer) reload() {
	if cg.ports.configFile == "" {
		cg.log.Warn("nothing to reload: the agent was started without --config")
		return
	}
	var cfg *spec.Config
	var src state.Source
	err := isFile(cg.ports.configFile)
	if err == nil {
		cfg, src, err = readConfig(cg.ports.configFile, cg.ports.parsed.Load())
	}
	if err == nil {
		err = cg.applyAlone(cfg, src, "reload "+cg.ports.configFile)
	}
	if err != nil {
		cg.log.Error("reload: nothing was changed", "err", err)
	}
}

// applyAlone applies a file that no command waits for. In the loop it is applied at once; where somebody has to be asked first, or another
// change is being tried, that is done beside the loop.
func (cg *changer) applyAlone(cfg *spec.Config, src state.Source, what string) error {
	g, out := &guard{what: what}, &api.Applied{}
	apply := func() error { _, err := cg.apply(cfg, src, api.Apply{}); return err }
	err := cg.trials.underGuard(g, apply)
	var ask *needsAsking
	var other *beingTried
	if !errors.As(err, &ask) && !errors.As(err, &other) {
		return err
	}
	go func() {
		if err := cg.trials.tried(context.Background(), cg.do, g, out, apply); err != nil {
			cg.log.Error(what+": the configuration is as it was", "err", err)
		}
	}()
	return nil
}

// declared finds a port of the file by name.
func (ps *ports) declared(name string) *spec.Port {
	if ps.file == nil {
		return nil
	}
	for i := range ps.file.Ports {
		if ps.file.Ports[i].Name == name {
			return &ps.file.Ports[i]
		}
	}
	return nil
}

// runTime finds a port connected by command by name.
func (ps *ports) runTime(name string) *spec.Port {
	for i := range ps.state.Ports {
		if ps.state.Ports[i].Name == name {
			return &ps.state.Ports[i]
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
