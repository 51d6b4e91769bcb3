package moves_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
	"heddle/internal/test/testkit"
)

// trail is how a world came about.
type trail struct {
	from world
	name string
}

// story is all that happened up to a world.
func story(came map[world]trail, w world) string {
	var all []string
	for t := came[w]; t.name != ""; t = came[w] {
		all = append([]string{t.name}, all...)
		w = t.from
	}
	return strings.Join(all, "\n\t")
}

// calm lets the agents run, take in all news and deliver all messages. The guest only listens.
func (w world) calm() world {
	for range 6 {
		for i := range w.hosts {
			h := &w.hosts[i]
			if h.lost {
				continue
			}
			if !h.agent {
				h.start(i)
			}
			if h.connected {
				h.take(i, presence.Sent(h.memory.presence(), h.awake, h.cached))
				h.monitors(i)
			}
			if here := h.memory.getHere(); here != nil && here.Offers(now) {
				w.ordered, w.offerer = here.Move, i
				h.expects(i, w.hosts[1-i].memory.place.Generation)
				if o := &w.hosts[1-i]; o.agent && o.memory.place.Generation > 0 && o.connected {
					w.order(1 - i)
				}
			}
		}
		for k, m := range w.net {
			w.net[k] = message{}
			if m.there {
				w.deliver(m, k)
				if answer := w.net[k]; answer.there {
					w.net[k] = message{}
					w.deliver(answer, -1)
				}
			}
		}
		for i := range w.hosts {
			if !w.hosts[i].agent {
				continue
			}
			if m, ok := w.hosts[i].says(i); ok && !w.hosts[1-i].lost {
				w.net[0] = m
				w.deliver(m, 0)
				answer := w.net[0]
				w.net[0] = message{}
				if answer.answer {
					w.deliver(answer, -1)
				}
			}
		}
	}
	return w
}

// text is what matters of a world.
func (w world) text() string {
	out := fmt.Sprintf("runs on %d", w.runs)
	for i, h := range w.hosts {
		out += fmt.Sprintf("\n\t\thost %d: %v %v agent %v own %03b waits %d over %d\n\t\t\tmemory %+v", i, h.connected,
			h.qemu, h.agent, h.own, h.waits, h.awake, h.memory)
	}
	return out
}

// fault returns what is wrong with a world, "" for nothing.
func (w world) fault() string {
	for i := range w.hosts {
		if h := &w.hosts[i]; h.memory.base&h.own != 0 {
			return fmt.Sprintf("host %d counts frames twice: %03b came with the port, %03b are its own", i,
				h.memory.base, h.own)
		}
	}
	return ""
}

// faultAfter returns what is wrong with a world in which nothing more happens.
func (w world) faultAfter() string {
	if f := w.fault(); f != "" {
		return f
	}
	for i := range w.hosts {
		h, o := &w.hosts[i], &w.hosts[1-i]
		if h.connected && h.active() != (w.runs == i) {
			return fmt.Sprintf("the guest runs on host %d, and the port of host %d is active: %v", w.runs, i,
				h.active())
		}
		if w.runs != i || !h.connected {
			continue
		}
		if h.memory.place.Generation <= o.memory.place.Generation {
			return fmt.Sprintf("the guest runs on host %d, whose port has generation %d; on the other it has %d", i,
				h.memory.place.Generation, o.memory.place.Generation)
		}
		if has, may := h.memory.base|h.own, w.excused|w.unnamed(); has|may != w.sent|may {
			return fmt.Sprintf("the port counted %03b, and shows %03b", w.sent, has)
		}
	}
	return ""
}

// turned returns what is wrong with how a port became active or silent, "" for nothing.
func (w world) turned(was world) string {
	for i := range w.hosts {
		h, before := &w.hosts[i], &was.hosts[i]
		switch {
		case !h.connected || !before.connected || h.active() == before.active():
		case before.late && !h.late: // until its hypervisor has been asked
		case h.active() && w.runs != i:
			return fmt.Sprintf("host %d speaks for a guest that does not run there", i)
		case !h.active() && h.qemu != guest.RunLeft:
			return fmt.Sprintf("host %d falls silent without a word of its hypervisor", i)
		}
	}
	return ""
}

// check looks at one thing that happened.
func check(t *testing.T, was, is world, told func() string) {
	t.Helper()
	fault := is.turned(was)
	if fault == "" {
		fault = is.fault()
	}
	if end := is.calm(); fault == "" {
		if fault = end.faultAfter(); fault != "" {
			fault += "\n\tin the end: " + end.text()
		}
	}
	if fault != "" {
		t.Fatalf("%s:\n\t%s\n\tthen: %s", fault, told(), is.text())
	}
}

// TestS100_AMoveLosesNothingAndCountsNothingTwice drives the rules of moves, and those of presence, through what can
// happen to a guest that moves between two hosts: messages that are lost, repeated and reordered, agents that are
// killed with records that are not on disk yet, QEMUs and hosts that die, migrations that are cancelled or fail, and
// controllers that are silent. First everything in worlds of few events, then long random stories.
func TestS100_AMoveLosesNothingAndCountsNothingTwice(t *testing.T) {
	testkit.Long(t, "moves ports under traffic with each fault; smoke has ports that move")
	testkit.Never(t)
	for _, c := range []struct{ migrations, kills, faults, most int }{
		{1, 0, 0, 40_000}, {1, 1, 0, 20_000}, {1, 0, 1, 20_000},
	} {
		t.Run(fmt.Sprintf("%d migrations, %d kills, %d faults", c.migrations, c.kills, c.faults), func(t *testing.T) {
			first := begin(c.migrations, c.kills, c.faults)
			came := map[world]trail{first: {}}
			queue := []world{first}
			for len(queue) > 0 && len(came) < c.most {
				w := queue[0]
				queue = queue[1:]
				for _, e := range w.events() {
					if _, seen := came[e.next]; seen {
						continue
					}
					came[e.next] = trail{w, e.name}
					queue = append(queue, e.next)
					check(t, w, e.next, func() string { return story(came, e.next) })
				}
			}
			t.Logf("%d worlds, %d left", len(came), len(queue))
		})
	}
	t.Run("long stories", func(t *testing.T) {
		random := rand.New(rand.NewPCG(16, 100))
		arrived := 0
		for range 10_000 {
			w := begin(3, random.IntN(4), random.IntN(2))
			var told []string
			for range 120 {
				events := w.events()
				if len(events) == 0 {
					break
				}
				e := events[random.IntN(len(events))]
				told = append(told, e.name)
				check(t, w, e.next, func() string { return strings.Join(told, "\n\t") })
				w = e.next
			}
			if w.calm().hosts[0].memory.place.Generation > 2 { // there and back
				arrived++
			}
		}
		t.Logf("the guest came back in %d stories", arrived)
		if arrived < 100 {
			t.Errorf("the guest came back in %d stories", arrived)
		}
	})
}
