package presence_test

import (
	"fmt"
	"time"

	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
	"heddle/internal/observe"
)

// The hosts of a world: the guest starts on the first and moves to the second, and perhaps back.
const hosts = 2

// wait is a presence.Wait that may be missing. A world has to be comparable.
type wait struct {
	there bool
	presence.Wait
}

func (w *wait) ptr() *presence.Wait {
	if !w.there {
		return nil
	}
	own := w.Wait
	return &own
}

// host is one host of a world: its agent, the agent's record on disk, the program in the kernel, and the QEMU.
type host struct {
	connected bool // the port is connected, and its device is up
	qemu      guest.Run

	agent  bool // it runs
	memory wait
	disk   wait
	last   uint32 // the highest number of a wait, as on disk
	// news is what the monitor read last and the agent has not taken in yet; cached is what it took in last.
	news, cached guest.Run
	judges       bool // it has seen which waits are over, and is about to judge the news
	asks         bool // the monitor is read again even if it says the same
	// late: a frame that the guest sent before its hypervisor stopped it has not reached the program yet.
	late bool

	waits, awake uint32 // of the program: the wait in its plan, the last wait that is over
}

// active reports whether the program serves the port.
func (h *host) active() bool { return h.connected && h.waits <= h.awake }

// world is everything: it is comparable, so that each is looked at once.
type world struct {
	hosts [hosts]host
	// runs is where the guest runs, -1 while it is stopped by a migration.
	runs    int
	crashes int // how many agents may still be killed
	moves   int // how many migrations may still begin
	lates   int // how many guests may still have a frame under way when they are stopped
}

// begin is a guest that runs on the first host, with an agent on each.
func begin(moves, crashes, lates int) world {
	w := world{moves: moves, crashes: crashes, lates: lates}
	for i := range w.hosts {
		w.hosts[i].agent = true
	}
	w.hosts[0].connected, w.hosts[0].qemu, w.hosts[0].cached = true, guest.RunHere, guest.RunHere
	return w
}

// event is one thing that can happen in a world.
type event struct {
	name string
	// fact: the hypervisor or the guest does it, not an agent.
	fact bool
	next world
}

// events are all things that can happen now.
func (w world) events() []event {
	var all []event
	add := func(fact bool, next world, format string, args ...any) {
		if next != w {
			all = append(all, event{fmt.Sprintf(format, args...), fact, next})
		}
	}
	w.hypervisor(add)
	for i := range w.hosts {
		w.onHost(i, add)
	}
	return all
}

// hypervisor is what QEMU does: a live migration step by step, one that is cancelled, and one that fails half way.
func (w world) hypervisor(add func(bool, world, string, ...any)) {
	for from := range w.hosts {
		to := 1 - from
		if w.runs == from && w.moves > 0 && w.hosts[to].qemu == guest.RunUnknown {
			next := w
			next.moves--
			next.hosts[to] = next.hosts[to].started()
			add(true, next, "host %d starts a QEMU that waits for the guest", to)
		}
		if w.hosts[to].qemu != guest.RunWaits {
			continue
		}
		if w.runs == from {
			next := w
			next.hosts[from].qemu, next.runs = guest.RunLeft, -1
			add(true, next, "host %d's QEMU stops the guest", from)
			if w.lates > 0 {
				next.lates--
				next.hosts[from].late = true
				add(true, next, "host %d's QEMU stops the guest, a frame of which is under way", from)
			}
			next = w
			next.hosts[to] = next.hosts[to].ended()
			add(true, next, "the migration is cancelled; host %d's QEMU ends", to)
		}
		if w.runs == -1 && w.hosts[from].qemu == guest.RunLeft {
			next := w
			next.hosts[to].qemu, next.runs = guest.RunHere, to
			add(true, next, "host %d's QEMU runs the guest", to)
			next = w
			next.hosts[from].qemu, next.runs = guest.RunHere, from
			next.hosts[to] = next.hosts[to].ended()
			add(true, next, "the migration fails; host %d's QEMU runs the guest again", from)
		}
	}
	for i, h := range w.hosts {
		if h.qemu == guest.RunLeft && w.runs == 1-i {
			next := w
			next.hosts[i] = h.ended()
			add(true, next, "host %d's QEMU ends after the migration", i)
		}
	}
}

// started is a host whose QEMU waits for a guest, before anybody connected its port.
func (h host) started() host {
	h.qemu = guest.RunWaits
	return h
}

// ended is a host whose QEMU is gone, and its port with it: a manager's hook disconnects it, or its device goes.
func (h host) ended() host {
	return host{agent: h.agent, last: max(h.last, h.memory.Number), awake: h.awake, disk: wait{}}
}

// onHost is what happens on one host.
func (w world) onHost(i int, add func(bool, world, string, ...any)) {
	change := func(fact bool, what string, edit func(*host)) {
		next := w
		edit(&next.hosts[i])
		add(fact, next, "host %d: "+what, i)
	}
	h := w.hosts[i]
	if w.runs == i && h.connected {
		change(true, "the guest sends a frame", func(h *host) { h.awake = max(h.awake, h.waits) })
	}
	if h.late && h.connected {
		change(true, "a frame comes that the guest sent before it was stopped", func(h *host) {
			h.awake, h.late = max(h.awake, h.waits), false
		})
	}
	if h.tells() {
		change(false, "the monitor is read", (*host).read)
	}
	if !h.agent {
		change(false, "the agent starts", (*host).start)
		return
	}
	if h.qemu == guest.RunWaits && !h.connected {
		change(false, "a hook connects the port and announces the guest", (*host).announced)
		change(false, "somebody connects the port", (*host).plain)
	}
	if !h.connected {
		return
	}
	if w.crashes > 0 {
		next := w
		next.crashes--
		next.hosts[i].agent, next.hosts[i].memory, next.hosts[i].judges = false, wait{}, false
		next.hosts[i].news, next.hosts[i].cached, next.hosts[i].asks = guest.RunUnknown, guest.RunUnknown, false
		add(false, next, "host %d: the agent is killed", i)
	}
	if h.judges { // the agent does nothing in between
		change(false, "the agent judges the monitor's news", (*host).judge)
		return
	}
	if h.news != guest.RunUnknown {
		change(false, "the agent begins to take in the monitor's news", (*host).takeNews)
	}
	change(false, "the agent sees which waits are over", func(h *host) {
		h.take(presence.Sent(h.memory.ptr(), h.awake, h.cached))
	})
	change(false, "the agent writes its record", func(h *host) {
		h.disk, h.last = h.memory, max(h.last, h.memory.Number)
	})
	if h.cached != guest.RunUnknown { // a QEMU that answers does so before the doubt ends
		change(false, "time passes", func(h *host) { h.take(presence.Tick(h.memory.ptr(), time.Unix(1<<40, 0))) })
	}
	change(false, "an operator says that the guest runs here", func(h *host) {
		if step, ok := presence.Told(h.memory.ptr(), h.cached); ok && h.cached != guest.RunUnknown {
			h.take(step)
		}
	})
}

// take takes a step as the agent does: in the kernel at once, on disk later.
func (h *host) take(step presence.Step) {
	switch step.Do {
	case presence.Begin:
		h.memory = wait{true, step.Next}
		h.memory.Number = max(h.last, h.waits, h.disk.Number) + 1
		h.last = h.memory.Number
	case presence.End:
		h.awake, h.memory.Awake = max(h.awake, h.memory.Number), true
	case presence.Over:
		h.memory.Awake, h.memory.Doubt = true, step.Next.Doubt
		h.asks = h.asks || step.Next.Doubt
	case presence.Note:
		h.memory.Wait = step.Next
	case presence.Forget:
		h.memory = wait{}
	}
	h.plan()
}

// plan makes the program's plan the agent's record.
func (h *host) plan() {
	h.waits = 0
	if h.memory.there && !h.memory.Awake {
		h.waits = h.memory.Number
	}
}

// announced is the connection by a hook that knows of the migration; plain one by somebody who doesn't: its QEMU is
// asked. A connection is on disk before it is served.
func (h *host) announced() {
	h.connected = true
	h.take(presence.Step{Do: presence.Begin, Next: presence.Wait{Why: observe.WaitAnnounced}})
	h.disk = h.memory
}

func (h *host) plain() {
	h.connected = true
	h.take(presence.Connected(h.memory.ptr(), true, h.cached))
	h.disk = h.memory
}

// tells reports whether the monitor says anything: what it says is reported only when it is new, or was asked for.
func (h *host) tells() bool {
	told := h.news
	if told == guest.RunUnknown {
		told = h.cached
	}
	return h.agent && h.connected && h.qemu != guest.RunUnknown && (h.qemu != told || h.asks)
}

func (h *host) read() { h.news, h.asks = h.qemu, false }

// takeNews is the first half of taking in the monitor's news: what the guest itself has sent counts first. Frames may
// be sent between the halves.
func (h *host) takeNews() {
	h.cached, h.news = h.news, guest.RunUnknown
	h.take(presence.Sent(h.memory.ptr(), h.awake, h.cached))
	h.judges = true
}

func (h *host) judge() {
	h.take(presence.Saw(h.memory.ptr(), h.cached, observe.WaitQEMUStopped, "its QEMU runs it"))
	h.judges = false
}

// start is an agent that takes over from the one that was killed.
func (h *host) start() {
	h.agent, h.memory = true, h.disk
	h.last = max(h.last, h.awake, h.waits)
	begun := h.waits
	h.take(presence.Sent(h.memory.ptr(), h.awake, h.cached))
	if begun > h.awake {
		h.waits = begun // until its successor is known
		h.take(presence.Resumed(h.memory.ptr(), begun))
	}
	h.plan()
}
