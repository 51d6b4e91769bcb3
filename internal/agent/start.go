package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/agent/captures"
	"heddle/internal/agent/flows"
	"heddle/internal/agent/instance"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/memory"
	"heddle/internal/agent/metrics"
	"heddle/internal/agent/part"
	"heddle/internal/agent/pathmtu"
	"heddle/internal/agent/removal"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/host/hostdev"
	"heddle/internal/host/interrupt"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
	"heddle/internal/uplinks/announce"
	"heddle/internal/uplinks/linkproto"
	"heddle/internal/uplinks/wire"
)

// Options are the options of an agent.
type Options struct {
	Name    string
	Paths   instance.Paths
	Config  string // file to read at start and on SIGHUP; "" keeps what was last applied
	Version string // of the program, for "heddle version"
	Log     *slog.Logger
	// Reload makes the agent read Config again.
	Reload <-chan struct{}
	// Load changes load-based teaming, for labs.
	Load uplinks.LoadOptions
	// Metrics says where metrics are served to Prometheus.
	Metrics metrics.Listen
	// AllowUnprotected starts an agent also where it does not know a security field of the controller's definition that
	// a later version left.
	AllowUnprotected bool
	// LibvirtDir is the directory of the sockets of libvirt's daemon; with "" libvirt is not asked where guests run.
	LibvirtDir string
	// Plugged is called when a device of one of these domains was plugged or unplugged; nil for nothing to do.
	Plugged Plugged
	// MoveListen is where the host takes calls of other hosts about ports that move here; see transport.Options.
	MoveListen string
	// Features are what the program has beside the core.
	Features []part.Feature
	// Supervisor is informed about the agent's state; nil for none.
	Supervisor Supervisor
}

// Run runs the agent in the foreground. It returns when ctx ends or a command stops the agent; the kernel continues
// forwarding. Faults of the configuration are spec.Faults or an api.Error of kind Invalid.
func Run(ctx context.Context, o Options) error {
	if err := errors.Join(instance.CheckName(o.Name), o.Metrics.Check()); err != nil {
		return api.NewError(api.Invalid, err.Error())
	}
	given, err := givenTo(ctx, o)
	if err != nil {
		return err
	}
	if err := instance.Privileged("the agent"); err != nil {
		return err
	}
	lock, err := instance.Take(o.Paths, o.Name)
	if err != nil {
		return err
	}
	defer lock.Release()
	store, err := state.Open(o.Paths.StateDir(o.Name))
	if err != nil {
		return err
	}
	st, err := store.Load()
	if err == nil {
		err = takePlace(st, o.Name)
	}
	if err != nil {
		return err
	}
	first := len(st.Held) == 0 && !exists(o.Paths.Pins(o.Name))
	a, err := start(o, lock, store, st, given)
	if err != nil && first { // nothing was in the kernel before, so nothing is left there
		err = errors.Join(err, removal.All(o.Paths, store, o.Name, removal.Options{}))
	}
	if err != nil {
		return err
	}
	defer a.close()
	debug.FreeOSMemory() // loading programs takes several times the memory that they need afterwards
	return a.serve(ctx, o)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// awaitConfig is readConfig for a file that may be a pipe.
func awaitConfig(ctx context.Context, path string) (*spec.Config, state.Source, error) {
	type read struct {
		cfg *spec.Config
		src state.Source
	}
	r, err := interrupt.Do(ctx, func() (r read, err error) {
		r.cfg, r.src, err = readConfig(path, nil)
		r.src.By = "start with " + path
		return r, err
	})
	return r.cfg, r.src, err
}

// givenConfig is the file named with --config. remembers: the agent knows what to start by without it; unusable says
// why it cannot be used then.
type givenConfig struct {
	cfg       *spec.Config
	src       state.Source
	remembers bool
	unusable  error
}

// givenTo reads the file named with --config; nil for none.
func givenTo(ctx context.Context, o Options) (*givenConfig, error) {
	if o.Config == "" {
		return nil, nil
	}
	last := remainsOf(o)
	cfg, src, err := awaitConfig(ctx, o.Config)
	switch {
	case err == nil && cfg.TakesAwayUnasked(last.file()):
		o.Log.Info("the configuration file says nothing about switches: what was last applied counts", "file",
			o.Config)
		return nil, nil
	case err == nil:
		return &givenConfig{cfg: cfg, src: src, remembers: last.any()}, nil
	case ctx.Err() == nil && last.any():
		return &givenConfig{src: state.Source{File: o.Config}, remembers: true, unusable: err}, nil
	}
	if errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
		return nil, fmt.Errorf("--config: there is no file %s: write it (\"heddle check -f %s\" says whether it is "+
			"right), name another one, or leave --config out: the agent starts by what was last applied then: %w",
			o.Config, o.Config, fs.ErrNotExist)
	}
	return nil, err
}

// start makes an agent whose plan is active. After an error it holds nothing open.
func start(o Options, lock *instance.Lock, store *state.Store, st *state.State, given *givenConfig) (a *Agent,
	err error) {
	inKernel := exists(o.Paths.Pins(o.Name))
	mount := func() error { return lock.Mount(o.Paths, o.Name) }
	if err := mount(); err != nil {
		return nil, err
	}
	seed, err := store.Seed()
	if err != nil {
		return nil, err
	}
	a = newAgent(&shared{name: o.Name, version: o.Version, place: derivesFrom(o.Name, seed),
		started: time.Now(), log: o.Log,
		store: store, state: st, events: event.NewBus(keptEvents), Loop: loop.New(),
		Complaints: loop.NewComplaints(o.Log)})
	a.ports.inKernel = inKernel
	a.definition.AllowUnprotected(o.AllowUnprotected)
	a.watchedBy, a.ports.configFile, a.attaching.mount, a.reporter.limit = o.Supervisor, o.Config, mount, tellLimit()
	defer func() {
		if err != nil {
			err, a = errors.Join(err, a.close()), nil
		}
	}()
	last := st.Config
	fresh, err := a.ports.chooseConfig(given)
	if err != nil {
		return a, err
	}
	kernel, err := a.openHost(o)
	if err != nil {
		return a, err
	}
	if err := a.openSenders(o); err != nil {
		return a, err
	}
	// Commands wait from here on and are answered when the plan is active.
	a.listener, err = api.Listen(api.SocketPath(o.Paths.Run, o.Name))
	if err != nil {
		return a, err
	}
	a.openSightings(o.Paths)
	a.followUplinks(linkproto.Open)
	a.followLoad(o.Load)
	a.watchMonitors()
	a.watchDomains(o.LibvirtDir, o.Plugged)
	a.follow("flows", a.flowing)
	err = a.flowing.Start(flows.Options{Log: a.log, Dir: flows.Dir(o.Paths, o.Name), Source: kernel.Flows(),
		Publish: a.events.Publish})
	if err != nil {
		return a, errors.Join(err, a.listener.Close())
	}
	followHosts(a, o)
	if err := errors.Join(a.parts.Faults(), a.begin(given, last, fresh)); err != nil {
		return a, errors.Join(err, a.listener.Close())
	}
	if err := a.followTells(kernel); err != nil {
		return a, errors.Join(err, a.listener.Close())
	}
	a.followSightings()
	a.endNoted(o.Paths)
	return a, nil
}

// followHosts adds what the host has to do with other hosts and with controllers.
func followHosts(a *Agent, o Options) {
	a.carrying.Tidy()
	a.connection.Open(o.Paths.StateDir(o.Name))
	a.locating.Open(o.Paths.StateDir(o.Name), a.connection.Self, a.connection.Lost)
	a.openMigration(o)
	a.follow("membership", a.membership)
	a.follow("locations", a.locating)
	a.follow("isolation", a.membership.isolation)
}

// openHost opens the kernel's side of the switch, and the host's devices. After an error, what is already open is
// closed with the agent.
func (a *Agent) openHost(o Options) (*dataplane.Kernel, error) {
	kernel, err := dataplane.Open(dataplane.Options{PinDir: o.Paths.Pins(o.Name), MACTable: a.ports.file.Host.MACTable,
		Log: o.Log})
	if err != nil {
		return nil, err
	}
	a.kernel, a.closers = kernel, append(a.closers, kernel.Close)
	a.captures = captures.New(captures.Host{Log: o.Log, Source: kernel.Captures(), InLoop: a.InLoop,
		Look: func(ctx context.Context, f func(*plan.Plan) error) error {
			return a.Do(ctx, func() error { return f(a.Active().Plan) })
		}, Applied: func() *plan.Plan { return a.Active().InKernel() }, Ends: a.tunnels.Ends})
	a.follow("captures", capturewatch{a.captures})
	dev, err := hostdev.Open()
	if err != nil {
		return nil, err
	}
	a.dev, a.closers = dev, append(a.closers, func() error { dev.Close(); return nil })
	losses, err := hostdev.OpenLosses()
	if err != nil {
		return nil, err
	}
	a.answers.losses, a.closers = losses, append(a.closers, losses.Close)
	abilities, err := hostdev.OpenAbilities()
	if err != nil {
		return nil, err
	}
	a.answers.abilities, a.closers = abilities, append(a.closers, abilities.Close)
	return kernel, nil
}

// openSenders starts the announcer, the search for loops and the features, which send frames, and opens the metrics.
func (a *Agent) openSenders(o Options) error {
	a.teaming.announcer = announce.Start(o.Log, func() (announce.Sender, error) { return wire.OpenSender() })
	a.closers = append(a.closers, a.teaming.announcer.Close)
	if err := a.openMetrics(o); err != nil {
		return err
	}
	a.loops.Start(func() (announce.Sender, error) { return wire.OpenSender() })
	a.follow("loop-search", a.loops)
	a.follow("path-mtu", pathmtu.New(pathmtu.Host{Reader: a.Reader, Ask: a.settler.ask, Post: a.Post,
		Complain: a.Complain, Read: hostdev.PathMTUs}))
	return a.extend(o.Features, linkproto.Open)
}

// close releases what the process has open; the kernel continues forwarding.
func (a *Agent) close() error {
	errs := []error{a.parts.Close()}
	for _, f := range slices.Backward(a.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// serve answers commands and runs the loop until ctx ends.
func (a *Agent) serve(ctx context.Context, o Options) error {
	ctx, a.commands.quit = context.WithCancel(ctx)
	defer a.commands.quit()
	g, ctx := errgroup.WithContext(ctx)
	// The socket stays open a little longer than the loop, to answer the command that stops the agent.
	g.Go(func() error { return api.Serve(ctx, a.listener, a.service(), a.log) })
	g.Go(func() error { return a.run(ctx, o.Reload) })
	g.Go(func() error { return a.serveMetrics(ctx, o) })
	g.Go(func() error { memory.Release(ctx, a.log); return nil })
	a.membership.looking = api.Looking(ctx, a.service())
	a.connection.Begin()
	a.log.Info("ready", "agent", a.name, "socket", a.listener.Addr().String(), "switches",
		len(a.Active().Plan.Switches))
	a.supervisor().Ready()
	<-ctx.Done()
	a.supervisor().Stopping(a.commands.ordered.Load())
	err := g.Wait()
	// After "heddle down" the switch is about to be removed.
	text := "stopped; the kernel goes on forwarding"
	if a.commands.ordered.Load() {
		text = "stopped by a command"
	}
	a.log.Info(text, "agent", a.name)
	return err
}

// begin activates the configuration. The given file is used if it was edited since it was last read; otherwise the
// configuration applied last stays active, so that a restart never undoes an apply.
func (a *Agent) begin(given *givenConfig, last state.Source, fresh bool) error {
	if err := a.records.open(); err != nil {
		return err
	}
	later := fresh && a.changer.startsWith(last)
	if fresh && !later {
		a.fallBack(given, last)
	}
	a.ports.parsed.Store(a.ports.file)
	if err := a.resumeAdoptions(); err != nil {
		return err
	}
	if err := a.waiting.Resume(); err != nil {
		return err
	}
	whole, clash := a.ports.whole(a.ports.file)
	if len(clash) > 0 {
		return api.NewError(api.Invalid, clashLines(clash)...)
	}
	// What a device lacks now, as an MTU that is raised a moment later, is a warning: see the uplink's problem.
	faults := spec.CheckDevices(whole, a.lookup)
	ofFile := slices.Concat(whole.Warnings(), a.ports.macTableWarnings(a.ports.file, nil))
	a.ports.unused = slices.Concat(a.ports.unused, given.unused())
	a.ports.warnings = slices.Concat(faultLines(faults), ofFile)
	cfg, misfits := a.ports.layers().merge()
	a.ports.cfg = cfg
	a.ports.keepMisfits(misfits)
	a.ports.forgetOverrides()
	// Devices that are missing or can't serve are reported with their ports and uplinks, once the plan is active.
	for _, w := range slices.Concat(a.ports.unused, faultLines(faults), ofFile, texts(a.ports.misfits),
		a.definition.Lacks()) {
		a.log.Warn(w)
	}
	a.holding.Distrust()
	// if no device is held, nothing is served whose record could not be saved
	activate := a.reconciler.reconcile
	if len(a.state.Held) == 0 {
		activate = func() error { return a.effect.forCommand(a.reconciler.reconcile) }
	}
	err := activate()
	if err != nil {
		if a.Active().Applied == nil {
			return err
		}
		a.Complain("activate the plan", err)
		a.settler.retry = true
	}
	a.chains.lookAtChains()
	a.trials.goOnTrying()
	if later {
		a.changer.applyLater(given)
	}
	a.holding.RemoveStrays()
	if err := a.ports.save(); err != nil {
		a.settler.retry = true
		a.Complain("remember what was removed", err)
	}
	return nil
}

// derivesFrom is what the MACs of host ports, and the chassis that LLDP tells, are made of beside their names: the
// machine, the agent and the seed of its state.
func derivesFrom(agent, seed string) string {
	place := instance.MachineID() + "/" + agent
	if seed != "" {
		place += "/" + seed
	}
	return place
}

// takePlace makes this boot and namespace the place of the held devices. Devices of an earlier boot, or of a namespace
// that is gone, are gone with it; those of a namespace that still exists are another host's.
func takePlace(s *state.State, agent string) error {
	here, err := instance.Place()
	if err != nil || s.Place == here {
		return err
	}
	if len(s.Held) > 0 {
		if path, err := instance.FindPlace(s.Place); err != nil || path != "" {
			return errors.Join(err, fmt.Errorf("agent %s has its devices in another network namespace (%s): end it "+
				"there with heddle down --agent %s, or give this agent another --name", agent, path, agent))
		}
	}
	s.MoveTo(here)
	return nil
}
