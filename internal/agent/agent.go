// Package agent keeps the kernel equal to the plan: it joins the configuration file, the ports connected by command and the
// host's devices into a plan, puts it into the kernel, and follows what changes. One goroutine owns all state; commands,
// notifications and the clock reach it as messages. The kernel forwards without it.
package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"heddle/internal/agent/metrics"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/flow/metering"
	"heddle/internal/host/guest"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
)

// Kernel is what the agent needs of the dataplane.
type Kernel interface {
	// Change, Attach, Unattached, Chain and RetryAttach are those of dataplane.Kernel.
	Change(d binding.Desired, ready func() error) (dataplane.Instant, error)
	Attach(budget time.Duration) (left int, err error)
	Unattached() map[uint32]error
	Chain(ifindex uint32) (dataplane.Chain, error)
	Reteam(binding.Desired) (dataplane.Instant, error)
	RetryAttach()
	// Adopted says whether the device was attached already when this process began.
	Adopted(ifindex uint32) bool
	Counters() (map[plan.PortID]observe.Counters, error)
	CounterReader() *dataplane.CounterReader
	MACs() ([]observe.MACEntry, error)
	Snapshot() (*dataplane.Snapshot, error)
	Sweep() (int, error)
	// MACTable is how many learned MACs the kernel's table holds.
	MACTable() int
	Repin() (int, error)
	// Wake, Awake and Succeed are those of dataplane.Kernel.
	Wake(id plan.PortID, wait uint32) error
	Awake() (map[plan.PortID]uint32, error)
	Succeed(port, successor, left plan.PortID) error
	Close() error
}

// Times of the loop.
const (
	sweepEvery = time.Second
	// refreshEvery bounds how long a lost notification could matter.
	refreshEvery = time.Minute
	// batchNotes is how many notifications are taken in before the plan is put right.
	batchNotes = 4096
)

// Agent is one host's agent.
type Agent struct {
	name    string
	version string
	place   string // this machine and agent, for addresses that no other host shall derive
	log     *slog.Logger
	dev     Devices
	kernel  Kernel
	losses  Losses
	// meters count what the agent does, registry has them and what a scrape reads; scrapes is nil where none are answered.
	meters   *metrics.Agent
	registry *metrics.Host
	scrapes  net.Listener
	store    *state.Store
	state    *state.State
	started  time.Time
	// configFile is what --config named; "" without.
	configFile string

	file      *spec.Config                // what the file declares
	parsed    atomic.Pointer[spec.Config] // the file last read, for whoever reads the next one
	cfg       *spec.Config                // with what commands made
	warnings  []string                    // about the configuration; a port whose device is missing says so itself, for as long as it is
	plan      *plan.Plan                  // of cfg, unless stale
	stale     bool                        // cfg, or a MAC taken over, changed since plan was made
	next      *plan.Plan                  // of cfg, where it has been made ahead of reconcile
	guard     *guard                      // of the command at hand; nil for what is not to be tried (S81)
	problems  map[plan.PortID]string
	misfits   []string // known faults of what commands made against the file
	applied   *binding.Desired
	last      map[plan.PortID]observation
	redo      bool              // what is applied was not applied whole
	flip      dataplane.Instant // when applied came into force
	littered  bool              // by a change since the last tick
	late      error             // what failed after applied came into force
	commanded bool              // the reconcile at hand is a command's, which is refused when it cannot be remembered
	retry     bool              // the last reconcile failed
	lastErr   string

	attaching attaching
	strangers strangers
	before    map[plan.PortID][]api.ProgramBefore // what runs before the switch on the devices of ports and uplinks
	settling  bool                                // a reconcile is under way
	overdue   map[plan.PortID]uint32              // waits that were told to be long, by their numbers
	born      map[plan.PortID]uint64              // of the devices in hand, hostdev.Device.Born
	hardware  map[plan.PortID]hardware            // what is known of the uplinks' devices
	bonds     map[plan.PortID]bond                // the uplinks that are bonds

	followers []follower
	// lags and neighbours are two of the followers once they follow; neighbours is nil before.
	lags       *uplinks.LAGs
	neighbours *uplinks.LLDP
	verdicts   uplinks.Verdicts
	teaming    teaming
	looping    looping
	adapters   guest.Adapters // what QEMU monitors showed
	events     *event.Bus
	captures   captures
	quiet      quiet
	adoptions  adoptions
	flows      *metering.Runner // nil where flows cannot be metered

	listener net.Listener   // for commands
	mount    func() error   // makes sure that there is a file system to pin in
	closers  []func() error // of what the process has open, in the order it was opened
	calls    chan func()
	tracing  chan struct{} // holds one while a trace is made
	stopped  chan struct{} // closed when the loop has ended
	quit     context.CancelFunc
	// ordered: a command asked the agent to stop.
	ordered   atomic.Bool
	watchedBy Supervisor // nil for nobody; see supervisor
}

// run is the loop. It returns when ctx ends; the kernel goes on as it is.
func (a *Agent) run(ctx context.Context, reload <-chan struct{}) error {
	defer close(a.stopped)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-a.calls:
			f()
		case <-a.moreToAttach():
			a.attach(nextTurn)
		case n, ok := <-a.dev.Notes():
			if !ok {
				return errors.New("the kernel's device notifications ended")
			}
			a.notified(n)
		case <-reload:
			a.supervisor().Reloading()
			a.reload()
			a.supervisor().Ready()
		case <-a.woken():
			a.settle()
		case <-a.itsTurn():
			a.settle()
		case <-a.loopsDue():
			a.goOnWithLoops()
		case <-tick.C:
			a.tick()
			a.supervisor().Alive()
		case <-refresh.C:
			if err := a.dev.Refresh(); err != nil {
				a.complain("read the devices", err)
				continue
			}
			a.settle()
			a.guardPins()
			a.lookAtChains()
		}
	}
}

// guardPins puts back what somebody removed from the pin directory, such as a cleaner of temporary files: without it the
// switch would stop with this process.
func (a *Agent) guardPins() {
	if err := a.mount(); err != nil {
		a.complain("keep the kernel's objects pinned", err)
		return
	}
	missing, err := a.kernel.Repin()
	if missing > 0 {
		a.log.Warn("somebody removed pinned kernel objects; they were put back", "missing", missing)
	}
	if err != nil {
		a.complain("keep the kernel's objects pinned", err)
	}
}

// notified takes in a notification and those behind it, then puts the plan right once.
func (a *Agent) notified(n hostdev.Note) {
	changed := false
	a.teaming.noted = n.At()
	defer func() { a.teaming.noted = time.Time{} }()
	for range batchNotes {
		c, err := a.dev.Apply(n)
		if err != nil {
			a.complain("follow the devices", err)
			a.retry = true
		}
		if c {
			changed = true
			a.watchLinks()
			a.failOver()
		}
		more, ok := next(a.dev.Notes())
		if !ok {
			break
		}
		n = more
	}
	if changed {
		a.settleSoon()
	}
}

func next(c <-chan hostdev.Note) (hostdev.Note, bool) {
	select {
	case n, ok := <-c:
		return n, ok
	default:
		return hostdev.Note{}, false
	}
}

func (a *Agent) tick() {
	if _, err := a.kernel.Sweep(); err != nil {
		a.complain("sweep learned MACs", err)
	}
	if a.retry {
		if err := a.dev.Refresh(); err != nil {
			a.complain("read the devices", err)
			return
		}
		a.settle()
	}
	if a.littered { // the garbage of a change of a thousand ports is collected now, and not during the next one
		a.littered = false
		go runtime.GC()
	}
	a.attachFailed()
	a.watchWaits()
	a.tellHeld()
	a.watchAdoptions()
	a.judgeChange()
}

// settle reconciles outside of a command: a failure is logged and tried again with the next tick.
func (a *Agent) settle() {
	began := time.Now()
	err := a.reconcile()
	a.quiet.spent(began, time.Now())
	a.retry = err != nil || a.late != nil
	switch {
	case err != nil:
		a.complain("put the plan into force", err)
	case a.late != nil:
		a.complain("finish what the plan in force leaves behind", a.late)
	default:
		a.lastErr = ""
	}
}

// keptEvents is how many events a late follower still sees.
const keptEvents = 4096

// complain logs an error once, until it changes or goes away.
func (a *Agent) complain(what string, err error) {
	if text := what + ": " + err.Error(); text != a.lastErr {
		a.lastErr = text
		a.log.Error(what, "err", err)
	}
}

// do runs f in the loop and waits for it.
func (a *Agent) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case a.calls <- func() { done <- f() }:
		return <-done
	case <-a.stopped:
		return errors.New("the agent is stopping")
	case <-ctx.Done():
		return ctx.Err()
	}
}
