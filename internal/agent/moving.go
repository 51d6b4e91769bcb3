package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/state"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
)

// A port follows its guest from host to host (S79, S100). Whether it speaks is decided by its presence, from local
// facts. What follows from that is here: its generation, and what belongs to the port and travels with it.

// baggage is what belongs to a port and travels with it. All is called in the loop.
type baggage interface {
	// reads returns what reads the MACs that were learned at the port; nil where there are none. It takes long with
	// many of them, and may be called beside the loop.
	reads(id plan.PortID) (func() ([]observe.MACEntry, error), error)
	// settled returns when everything that was under way through the port at the call is counted. It takes a grace
	// period of the kernel, some milliseconds, and is called beside the loop.
	settled() error
	// pack reads the rest of what the port has now, and puts these MACs to it.
	pack(id plan.PortID, macs []observe.MACEntry) (*hostv1.PortBundle, error)
	// unpack makes ready what a port had where it comes from, with its MACs on disk. It takes long with many of them,
	// and is called beside the loop. What is not kept is to be discarded.
	unpack(b *hostv1.PortBundle) (*unpacked, error)
	// keep gives a waiting port what it had where it comes from, in place of an earlier copy. It is on disk when keep
	// returns.
	keep(id plan.PortID, number uint64, u *unpacked) error
	// install gives the port the rest of it when its guest runs here.
	install(id plan.PortID) error
	// drop takes back what keep gave.
	drop(id plan.PortID)
}

// door is where the host takes copies.
type door interface {
	Open() (addresses []string, err error)
	Close()
}

// caller gives copies to other hosts.
type caller interface {
	Call(ctx context.Context, to *controllerv1.MoveOrder, q *hostv1.CopyPortRequest) (*hostv1.CopyPortResponse, error)
}

// moving owns what the host knows about ports that go from host to host.
type moving struct {
	*shared
	ports   *ports
	waiting *waiting
	// goods is what travels; nil where nothing does.
	goods baggage
	// door is nil for a host that takes no copies, caller for one that gives none.
	door   door
	caller caller
	// offer tells the controllers which moves the host takes over.
	offer func(*controllerv1.HostOffers)
	flaps *flaps
	// changed says that what is reported may be another.
	changed func()

	known   map[string]*state.Travel // by the adapter
	packed  map[plan.PortID][]byte   // of ports that are about to be removed
	looking bool
	open    bool // the door is
	ferries map[string]*ferrying
	// news is closed, and replaced, when a move has come further.
	news chan struct{}

	mu      sync.Mutex
	expects map[string]string // the source of each open move to this host, "" while it is not known; for the door
}

// newMoving returns the owner, with the records of the previous agent.
func newMoving(s *shared) *moving {
	mv := &moving{shared: s, ferries: map[string]*ferrying{}, packed: map[plan.PortID][]byte{},
		news: make(chan struct{}), offer: func(*controllerv1.HostOffers) {}, changed: func() {},
		expects: map[string]string{}, flaps: &flaps{shared: s}}
	mv.resume()
	return mv
}

func keyOf(vm, adapter string) string { return vm + "/" + adapter }

// resume takes over the records of the previous agent.
func (mv *moving) resume() {
	mv.index()
	for _, t := range mv.state.Travels {
		if t.Away != nil {
			t.Away.Resumed()
		}
	}
}

// index makes the index that of the present list.
func (mv *moving) index() {
	mv.known = make(map[string]*state.Travel, len(mv.state.Travels))
	for _, t := range mv.state.Travels {
		mv.known[keyOf(t.VM, t.Adapter)] = t
	}
}

// of returns the record of an adapter, made where it is missing.
func (mv *moving) of(n *state.NIC) *state.Travel {
	key := keyOf(n.VM, n.Adapter)
	if mv.known[key] == nil {
		mv.state.Travels.Add(n.VM, n.Adapter, abi.MaxPorts)
		mv.index() // an old one may have gone
	}
	return mv.known[key]
}

// generationOf is the generation of an adapter's port; 0 where it never served its guest here.
func (mv *moving) generationOf(n *state.NIC) uint64 {
	if t := mv.known[keyOf(n.VM, n.Adapter)]; t != nil {
		return t.Generation
	}
	return 0
}

// travelOf returns the record of a connected port, nil for none.
func (mv *moving) travelOf(port string) *state.Travel {
	if n := mv.state.NICOf(port); n != nil {
		return mv.known[keyOf(n.VM, n.Adapter)]
	}
	return nil
}

// sight is what the host sees of a port's guest: the zero value for a port that is gone.
type sight struct {
	guest moves.Guest
	wait  uint32 // the number of the port's last wait
	// arrives: the port waits for its guest to arrive.
	arrives bool
}

// look compares the moves with the ports and their waits. It is called after everything that may have changed where a
// guest runs, and does nothing where nothing changed.
func (mv *moving) look() {
	if mv.looking {
		return
	}
	mv.looking = true
	defer func() { mv.looking = false; clear(mv.packed) }()
	changed, there := false, map[*state.Travel]bool{}
	for n, id := range mv.connected() {
		t := mv.of(n)
		t.Port, there[t] = id, true
		changed = mv.lookAt(t, mv.see(id)) || changed
	}
	for _, t := range mv.state.Travels {
		if (t.Serves || t.Open()) && !there[t] {
			changed = mv.lookAt(t, sight{guest: moves.GuestGone}) || changed
		}
	}
	if changed {
		mv.follow()
	}
}

// connected are the adapters whose ports are connected.
func (mv *moving) connected() map[*state.NIC]plan.PortID {
	ports := make(map[string]*spec.Port, len(mv.state.Ports))
	for i := range mv.state.Ports {
		ports[mv.state.Ports[i].Name] = &mv.state.Ports[i]
	}
	out := make(map[*state.NIC]plan.PortID, len(mv.state.NICs))
	for i := range mv.state.NICs {
		n := &mv.state.NICs[i]
		if p := ports[n.Port]; p != nil && p.Switch == n.Switch && p.PortGroup == n.PortGroup {
			out[n] = plan.PortID{Switch: n.Switch, Name: n.Port}
		}
	}
	return out
}

// see is what the host sees of a connected port's guest.
func (mv *moving) see(id plan.PortID) sight {
	w := mv.state.WaitOf(id)
	s := sight{guest: moves.GuestRuns}
	if w != nil {
		s.wait = w.Number
	}
	switch {
	case mv.state.Of(id) == nil: // its device is gone, and the guest with it
		return sight{guest: moves.GuestGone, wait: s.wait}
	case w == nil:
	case w.Unsure(): // its hypervisor says that it has left, and is asked again
		s.guest = moves.GuestUnsure
	case !w.Silent():
	case w.Doubt, w.Unstarted():
		s.guest = moves.GuestUnsure
	case w.Left:
		s.guest = moves.GuestLeft
	default:
		s.guest, s.arrives = moves.GuestGone, w.InPlaceOf == ""
	}
	return s
}

// lookAt takes in what is seen of one port.
func (mv *moving) lookAt(t *state.Travel, s sight) (changed bool) {
	now, before := time.Now(), marked(t)
	var heard uint64
	if t.Here != nil {
		heard = t.Here.Known
	}
	if a := t.Away; a != nil {
		heard = max(heard, a.Heard)
		saw, pack := a.See(s.guest, s.wait, t.Generation, now)
		if changed = changed || saw; pack {
			a.Packed(mv.packs(t), now)
		}
	}
	serves := t.Serves
	raised := t.Look(s.guest == moves.GuestRuns, s.wait, heard, t.Here.Came())
	changed = changed || raised || serves != t.Serves
	if s.arrives && (t.Here == nil || t.Here.Wait != s.wait) {
		mv.begins(t, s.wait, now)
		changed = true
	}
	if t.Here != nil {
		changed = mv.lookHere(t, s, now) || changed
	}
	mv.tell(t, before)
	return changed
}

// lookHere takes in what is seen of a port to which its guest moves.
func (mv *moving) lookHere(t *state.Travel, s sight, now time.Time) (changed bool) {
	h := t.Here
	switch s.guest {
	case moves.GuestRuns:
		arrived := h.Arrived()
		if changed = h.Activated(now, "the guest runs here"); changed && !arrived {
			mv.installs(t)
		}
	case moves.GuestLeft:
		changed = h.Parts()
	case moves.GuestGone:
		if !s.arrives && !h.Over() {
			h.Gone(now, "the port is gone here")
			h.Wait, changed = 0, true // a port that is back waits for its guest anew
		}
	}
	return changed
}

// installs gives a port what came with it, since its guest runs here.
func (mv *moving) installs(t *state.Travel) {
	if mv.goods == nil {
		return
	}
	if err := mv.goods.install(t.Port); err != nil {
		t.Here.Problem = err.Error()
		mv.Complain("give a port what came with it", err)
	}
}

// mark is how far the moves of a port have come.
type mark struct {
	here, away *moves.Track
	steps      [2]moves.Phase
}

func marked(t *state.Travel) (m mark) {
	if t.Here != nil {
		m.here, m.steps[0] = &t.Here.Track, t.Here.Phase
	}
	if t.Away != nil {
		m.away, m.steps[1] = &t.Away.Track, t.Away.Phase
	}
	return m
}

// tell publishes the steps that came about since the mark.
func (mv *moving) tell(t *state.Travel, since mark) {
	now := marked(t)
	for i, track := range []*moves.Track{now.here, now.away} {
		was := []*moves.Track{since.here, since.away}[i]
		if track == nil || track == was && now.steps[i] == since.steps[i] || len(track.Steps) == 0 {
			continue
		}
		e := about("port", t.Port)
		e.Kind = event.Migration
		e.Text = fmt.Sprintf("port %s: move %.8s %s: %s", t.Port.Name, track.Move, track.Phase,
			track.Steps[len(track.Steps)-1].Text)
		mv.events.Publish(e)
		mv.log.Info(string(e.Kind), "port", t.Port.String(), "move", track.Move, "phase", string(track.Phase),
			"peer", track.HostName, "what", track.Steps[len(track.Steps)-1].Text)
	}
}

// follow brings what others see in line with the moves: the door, the offers, the calls, and those who wait for news.
// What it depends on is saved by the reconcile that follows.
func (mv *moving) follow() {
	mv.offers()
	mv.sends()
	close(mv.news)
	mv.news = make(chan struct{})
	mv.changed()
}

// Settled is called in the loop after each reconcile.
func (mv *moving) Settled(uplinks.InForce) { mv.look() }

// tick is called every second: a door that is no longer needed closes.
func (mv *moving) tick() {
	mv.look()
	mv.offers()
}

// Close ends the calls, and closes the door.
func (mv *moving) Close() error {
	for _, f := range mv.ferries {
		f.stop()
		<-f.done
	}
	if mv.open {
		mv.door.Close()
	}
	return nil
}
