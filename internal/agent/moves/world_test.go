package moves_test

import (
	"fmt"
	"time"

	"heddle/internal/agent/moves"
	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
	"heddle/internal/observe"
)

// The hosts of a world: the guest starts on the first and moves to the second, and perhaps back.
const hosts = 2

// Where the guest runs, other than on a host.
const (
	stopped = -1 // by a migration
	dead    = -2 // its QEMU was killed
)

// units are the frames that a port counted, each a bit: what is counted twice or lost shows.
type units uint8

// record is what an agent keeps on disk. It is comparable.
type record struct {
	waits bool // wait is there
	wait  presence.Wait
	last  uint32 // the highest number of a wait
	place moves.Place
	here  hereRecord
	away  awayRecord
	base  units
}

// hereRecord and awayRecord are the parts of moves.Here and moves.Away by which the rules decide.
type hereRecord struct {
	there        bool
	move, host   string
	phase        moves.Phase
	confirmed    uint64
	last, parted bool
	wait         uint32
	known, heard uint64
}

type awayRecord struct {
	there                                        bool
	move                                         string
	phase                                        moves.Phase
	confirmed, reserved, sent, mark, heard, gen  uint64
	last, silent, tells, elsewhere, left, packed bool
	wait                                         uint32
	goods                                        units
}

func (r *record) getHere() *moves.Here {
	h := r.here
	if !h.there {
		return nil
	}
	return &moves.Here{Track: moves.Track{Move: h.move, Host: h.host, Phase: h.phase, Confirmed: h.confirmed,
		Last: h.last}, Wait: h.wait, Known: h.known, Heard: h.heard, Parted: h.parted, Since: now}
}

func (r *record) putHere(h *moves.Here) {
	r.here = hereRecord{there: true, move: h.Move, host: h.Host, phase: h.Phase, confirmed: h.Confirmed, last: h.Last,
		wait: h.Wait, known: h.Known, heard: h.Heard, parted: h.Parted}
}

func (r *record) getAway() *moves.Away {
	a := r.away
	if !a.there {
		return nil
	}
	out := &moves.Away{Track: moves.Track{Move: a.move, Host: "target", Phase: a.phase, Confirmed: a.confirmed,
		Last: a.last}, Reserved: a.reserved, Sent: a.sent, Silent: a.silent, Wait: a.wait, Tells: a.tells, Mark: a.mark,
		Elsewhere: a.elsewhere, Heard: a.heard, Left: a.left, Generation: a.gen}
	if a.packed {
		out.Goods = []byte{byte(a.goods)}
	}
	return out
}

func (r *record) putAway(a *moves.Away) {
	r.away = awayRecord{there: true, move: a.Move, phase: a.Phase, confirmed: a.Confirmed, last: a.Last,
		reserved: a.Reserved, sent: a.Sent, silent: a.Silent, wait: a.Wait, tells: a.Tells, mark: a.Mark,
		elsewhere: a.Elsewhere, heard: a.Heard, left: a.Left, gen: a.Generation, packed: a.Goods != nil}
	if a.Goods != nil {
		r.away.goods = units(a.Goods[0])
	}
}

// presence is the port's wait, nil for none.
func (r *record) presence() *presence.Wait {
	if !r.waits {
		return nil
	}
	own := r.wait
	return &own
}

// host is one host of a world: its QEMU, the program in the kernel, its agent and the agent's record.
type host struct {
	connected bool // the port is connected, and its device is up
	qemu      guest.Run
	agent     bool // it runs
	// cached is what the monitor said last; asks: it is read again even if it says the same.
	cached guest.Run
	asks   bool
	// late: a frame that the guest sent before its hypervisor stopped it has not reached the program yet.
	late   bool
	lost   bool // the host has lost its power
	memory record
	disk   record
	// Of the program: the wait in its plan, the last wait that is over, and what it counted.
	waits, awake uint32
	own          units
}

// active reports whether the program serves the port.
func (h *host) active() bool { return h.connected && h.waits <= h.awake }

// message is a copy on its way, or the answer to it.
type message struct {
	there  bool
	answer bool
	from   int // the source
	move   string
	send   moves.Send
	goods  units
	by     moves.Answer
}

// world is everything. It is comparable, so that each is looked at once.
type world struct {
	hosts [hosts]host
	net   [2]message
	// ordered is the move that the controllers heard of last.
	ordered string
	offerer int
	runs    int
	sent    units // all frames of the guest that a port counted
	excused units // those that may be lost
	n       int   // how many of them
	// How much more of it may happen.
	migrations, kills, faults int
}

// begin is a guest that runs on the first host, with an agent on each.
func begin(migrations, kills, faults int) world {
	w := world{migrations: migrations, kills: kills, faults: faults}
	for i := range w.hosts {
		w.hosts[i].agent = true
	}
	h := &w.hosts[0]
	h.connected, h.qemu = true, guest.RunHere
	h.look(0)
	h.disk = h.memory
	return w
}

// event is one thing that can happen in a world.
type event struct {
	name string
	next world
}

// now is the time of all steps: no rule of safety may depend on it.
var now = time.Unix(1, 0)

// take takes a step of the port's presence as the agent does: in the kernel at once, on disk later.
func (h *host) take(i int, step presence.Step) {
	m := &h.memory
	switch step.Do {
	case presence.Begin:
		m.waits, m.wait = true, step.Next
		m.wait.Number = max(m.last, h.waits) + 1
		m.last = m.wait.Number
	case presence.End:
		h.awake, m.wait.Awake = max(h.awake, m.wait.Number), true
	case presence.Over:
		m.wait.Awake, m.wait.Doubt = true, step.Next.Doubt
		h.asks = h.asks || step.Next.Doubt
	case presence.Note:
		m.wait = step.Next
	case presence.Forget:
		m.waits, m.wait = false, presence.Wait{}
	}
	h.waits = 0
	if m.waits && !m.wait.Awake {
		h.waits = m.wait.Number
	}
	h.look(i)
}

// sees is what the agent sees of the guest.
func (h *host) sees() moves.Guest {
	w := h.memory.presence()
	switch {
	case !h.connected:
	case w.Unsure():
		return moves.GuestUnsure
	case !w.Silent():
		return moves.GuestRuns
	case w.Doubt:
		return moves.GuestUnsure
	case w.Left:
		return moves.GuestLeft
	}
	return moves.GuestGone
}

// look is what the agent does after everything that may have changed where the guest runs.
func (h *host) look(i int) {
	m := &h.memory
	w := m.presence()
	number := uint32(0)
	if w != nil {
		number = w.Number
	}
	here, away := m.getHere(), m.getAway()
	var heard uint64
	if here != nil {
		heard = here.Known
	}
	if away != nil {
		heard = max(heard, away.Heard)
	}
	sees := h.sees()
	if away != nil {
		if _, pack := away.See(sees, number, m.place.Generation, now); pack {
			away.Packed([]byte{byte(m.base | h.own)}, now)
		}
		m.putAway(away)
	}
	m.place.Look(sees == moves.GuestRuns, number, heard, here.Came())
	if arrives := h.connected && w.Silent() && !w.Left && !w.Doubt; arrives && (here == nil || here.Wait != number) {
		here = moves.Begin(fmt.Sprintf("%d to host %d", number, i), number, now)
	}
	switch {
	case here == nil:
		return
	case !h.connected:
		here.Gone(now, "")
	case w.Unsure():
	case !w.Silent():
		here.Activated(now, "")
	case w.Left:
		here.Parts()
	}
	m.putHere(here)
}

// ends is a host whose QEMU is gone, and its port with it.
func (h *host) ends(i int) {
	h.connected, h.qemu, h.cached, h.asks, h.late = false, guest.RunUnknown, guest.RunUnknown, false, false
	if h.agent {
		h.forget(i)
	}
}

// forget is the agent's part of it: what the port had goes with it, after the agent has looked.
func (h *host) forget(i int) {
	h.look(i)
	h.memory.waits, h.memory.wait, h.memory.base, h.own, h.waits = false, presence.Wait{}, 0, 0, 0
	h.disk = h.memory // as with every change of the ports
}

// start is an agent that takes over from the one that was killed.
func (h *host) start(i int) {
	h.agent, h.memory = true, h.disk
	h.memory.last = max(h.memory.last, h.awake, h.waits)
	if a := h.memory.getAway(); a != nil {
		a.Resumed()
		h.memory.putAway(a)
	}
	begun := h.waits
	h.take(i, presence.Sent(h.memory.presence(), h.awake, h.cached))
	if begun > h.awake {
		h.waits = begun // until its successor is known
		h.take(i, presence.Resumed(h.memory.presence(), begun))
	}
	if h.look(i); !h.connected {
		h.forget(i)
	}
}

// connects is a hook that connects the port and announces the guest. The connection is on disk before it is served.
func (h *host) connects(i int) {
	h.connected, h.own, h.memory.base = true, 0, 0
	h.take(i, presence.Step{Do: presence.Begin, Next: presence.Wait{Why: observe.WaitAnnounced}})
	h.disk = h.memory
}

// monitors is the agent that takes in what the monitor says, if that is new or was asked for; what the guest itself has
// sent counts first.
func (h *host) monitors(i int) {
	if h.cached == h.qemu && !h.asks {
		return
	}
	h.cached, h.asks = h.qemu, false
	h.take(i, presence.Sent(h.memory.presence(), h.awake, h.cached))
	h.take(i, presence.Saw(h.memory.presence(), h.qemu, observe.WaitQEMUStopped, "its QEMU runs it"))
}

// says is the source that sends its next message.
func (h *host) says(i int) (m message, ok bool) {
	a := h.memory.getAway()
	if a == nil {
		return m, false
	}
	send, reserved, ok := a.Next(h.memory.place.Generation)
	h.memory.putAway(a)
	if !ok {
		return m, false
	}
	if reserved {
		h.disk = h.memory
	}
	m = message{there: true, from: i, move: a.Move, send: send}
	switch {
	case send.Asks:
	case a.Goods != nil:
		m.goods = units(a.Goods[0])
	default:
		m.goods = h.memory.base | h.own
	}
	return m, true
}

// takes is the target that takes a message in and answers when it is on disk.
func (h *host) takes(m message) message {
	out := message{there: true, answer: true, from: m.from, move: m.move, send: m.send}
	out.by = moves.Answer{Phase: moves.Cancelled}
	here := h.memory.getHere()
	if here == nil || here.Move != m.move {
		return out
	}
	c, own := m.send.Copy, h.memory.place.Generation
	switch here.Takes(c, own) {
	case moves.Keep:
		h.memory.base = m.goods
		if a := h.memory.getAway(); a != nil && here.Arrived() {
			a.Renewed([]byte{byte(h.memory.base | h.own)})
			h.memory.putAway(a)
		}
	case moves.Drop:
		h.memory.base = 0
	}
	here.Dealt(c, own, now)
	h.memory.putHere(here)
	h.look(1 - m.from)
	h.disk = h.memory
	out.by = here.Answer(h.memory.place.Generation)
	return out
}

// hears is the source that gets the answer.
func (h *host) hears(m message) {
	if a := h.memory.getAway(); a != nil && a.Move == m.move {
		a.Answered(m.send, m.by, now)
		h.memory.putAway(a)
	}
}
