package agent

import (
	"context"
	"errors"
	"net"
	"runtime"
	"time"

	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/dataplane/compile"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// Kernel is the part of the dataplane that the agent needs.
type Kernel interface {
	// Change, Attach, Unattached, Chain and RetryAttach are those of dataplane.Kernel.
	Change(d binding.Desired, ready func() error) (dataplane.Instant, error)
	Attach(budget time.Duration) (left int, err error)
	Unattached() map[uint32]error
	Chain(ifindex uint32) (dataplane.Chain, error)
	Reteam(binding.Desired) (dataplane.Instant, error)
	RetryAttach()
	// Adopted reports whether the device was already attached when this process began.
	Adopted(ifindex uint32) bool
	Counters() (map[plan.PortID]observe.Counters, error)
	CounterReader() *dataplane.CounterReader
	MACs() ([]observe.MACEntry, error)
	MACsAt() (list []observe.MACEntry, at time.Time, err error)
	ForgetMACs(list []observe.MACEntry) (removed []observe.MACEntry, err error)
	Speakers() ([]observe.Speaker, error)
	Snapshot() (*dataplane.Snapshot, error)
	Sweep() (int, error)
	// MACTable returns the capacity of the kernel's table of learned MACs.
	MACTable() int
	Repin() (int, error)
	// Waits and Succeed are those of dataplane.Kernel.
	Waits() dataplane.Waits
	// Travel is that of dataplane.Kernel.
	Travel() dataplane.Travel
	Succeed(port, successor, left plan.PortID) error
	// Number, Bindings, Neighbours, Bind, Unbind, Locate and Reached are those of dataplane.Kernel.
	Bindings() ([]overlay.Bound, error)
	Neighbours() (*dataplane.NeighbourReader, error)
	Bind(sw string, all bool, put []overlay.Binding, removed []overlay.Address) error
	Unbind([]overlay.Bound) error
	Locate(sw string, all bool, put []overlay.Location, removed []overlay.Key) error
	Reached(sw string) overlay.Reach
	Number(seg compile.OverlaySegment) (uint16, bool)
	Close() error
}

// Times of the loop.
const (
	sweepEvery = time.Second
	// refreshEvery bounds how long a lost notification can matter.
	refreshEvery = time.Minute
	// batchNotes is how many notifications are taken together before the plan is updated.
	batchNotes = 4096
)

// Agent is one host's agent: the owners of its state, and the resources that the process has open.
type Agent struct {
	*shared
	owners

	scrapes  net.Listener   // nil if the agent serves no metrics
	listener net.Listener   // for commands
	closers  []func() error // release the open resources, in the order of opening
	// watchedBy is nil if no supervisor watches the process; see supervisor.
	watchedBy Supervisor
}

// newAgent returns an agent whose plan is not made yet.
func newAgent(s *shared) *Agent {
	a := &Agent{shared: s, owners: join(s)}
	a.teaming.lags = uplinks.NewLAGs(a.uplinkHost())
	return a
}

// run is the loop. It returns when ctx ends; the kernel continues with the active plan.
func (a *Agent) run(ctx context.Context, reload <-chan struct{}) error {
	defer a.End()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	refresh := time.NewTicker(refreshEvery)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-a.Calls():
			f()
		case <-a.attaching.moreToAttach():
			a.attaching.attach(nextTurn)
		case n, ok := <-a.dev.Notes():
			if !ok {
				return errors.New("the kernel's device notifications ended")
			}
			a.notified(n)
		case <-reload:
			a.supervisor().Reloading()
			a.changer.reload()
			a.supervisor().Ready()
		case <-a.teaming.woken():
			a.settler.settle()
		case <-a.settler.itsTurn():
			a.settler.settle()
		case <-tick.C:
			a.tick()
			a.supervisor().Alive()
		case <-refresh.C:
			if err := a.dev.Refresh(); err != nil {
				a.Complain("read the devices", err)
				continue
			}
			a.restoring.Everything()
			a.settler.settle()
			a.attaching.guardPins()
			a.chains.lookAtChains()
		}
	}
}

// notified takes a notification and those queued behind it, then updates the plan once.
func (a *Agent) notified(n hostdev.Note) {
	changed := false
	a.teaming.noted = n.At()
	defer func() { a.teaming.noted = time.Time{} }()
	for range batchNotes {
		c, err := a.dev.Apply(n)
		if err != nil {
			a.Complain("follow the devices", err)
			a.settler.retry = true
		}
		if a.restoring.Noted(n) {
			changed = true
		}
		if c {
			changed = true
			a.teaming.watchLinks(a.Active().Plan)
			a.teaming.failOver()
		}
		more, ok := next(a.dev.Notes())
		if !ok {
			break
		}
		n = more
	}
	if changed {
		a.settler.settleSoon()
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
		a.Complain("sweep learned MACs", err)
	}
	if a.settler.retry {
		if err := a.dev.Refresh(); err != nil {
			a.Complain("read the devices", err)
			return
		}
		a.settler.settle()
	}
	if a.effect.littered { // collect the garbage of a change of a thousand ports now, and not during the next change
		a.effect.littered = false
		go runtime.GC()
	}
	a.attaching.attachFailed()
	a.waiting.Watch()
	a.parts.Tick()
	a.reporter.tellHeld()
	a.membership.isolation.tellHeld()
	a.teaming.lags.TellHeld()
	a.adoptions.Watch()
	a.trials.judgeChange()
}

// keptEvents is how many events are kept for followers that come later.
const keptEvents = 4096
