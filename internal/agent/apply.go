package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"

	"heddle/internal/agent/bypass"
	"heddle/internal/agent/changes"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/spec"
)

// files answers the commands about configuration files.
type files struct {
	*shared
	ports     *ports
	attaching *attaching
	trials    *trials
	changer   *changer
	foreseer  *foreseer
}

// Apply replaces the content of the configuration file; it changes what the file declares and nothing else.
func (fl *files) Apply(ctx context.Context, q api.Apply) (out *api.Applied, err error) {
	cfg, err := spec.ParseAfter(fl.ports.parsed.Load(), q.File, []byte(q.Content))
	if err != nil {
		var faults spec.Faults
		if errors.As(err, &faults) {
			return nil, api.NewError(api.Invalid, faultLines(faults)...)
		}
		return nil, err
	}
	if q.DryRun {
		return fl.dryRun(ctx, cfg, q)
	}
	out = &api.Applied{}
	g := &guard{what: "apply " + q.File, within: q.ConfirmWithin}
	if q.Rollback > 0 {
		g.what = fmt.Sprintf("config rollback %d", q.Rollback)
	}
	return out, fl.trials.tried(ctx, fl.attaching.doAttached, g, out, func() error {
		src := state.Source{File: q.File, Content: q.Content, By: g.what, Restores: q.Rollback,
			Seen: fl.ports.seenNow()}
		done, err := fl.changer.apply(cfg, src, q)
		if err == nil {
			*out = *done
		}
		return err
	})
}

// seenNow returns the present digest of the --config file: an apply is newer than every edit before it. If the file
// cannot be read, it returns the digest that is known.
func (ps *ports) seenNow() string {
	if ps.configFile != "" && isFile(ps.configFile) == nil {
		if b, err := spec.ReadFile(ps.configFile); err == nil {
			return digest(b)
		}
	}
	return ps.state.Config.Seen
}

// apply activates a valid configuration file, all or nothing.
func (cg *changer) apply(cfg *spec.Config, src state.Source, q api.Apply) (*api.Applied, error) {
	if faults := spec.CheckDevices(cfg, cg.lookup); len(faults) > 0 {
		return nil, api.NewError(api.Invalid, faultLines(faults)...)
	}
	out := &api.Applied{}
	defer func() {
		out.Warnings = slices.Concat(spec.MissingDevices(cfg, cg.lookup, hostdev.NamedOtherwise), cfg.Warnings(),
			cg.ports.macTableWarnings(cfg, cg.Active().Plan),
			bypass.Warnings(cg.dev, cfg), cg.ports.maintained(cfg))
		cg.chains.warnBefore(out, cg.Active().Members()...)
	}()
	was, before := cg.ports.file, cg.Active().Plan
	var restored []api.Effect
	err := cg.restoring.Collecting(&restored, func() error {
		return cg.effect.timed(out, q.ReadAt, func() error {
			return cg.change(func() { cg.ports.file, cg.state.Config = cfg, src; cg.records.keepAdopted() })
		})
	})
	if err != nil {
		return nil, err
	}
	cg.ports.parsed.Store(cfg)
	cg.ports.unused = nil
	cg.ports.warnings = slices.Concat(cfg.Warnings(), cg.ports.macTableWarnings(cfg, cg.Active().Plan))
	// What is only reported is computed once the change is active.
	if out.Changes, err = changes.Between(was, cfg); err != nil {
		return nil, err
	}
	out.Effects = append(changes.Effects(before, cg.Active().Plan), restored...)
	out.Kept = cg.ports.keptBeside(cfg)
	cg.logApplied(src.File, out)
	if len(out.Changes) > 0 {
		cg.events.Publish(event.Event{Kind: event.Applied, Text: fmt.Sprintf("%s applied: %s", src.File,
			count(len(out.Changes), "change"))})
	}
	return out, nil
}

// mostLogged bounds how many changes of one configuration are logged: a thousand ports make eight thousand changes.
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
		cg.log.Info("in effect", "what", e.Text)
	}
}

// isFile returns an error unless path is a regular file. The loop reads it, and must not wait for the other end of a
// pipe.
func isFile(path string) error {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file: the agent can read it at its start alone; use heddle apply", path)
	}
	return err
}

// readConfig reads and parses the file given with --config; before is the configuration that was read last, nil if none
// was.
func readConfig(path string, before *spec.Config) (*spec.Config, state.Source, error) {
	b, err := spec.ReadFile(path)
	if err != nil {
		return nil, state.Source{}, fmt.Errorf("read the configuration: %w", err)
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
	if err == nil && cfg.TakesAwayUnasked(cg.ports.file) {
		err = fmt.Errorf("%s: %w", cg.ports.configFile, spec.ErrSaysNothing)
	}
	if err == nil {
		err = cg.applyAlone(cfg, src, "reload "+cg.ports.configFile)
	}
	if err != nil {
		cg.log.Error("reload: nothing was changed", "err", err)
	}
}

// applyAlone applies a file that no command waits for. The loop applies it at once; if somebody must be asked first, or
// another change is on trial, a goroutine beside the loop does it.
func (cg *changer) applyAlone(cfg *spec.Config, src state.Source, what string) error {
	src.By = what
	g, out := &guard{what: what}, &api.Applied{}
	apply := func() error { _, err := cg.apply(cfg, src, api.Apply{}); return err }
	err := cg.trials.underGuard(g, apply)
	var ask *needsAsking
	var other *beingTried
	if !errors.As(err, &ask) && !errors.As(err, &other) {
		return err
	}
	go func() {
		if err := cg.trials.tried(context.Background(), cg.Do, g, out, apply); err != nil {
			cg.log.Error(what+": the configuration is as it was", "err", err)
		}
	}()
	return nil
}

func faultLines(faults spec.Faults) []string {
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Error()
	}
	return lines
}
