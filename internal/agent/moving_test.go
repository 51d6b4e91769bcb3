package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/migration"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const movingVM = "6f9619ff-8b86-d011-b42d-00c04fc96401"

// fakeGoods is what a port has: one number, which is the version of the bundle.
type fakeGoods struct {
	has       uint32 // what the port has of its own
	kept      uint32 // what came with it
	installed int
	dropped   int
	settles   func() // called when somebody waits for frames that are under way
}

func (g *fakeGoods) Reads(plan.PortID) (func() (portstate.Read, error), error) { return nil, nil }

func (g *fakeGoods) Settled() error {
	if g.settles != nil {
		g.settles()
	}
	return nil
}

func (g *fakeGoods) Pack(plan.PortID, portstate.Read) (*hostv1.PortBundle, error) {
	return &hostv1.PortBundle{Version: g.has + g.kept}, nil
}

func (g *fakeGoods) Unpack(b *hostv1.PortBundle) (*portstate.Unpacked, error) {
	return &portstate.Unpacked{Came: &portstate.Goods{Base: observe.Base{Counters: observe.Counters{
		Delivered: uint64(b.GetVersion())}}}}, nil
}

func (g *fakeGoods) Keep(_ plan.PortID, _ uint64, u *portstate.Unpacked) error {
	g.kept = uint32(u.Came.Base.Counters.Delivered)
	return nil
}

func (g *fakeGoods) Install(plan.PortID) error { g.installed++; return nil }
func (g *fakeGoods) Drop(plan.PortID)          { g.kept = 0; g.dropped++ }

type fakeDoor struct{ open bool }

func (d *fakeDoor) Open() ([]string, error) { d.open = true; return []string{"192.0.2.1:7413"}, nil }
func (d *fakeDoor) Close()                  { d.open = false }

// movingHost is an agent on fakes whose loop runs.
type movingHost struct {
	*rig
	name  string
	goods fakeGoods
	door  fakeDoor
	pair  *movingPair
	down  bool // between two agents; held by the pair's mutex
	end   chan struct{}
	ended chan struct{}
}

// movingPair are two hosts, and what lies between them.
type movingPair struct {
	t      *testing.T
	hosts  [2]*movingHost
	mu     sync.Mutex
	offers [2]*controllerv1.HostOffers
	cut    bool // no call gets through
	away   bool // no controller is there
}

func newMovingPair(t *testing.T) *movingPair {
	p := &movingPair{t: t}
	for i := range p.hosts {
		h := &movingHost{rig: newRig(t, base), name: fmt.Sprintf("h%d", i+1), pair: p}
		h.dev.tap("tap0")
		p.hosts[i] = h
		h.begin()
	}
	t.Cleanup(func() {
		for _, h := range p.hosts {
			h.stop()
		}
	})
	return p
}

// begin joins the agent to the other one, and runs its loop.
func (h *movingHost) begin() {
	i, p := 0, h.pair
	if p.hosts[1] == h || p.hosts[0] != nil && p.hosts[0] != h {
		i = 1
	}
	h.moving.Carry(&h.goods)
	h.moving.Open(&h.door, h)
	h.moving.Join(offersOf{p, i})
	h.end, h.ended = make(chan struct{}), make(chan struct{})
	h.moving.Look()
	go func() {
		defer close(h.ended)
		for {
			select {
			case f := <-h.Calls():
				f()
			case <-h.settler.itsTurn():
				h.settler.settle()
			case <-h.end:
				return
			}
		}
	}()
}

// offersOf are the offers of one of the hosts to the controllers.
type offersOf struct {
	pair *movingPair
	host int
}

func (of offersOf) Offer(all *controllerv1.HostOffers) {
	of.pair.mu.Lock()
	of.pair.offers[of.host] = all
	of.pair.mu.Unlock()
}

func (offersOf) Changed() {}

func (h *movingHost) stop() {
	close(h.end)
	<-h.ended
	h.End()
	if err := h.moving.Close(); err != nil {
		h.t.Error(err)
	}
}

// kill ends the agent without a last word, and starts another one on what it has left.
func (h *movingHost) kill() {
	h.t.Helper()
	h.isDown(true) // nobody calls an agent that has not begun
	h.stop()
	if err := h.restart(base); err != nil {
		h.t.Fatal(err)
	}
	h.begin()
	h.isDown(false)
}

func (h *movingHost) isDown(is bool) {
	h.pair.mu.Lock()
	h.down = is
	h.pair.mu.Unlock()
}

// running is the agent that runs on the host; nil for none.
func (h *movingHost) running() *migration.Part {
	h.pair.mu.Lock()
	defer h.pair.mu.Unlock()
	if h.down {
		return nil
	}
	return h.moving
}

// Call is the way to the other host.
func (h *movingHost) Call(ctx context.Context, to *controllerv1.MoveOrder, q *hostv1.CopyPortRequest) (
	*hostv1.CopyPortResponse, error) {
	h.pair.mu.Lock()
	cut := h.pair.cut
	h.pair.mu.Unlock()
	if cut {
		return nil, errors.New("no route")
	}
	for _, o := range h.pair.hosts {
		if o.name != to.GetHostName() {
			continue
		}
		if mv := o.running(); mv != nil {
			return mv.Take(ctx, q)
		}
	}
	return nil, errors.New("no such host")
}

// noWay has no call of a host get through to the other, or all again.
func (p *movingPair) noWay(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = is
}

// controls is what the controllers do with the offers: each host is named to the other.
func (p *movingPair) controls() {
	p.mu.Lock()
	offers, away := p.offers, p.away
	p.mu.Unlock()
	if away {
		return
	}
	for i, h := range p.hosts {
		m, o := &controllerv1.HostMoves{}, p.hosts[1-i]
		for _, of := range offers[1-i].GetOffers() {
			m.Orders = append(m.Orders, &controllerv1.MoveOrder{Move: of.GetMove(), Vm: of.GetVm(),
				Adapter: of.GetAdapter(), Host: "id of " + o.name, HostName: o.name, Addresses: of.GetAddresses()})
		}
		for _, of := range offers[i].GetOffers() {
			m.Expected = append(m.Expected, &controllerv1.MoveExpected{Move: of.GetMove(), Host: "id of " + o.name,
				HostName: o.name})
		}
		if err := h.moving.Moves(context.Background(), m); err != nil {
			p.t.Error(err)
		}
	}
}

// until waits until a condition holds in the host's loop. The controllers work meanwhile.
func (h *movingHost) until(what string, cond func(t *state.Travel) bool) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h.pair.controls()
		ok := false
		if err := h.Do(context.Background(), func() error {
			t := h.state.Travels.Of(movingVM, "net0")
			ok = t != nil && cond(t)
			return nil
		}); err != nil {
			h.t.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			all, err := h.moveCommands().PortMoves(context.Background(), api.PortMoveOf{})
			h.t.Fatalf("%s: not within a minute: %+v %v", what, all, err)
		}
	}
}

func movingPort() api.Connect {
	return api.Connect{Port: spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01"},
		VM: movingVM, Adapter: "net0"}
}

func (h *movingHost) must(_ any, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// speaksNow reports whether the port serves its guest.
func (h *movingHost) speaksNow() (is bool) {
	h.must(nil, h.Do(context.Background(), func() error { is = !h.fact("vm").Waits(); return nil }))
	return is
}

// TestS100_TwoAgentsMoveAPort moves a port with every step, and kills either agent before each of them.
func TestS100_TwoAgentsMoveAPort(t *testing.T) {
	steps := []string{"prepare", "copy", "silence", "activate", "release", "nothing"}
	for side := range 3 { // the last one kills nobody
		for _, before := range steps[1:] {
			if side == 2 && before != "nothing" {
				continue
			}
			t.Run(fmt.Sprintf("host %d killed before %s", side, before), func(t *testing.T) {
				t.Parallel() // most of its time is pauses between copies
				p := newMovingPair(t)
				moveOnce(p, func(step string) {
					if step == before && side < 2 {
						p.hosts[side].kill()
					}
				})
			})
		}
	}
}

// moveOnce moves the port from the first host to the second.
func moveOnce(p *movingPair, before func(step string)) {
	t, ctx, from, to := p.t, context.Background(), p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	from.until("it serves its guest", func(t *state.Travel) bool { return t.Generation == 1 && t.Serves })
	from.goods.has = 7
	before("prepare")
	to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
	before("copy")
	to.until("a copy is there", func(t *state.Travel) bool { return t.Here.Confirmed > 0 })
	from.must(from.moveCommands().CopyMovingPort(ctx, api.PortMoveOf{Port: "vm"}))
	if to.speaksNow() || !from.speaksNow() {
		t.Errorf("before the guest stops: source %v, target %v", from.speaksNow(), to.speaksNow())
	}
	before("silence")
	from.must(nil, from.Do(ctx, func() error { from.goods.has = 9; return nil }))
	from.must(from.moveCommands().SilencePort(ctx, api.PortMoveOf{Port: "vm"}))
	from.must(from.moveCommands().SilencePort(ctx, api.PortMoveOf{Port: "vm"})) // repeated
	if to.speaksNow() || from.speaksNow() {
		t.Errorf("while the guest stands still: source %v, target %v", from.speaksNow(), to.speaksNow())
	}
	before("activate")
	to.must(nil, to.commands.Activate(ctx, api.Activate{Port: "vm"}))
	to.until("the last copy is there", func(t *state.Travel) bool { return t.Here.Last && t.Here.Arrived() })
	to.must(nil, to.Do(ctx, func() error {
		if got := to.state.Travels.Of(movingVM, "net0"); to.goods.kept != 9 || got.Generation != 2 {
			t.Errorf("the target has %d of 9, generation %d", to.goods.kept, got.Generation)
		}
		return nil
	}))
	if !to.speaksNow() || from.speaksNow() {
		t.Errorf("after the move: source %v, target %v", from.speaksNow(), to.speaksNow())
	}
	before("release")
	from.until("it knows", func(t *state.Travel) bool { return t.Away != nil && t.Away.Elsewhere && t.Away.Last })
	from.must(nil, from.moveCommands().ReleaseMovedPort(ctx, api.PortMoveOf{Port: "vm"}))
	from.must(nil, from.moveCommands().ReleaseMovedPort(ctx, api.PortMoveOf{Port: "vm"})) // a double release
	before("nothing")
	from.until("released", func(t *state.Travel) bool { return t.Away.Phase == moves.Released && !t.Serves })
	all, err := to.moveCommands().PortMoves(ctx, api.PortMoveOf{Port: "vm"})
	if err != nil || len(all) != 1 || all[0].Side != api.MoveTarget || all[0].Phase != "active" ||
		all[0].Peer != "h1" || !all[0].Last || all[0].Copies == 0 {
		t.Errorf("shown as %+v %v", all, err)
	}
}

// TestS79_TheLastCopyHasWhatWasUnderWay: a frame that the program had begun with before the port became silent is
// counted after that.
func TestS79_TheLastCopyHasWhatWasUnderWay(t *testing.T) {
	p, ctx := newMovingPair(t), context.Background()
	from, to := p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	from.until("it serves its guest", func(t *state.Travel) bool { return t.Serves })
	from.must(nil, from.Do(ctx, func() error { from.goods.has = 9; return nil }))
	to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
	to.until("a copy is there", func(t *state.Travel) bool { return t.Here.Confirmed > 0 })
	from.must(nil, from.Do(ctx, func() error {
		from.goods.settles = func() {
			from.must(nil, from.Do(ctx, func() error { from.goods.has = 10; return nil }))
		}
		return nil
	}))
	from.must(from.moveCommands().SilencePort(ctx, api.PortMoveOf{Port: "vm"}))
	to.until("the last copy is there", func(t *state.Travel) bool { return t.Here.Last })
	to.must(nil, to.Do(ctx, func() error {
		if to.goods.kept != 10 {
			t.Errorf("the target has %d of 10", to.goods.kept)
		}
		return nil
	}))
}

func TestS100_ACancelledMoveLeavesAllAsItWas(t *testing.T) {
	p, ctx := newMovingPair(t), context.Background()
	from, to := p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	if err := from.moveCommands().CancelMove(ctx, api.PortMoveOf{Port: "vm"}); err == nil ||
		!strings.Contains(err.Error(), "nothing to cancel") {
		t.Errorf("a running port was cancelled: %v", err)
	}
	if err := from.moveCommands().ReleaseMovedPort(ctx, api.PortMoveOf{Port: "vm"}); err == nil ||
		!strings.Contains(err.Error(), "its guest has not left") {
		t.Errorf("a running port was released: %v", err)
	}
	to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
	to.until("a copy is there", func(t *state.Travel) bool { return t.Here.Confirmed > 0 })
	for range 2 { // a caller that got no answer calls again
		to.must(nil, to.moveCommands().CancelMove(ctx, api.PortMoveOf{Port: "vm"}))
	}
	from.until("the source knows", func(t *state.Travel) bool {
		return t.Away.Phase == moves.Cancelled && t.Generation == 1 && t.Serves
	})
	if !from.speaksNow() {
		t.Error("the source is silent")
	}
	found := false
	list, _, _ := from.events.After(ctx, 0)
	for _, e := range list {
		found = found || e.Kind == event.Migration && e.Port == "vm" && strings.Contains(e.Text, "cancelled")
	}
	if !found {
		t.Errorf("no event tells of it: %+v", list)
	}
	if _, err := from.moveCommands().CopyMovingPort(ctx, api.PortMoveOf{Port: "vm"}); err == nil ||
		!strings.Contains(err.Error(), "moves nowhere") {
		t.Errorf("%v", err)
	}
}

// A controller that has not heard that a move was cancelled orders it again while the next one is under way: the source
// goes on with that one, and hears that the guest has arrived.
func TestS100_AnOrderOfACancelledMoveEndsNoOther(t *testing.T) {
	p, ctx := newMovingPair(t), context.Background()
	from, to := p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	old := ""
	for round := range 2 {
		to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
		to.until("a copy is there", func(t *state.Travel) bool { return t.Here.Confirmed > 0 })
		if round == 1 {
			break
		}
		from.until("the source moves it", func(t *state.Travel) bool { old = t.Away.Move; return !t.Away.Over() })
		to.must(nil, to.moveCommands().CancelMove(ctx, api.PortMoveOf{Port: "vm"}))
		from.until("the source knows", func(t *state.Travel) bool { return t.Away.Phase == moves.Cancelled })
	}
	from.must(from.moveCommands().SilencePort(ctx, api.PortMoveOf{Port: "vm"}))
	to.until("the last copy is there", func(t *state.Travel) bool { return t.Here.Last })
	p.noWay(true) // the target has all that it needs, and the source has not heard that the guest runs there
	to.must(nil, to.commands.Activate(ctx, api.Activate{Port: "vm"}))
	late := &controllerv1.HostMoves{Orders: []*controllerv1.MoveOrder{{Move: old, Vm: movingVM, Adapter: "net0",
		Host: "id of another", HostName: "another"}}}
	from.must(nil, from.moving.Moves(ctx, late))
	p.noWay(false)
	from.until("it hears of the guest", func(t *state.Travel) bool {
		return t.Away.Move != old && t.Away.Phase == moves.Active && t.Away.Last
	})
}

// A controller that has not heard that a move was cancelled orders it of a source that has never heard of that move,
// while the next one is under way: the source goes on with that one, and hears that the guest has arrived.
func TestS100_ALateOrderOfAnUnknownMoveEndsNoOther(t *testing.T) {
	for name, target := range map[string]string{"its target knows no such move": "h2", "nobody answers": "another"} {
		t.Run(name, func(t *testing.T) {
			p, ctx := newMovingPair(t), context.Background()
			from, to := p.hosts[0], p.hosts[1]
			from.must(from.commands.Connect(ctx, movingPort()))
			to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
			to.until("a copy is there", func(t *state.Travel) bool { return t.Here.Confirmed > 0 })
			from.must(from.moveCommands().SilencePort(ctx, api.PortMoveOf{Port: "vm"}))
			to.until("the last copy is there", func(t *state.Travel) bool { return t.Here.Last })
			move := ""
			from.until("the source knows", func(t *state.Travel) bool { move = t.Away.Move; return t.Away.Last })
			p.noWay(true) // the source has not heard that the guest runs there
			to.must(nil, to.commands.Activate(ctx, api.Activate{Port: "vm"}))
			const late = "0123456789abcdef0123456789abcdef"
			from.must(nil, from.moving.Moves(ctx, &controllerv1.HostMoves{Orders: []*controllerv1.MoveOrder{{Move: late,
				Vm: movingVM, Adapter: "net0", Host: "id of " + target, HostName: target}}}))
			from.must(nil, from.Do(ctx, func() error {
				if tr := from.state.Travels.Of(movingVM, "net0"); tr.SetAside(move) == nil && tr.Away.Move != move {
					t.Errorf("move %s is not remembered: %+v", move, tr)
				}
				return nil
			}))
			p.noWay(false)
			from.until("it hears of the guest", func(t *state.Travel) bool {
				return t.Away.Move == move && t.Away.Phase == moves.Active && t.Away.Last
			})
			list, err := from.moveCommands().PortMoves(ctx, api.PortMoveOf{Port: "vm"})
			if err != nil || list[len(list)-1].Move != move {
				t.Errorf("its moves: %+v, %v", list, err)
			}
		})
	}
}

// A port whose device is gone for a moment while it waits, such as a tap that a bridge took, has a move of its own
// again when the device is back.
func TestS100_AMoveBeginsAnewWhereItsPortIsBack(t *testing.T) {
	p, ctx := newMovingPair(t), context.Background()
	from, to := p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
	move := ""
	to.until("a copy is there", func(t *state.Travel) bool { move = t.Here.Move; return t.Here.Confirmed > 0 })
	var tap *hostdev.Device
	to.must(nil, to.Do(ctx, func() error {
		tap = to.dev.byName["tap0"]
		delete(to.dev.byName, "tap0")
		to.settler.settle()
		return nil
	}))
	to.until("the move is over", func(t *state.Travel) bool { return t.Here.Phase == moves.Cancelled })
	to.must(nil, to.Do(ctx, func() error {
		to.dev.byName["tap0"] = tap
		to.settler.settle()
		return nil
	}))
	to.until("another move has a copy", func(t *state.Travel) bool {
		return t.Here.Move != move && t.Here.Phase == moves.Copied && t.Here.Confirmed > 0
	})
	if !from.speaksNow() || to.speaksNow() {
		t.Error("the guest runs at the source, and the ports say something else")
	}
}

// A guest that goes on at the source after it had stopped raises the generation there, and the target drops what it
// has.
func TestS100_AFailedMoveRaisesTheGenerationAtTheSource(t *testing.T) {
	p, ctx := newMovingPair(t), context.Background()
	from, to := p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
	from.goods.has = 3
	from.until("ordered", func(t *state.Travel) bool { return t.Away != nil })
	from.must(from.moveCommands().SilencePort(ctx, api.PortMoveOf{Port: "vm"}))
	to.until("the last copy is there", func(t *state.Travel) bool { return t.Here.Last })
	for i, h := range p.hosts { // what trace says of the port that is silent
		h.must(nil, h.Do(ctx, func() error {
			if got := h.answers.silent()[id("vm")]; got.Host != p.hosts[1-i].name || got.Why == "" {
				t.Errorf("host %d: %+v", i, got)
			}
			return nil
		}))
	}
	from.must(nil, from.commands.Activate(ctx, api.Activate{Port: "vm"}))
	from.until("it runs again", func(t *state.Travel) bool { return t.Generation == 2 && t.Serves })
	to.until("dropped", func(t *state.Travel) bool { return !t.Here.Last && t.Here.Known == 2 })
	if to.speaksNow() || !from.speaksNow() {
		t.Errorf("source %v, target %v", from.speaksNow(), to.speaksNow())
	}
	to.must(nil, to.Do(ctx, func() error {
		if to.goods.dropped == 0 || !to.door.open {
			t.Errorf("dropped %d times, the door is open: %v", to.goods.dropped, to.door.open)
		}
		return nil
	}))
}

// The controllers named the hosts to each other, and went away: the move completes. The network between the hosts is
// cut when the guest stops, and the source's port is removed meanwhile: its last copy arrives later.
func TestS100_APreparedMoveCompletesByTheHostsAlone(t *testing.T) {
	p, ctx := newMovingPair(t), context.Background()
	from, to := p.hosts[0], p.hosts[1]
	from.must(from.commands.Connect(ctx, movingPort()))
	to.must(to.commands.ConnectIncoming(ctx, api.Incoming{Connect: movingPort()}))
	to.until("a copy is there", func(t *state.Travel) bool { return t.Here.Confirmed > 0 })
	p.mu.Lock()
	p.away, p.cut = true, true
	p.mu.Unlock()
	from.must(nil, from.Do(ctx, func() error { from.goods.has = 5; return nil }))
	from.must(nil, from.commands.Disconnect(ctx, api.Disconnect{Port: "vm"}))
	to.must(nil, to.commands.Activate(ctx, api.Activate{Port: "vm"}))
	from.kill()
	to.kill()
	p.mu.Lock()
	p.cut = false
	p.mu.Unlock()
	to.until("all is there", func(t *state.Travel) bool { return t.Here.Last && t.Here.Arrived() })
	from.until("released", func(t *state.Travel) bool { return t.Away.Phase == moves.Released })
	to.must(nil, to.Do(ctx, func() error {
		if to.goods.kept != 5 {
			t.Errorf("the target has %d of 5", to.goods.kept)
		}
		return nil
	}))
}
