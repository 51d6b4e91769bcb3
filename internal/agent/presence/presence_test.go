package presence_test

import (
	"fmt"
	"strings"
	"testing"

	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
)

// trail is how a world came about.
type trail struct {
	from world
	name string
}

// story is all that happened up to a world.
func story(came map[world]trail, w world) string {
	var all []string
	for {
		t, ok := came[w]
		if !ok || t.name == "" {
			break
		}
		all = append([]string{t.name}, all...)
		w = t.from
	}
	return strings.Join(all, "\n\t")
}

// explore calls step for everything that can happen, and reached for every world that can come about.
func explore(t *testing.T, first world, step func(w world, e event, story func() string),
	reached func(w world, story func() string)) int {
	t.Helper()
	came := map[world]trail{first: {}}
	queue := []world{first}
	for len(queue) > 0 && !t.Failed() {
		w := queue[0]
		queue = queue[1:]
		for _, e := range w.events() {
			told := func() string { return story(came, w) + "\n\t" + e.name }
			step(w, e, told)
			if _, seen := came[e.next]; !seen {
				came[e.next] = trail{w, e.name}
				queue = append(queue, e.next)
				reached(e.next, told)
			}
		}
	}
	return len(came)
}

// calm lets the agents run and take in their news until nothing changes. The guest only listens. A monitor says only
// what is new, or what it was asked.
func (w world) calm() world {
	for {
		before := w
		for i := range w.hosts {
			h := &w.hosts[i]
			if !h.agent {
				h.start()
			}
			if !h.connected {
				continue
			}
			if h.take(presence.Sent(h.memory.ptr(), h.awake, h.cached)); h.tells() {
				h.read()
			}
			if h.judges {
				h.judge()
			}
			if h.news != guest.RunUnknown {
				h.takeNews()
				h.judge()
			}
		}
		if w == before {
			return w
		}
	}
}

// TestS100_OneInstanceOfAPortIsActive drives the rules through everything that can happen to a guest that moves between
// two hosts, with agents that are killed at any time, late monitors, frames that were under way when the guest was
// stopped, and migrations that are cancelled or fail. In
// every end, when the agents run and have heard their monitors, the port is active where its guest runs, and nowhere
// else.
func TestS100_OneInstanceOfAPortIsActive(t *testing.T) {
	for _, c := range []struct{ moves, crashes, lates, worlds int }{
		{1, 2, 0, 10_000}, {1, 1, 1, 10_000}, {2, 0, 0, 10_000},
	} {
		t.Run(fmt.Sprintf("%d migrations, %d kills, %d late frames", c.moves, c.crashes, c.lates), func(t *testing.T) {
			worlds := explore(t, begin(c.moves, c.crashes, c.lates), func(w world, e event, story func() string) {
				for i := range e.next.hosts {
					if fault := e.next.hosts[i].turned(&w.hosts[i], e.next.runs == i); fault != "" {
						t.Errorf("host %d %s:\n\t%s", i, fault, story())
					}
				}
			}, func(w world, story func() string) {
				end := w.calm()
				for i := range end.hosts {
					if h := &end.hosts[i]; h.connected && h.active() != (end.runs == i) {
						t.Errorf("the guest runs on host %d, and the port of host %d is active: %v:\n\t%s\n%+v",
							end.runs, i, h.active(), story(), end)
					}
				}
			})
			t.Logf("%d worlds", worlds)
			if !t.Failed() && worlds < c.worlds {
				t.Errorf("only %d worlds were visited", worlds)
			}
		})
	}
}

// turned returns what is wrong with how a host's port became active or silent, "" for nothing. A port speaks from its
// guest's first frame on, or from when its hypervisor runs the guest; an agent may act on what the hypervisor said
// before it stopped the guest again. A port falls silent when its hypervisor has stopped the guest.
func (h *host) turned(was *host, runs bool) string {
	switch {
	case !was.connected || !h.connected || was.active() == h.active():
		return ""
	case was.late && !h.late: // the frame is the guest's own; the port may speak until its hypervisor has been asked
	case h.active() && !runs && h.cached != guest.RunHere:
		return "speaks for a guest that does not run there"
	case was.active() && h.cached != guest.RunLeft:
		return "falls silent without a word of its hypervisor"
	}
	return ""
}
