package migration

import (
	"context"
	"log/slog"
	"sync"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/active"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/dataplane"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// Host is what the part needs of its host. Its functions are called in the loop.
type Host struct {
	active.Reader
	Loop     *loop.Loop
	Log      *slog.Logger
	Events   *event.Bus
	Complain func(what string, err error)
	// Records is the part's document: how far each move has come.
	Records *state.Travels
	// Save writes the part's document to disk.
	Save func() error
	// Adapters are those of VMs whose ports are connected.
	Adapters func() []Adapter
	// AdapterOf is the adapter of a connected port; false where nobody said whose it is.
	AdapterOf func(port string) (Adapter, bool)
	// PortGroup is that of a port connected by command, "" for no such port.
	PortGroup func(port string) string
	// Wait is the wait of a port, over or not; nil for none.
	Wait func(plan.PortID) *state.Wait
	// HasDevice reports whether a port has its device.
	HasDevice func(plan.PortID) bool
}

// Adapter is an adapter of a VM, and its port on this host.
type Adapter struct {
	VM, Name string
	Port     plan.PortID
}

func (a Adapter) key() string { return keyOf(a.VM, a.Name) }

// Baggage is what belongs to a port and travels with it.
type Baggage interface {
	// Reads returns what reads the MACs that were learned at the port, and what parts have of it; nil where there is
	// nothing. It takes long with many of them, and may be called beside the loop.
	Reads(id plan.PortID) (func() (portstate.Read, error), error)
	// Settled returns when everything that was under way through the port at the call is counted. It takes a grace
	// period of the kernel, some milliseconds, and is called beside the loop.
	Settled() error
	// Pack reads the rest of what the port has now, and puts what was read to it.
	Pack(id plan.PortID, read portstate.Read) (*hostv1.PortBundle, error)
	// Unpack makes ready what a port had where it comes from, with what is large on disk. It takes long with many MACs,
	// and is called beside the loop. What is not kept is to be discarded.
	Unpack(b *hostv1.PortBundle) (*portstate.Unpacked, error)
	// Keep gives a waiting port what it had where it comes from, in place of an earlier copy. It is on disk when Keep
	// returns.
	Keep(id plan.PortID, number uint64, u *portstate.Unpacked) error
	// Install gives the port the rest of it when its guest runs here.
	Install(id plan.PortID) error
	// Drop takes back what Keep gave.
	Drop(id plan.PortID)
}

// Listener is where the host takes copies.
type Listener interface {
	Open() (addresses []string, err error)
	Close()
}

// Caller gives copies to other hosts.
type Caller interface {
	Call(ctx context.Context, to *controllerv1.MoveOrder, q *hostv1.CopyPortRequest) (*hostv1.CopyPortResponse, error)
}

// Conversation is the host's conversation with its controllers.
type Conversation interface {
	// Offer tells the controllers which moves the host takes over: all of them, each time.
	Offer(*controllerv1.HostOffers)
	// Changed says that what they are told of ports may be another.
	Changed()
}

// Part follows the ports that go from host to host.
type Part struct {
	host    Host
	records records
	flaps   flaps

	baggage  Baggage      // nil where nothing travels
	listener Listener     // nil for a host that takes no copies
	caller   Caller       // nil for one that gives none
	with     Conversation // nil for an agent without one

	packed    map[plan.PortID][]byte // of ports that are about to be removed
	looking   bool
	listens   bool // the listener is open
	stale     bool // what others see may not be in line with the moves
	transfers map[string]*transfer
	// news is closed, and replaced, when a move has come further.
	news chan struct{}

	mu      sync.Mutex
	expects map[string]string // the source of each open move to this host, "" while it is not known; for the listener
}

// New returns the part, with the records of the previous agent.
func New(h Host) *Part {
	return &Part{host: h, records: resume(h.Records), flaps: flaps{log: h.Log, events: h.Events},
		transfers: map[string]*transfer{}, packed: map[plan.PortID][]byte{}, news: make(chan struct{}),
		expects: map[string]string{}}
}

// Carry says what travels with ports. It is called before the loop runs, as are Open and Join.
func (mv *Part) Carry(b Baggage) { mv.baggage = b }

// Open says how hosts reach each other. The listener opens when a port waits for its guest.
func (mv *Part) Open(l Listener, c Caller) { mv.listener, mv.caller, mv.stale = l, c, true }

// Join says how the controllers are told.
func (mv *Part) Join(c Conversation) { mv.with = c }

// GenerationOf is the generation of an adapter's port; 0 where it never served its guest here.
func (mv *Part) GenerationOf(vm, adapter string) uint64 {
	if t := mv.records.get(keyOf(vm, adapter)); t != nil {
		return t.Generation
	}
	return 0
}

// FlappingOf are the MACs that go to and fro between a port and other hosts, as a controller says.
func (mv *Part) FlappingOf(id plan.PortID) []api.FlappingMAC { return mv.flaps.of(id) }

// Learned takes in what the switch program reports of MACs.
func (mv *Part) Learned(e dataplane.Told) { mv.flaps.learned(e) }

// travelOf returns the record of a connected port, nil for none.
func (mv *Part) travelOf(port string) *state.Travel {
	if a, is := mv.host.AdapterOf(port); is {
		return mv.records.get(a.key())
	}
	return nil
}

// follow brings what others see in line with the moves: the listener, the offers, the calls, and those who wait for
// news. What it depends on is saved by the reconcile that follows.
func (mv *Part) follow() {
	mv.offers()
	mv.sends()
	close(mv.news)
	mv.news = make(chan struct{})
	if mv.with != nil {
		mv.with.Changed()
	}
}

// Settled looks at the moves after each reconcile.
func (mv *Part) Settled(uplinks.InForce) { mv.Look() }

// PresenceChanged looks at the moves when ports have begun or ended to wait for their guests.
func (mv *Part) PresenceChanged() { mv.Look() }

// Tick is called every second: a listener that is no longer needed closes.
func (mv *Part) Tick() {
	mv.Look()
	mv.offers()
}

// Close ends the calls, and closes the listener.
func (mv *Part) Close() error {
	for _, f := range mv.transfers {
		f.end()
	}
	if mv.listens {
		mv.listener.Close()
	}
	return nil
}
