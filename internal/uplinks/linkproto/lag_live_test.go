package linkproto_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/uplinks/wire"
)

// twoHosts are hosts a (192.0.2.1) and b (192.0.2.2), joined by w0 and w1, which both bundle.
//
//	a: vmk0 ── lab ══ w0 ════ w0 ══ lab ── vmk0 :b
//	               ╚═ w1 ════ w1 ═╝
func twoHosts(t *testing.T, lag string) (a, b *host) {
	testkit.Tool(t, "ping")
	a, b = newHost(t, "laga"), newHost(t, "lagb")
	wires(t, a.ns, b.ns, 2)
	a.start(config("192.0.2.1", lag, "both"))
	b.start(config("192.0.2.2", lag, "both"))
	a.used("up0", "up1")
	b.used("up0", "up1")
	return a, b
}

// pings starts n pings from a to b, 20 ms apart; the function that it returns waits for their end and returns how many
// were not answered.
func pings(t *testing.T, a *host, n int) func() int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience+time.Duration(n)*20*time.Millisecond)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "ping", "-q", "-n", "-i", "0.02", "-W", "2", "-c", strconv.Itoa(n), "192.0.2.2")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := a.ns.Start(c); err != nil {
		t.Fatal(err)
	}
	return func() int {
		_ = c.Wait() // a lost ping is an exit status
		m := regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`).FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("ping: %s", out.String())
		}
		sent, _ := strconv.Atoi(m[1])
		got, _ := strconv.Atoi(m[2])
		if sent != n {
			t.Fatalf("%d pings of %d were sent: %s", sent, n, out.String())
		}
		return sent - got
	}
}

// attempts bounds how often a measurement is repeated while the machine itself loses frames.
const attempts = 5

// lossless sends n pings from a to b, runs meanwhile, and fails unless all were answered. Everything on the machine
// shares the kernel's backlog queue: if that dropped frames, losses mean nothing and the test is repeated.
func lossless(t *testing.T, a *host, n int, what string, meanwhile func()) {
	t.Helper()
	for range attempts {
		before := backlogDrops(t)
		wait := pings(t, a, n)
		meanwhile()
		lost := wait()
		if lost == 0 {
			return
		}
		if backlogDrops(t) == before {
			t.Errorf("%s: %d of %d pings lost", what, lost, n)
			return
		}
		t.Logf("%s: %d of %d pings lost while the machine's backlog was full: once more", what, lost, n)
	}
	t.Errorf("%s: pings lost in each of %d attempts", what, attempts)
}

// backlogDrops counts the frames that the kernel dropped because a CPU's backlog was full: the second column, in hex.
func backlogDrops(t *testing.T) (n uint64) {
	t.Helper()
	b, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		v, err := strconv.ParseUint(strings.Fields(line)[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		n += v
	}
	return n
}

// warm waits until a reaches b.
func warm(t *testing.T, a *host) {
	t.Helper()
	a.await("a reaches b", func() bool {
		_, err := a.ns.Output("ping", "-q", "-n", "-c", "1", "-W", "1", "192.0.2.2")
		return err == nil
	})
}

// Two hosts bundle two links; each shows the other as its partner. When one link fails the other carries everything,
// and no MAC is announced, because the physical switch moves the MACs itself.
func TestS52_TwoHostsBundleTwoLinks(t *testing.T) {
	testkit.Long(t, "streams while links fail; TestS52_PlanChangesTouchOnlyTheirMembers has a LAG")
	t.Parallel()
	// Slow: with the fast timeout an agent that a busy machine delays for 3 s would lose its members. A link that loses
	// its carrier is out of use at once either way.
	a, b := twoHosts(t, "timeout: slow")
	ua, ub := a.uplink("up1"), b.uplink("up1")
	if ua.LAG.Partner == nil || ua.LAG.Partner.System != ub.LAG.Actor.System ||
		ua.LAG.Partner.Port != ub.LAG.Actor.Port || ua.LAG.Actor.System == ub.LAG.Actor.System {
		t.Errorf("a's member %+v\nb's member %+v", ua.LAG, ub.LAG)
	}
	text := a.heddle("uplink", "show", "up1")
	for _, want := range []string{"lag:", "lag1", "lacp:", "used", "distributing", "w1 (uplink up1 of switch lab)",
		"Heddle"} {
		if !strings.Contains(text, want) {
			t.Errorf("uplink show lacks %q:\n%s", want, text)
		}
	}
	warm(t, a)
	rarps := hearRARPs(t, b)
	// The announcements for the newly formed LAG take a second.
	a.await("announcements are over", func() bool { return rarps.quietFor() > 3*time.Second })
	formed, seq := events(t, a, event.Failover, 0)
	if len(formed) == 0 {
		t.Error("that the LAG formed is no event")
	}
	before := rarps.count()
	run(t, a.ns, "ip link set w0 down")
	a.used("up1")
	b.used("up1")
	lossless(t, a, 50, "over the link that is left", func() {})
	if n := rarps.count() - before; n > 0 {
		t.Errorf("%d RARPs", n)
	}
	if texts, _ := events(t, a, event.Failover, seq); len(texts) > 0 {
		t.Errorf("ports changed their uplink: %s", strings.Join(texts, "; "))
	}
	if r := a.uplink("up0").LAG.Reason; r != "lacp: no carrier" {
		t.Errorf("reason %q", r)
	}
	run(t, a.ns, "ip link set w0 up")
	a.used("up0", "up1")
	b.used("up0", "up1")
	lossless(t, a, 50, "over both links", func() {})
}

// rarpCount counts received RARP frames.
type rarpCount struct {
	mu   sync.Mutex
	n    int
	last time.Time
}

func (c *rarpCount) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *rarpCount) quietFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.last)
}

// hearRARPs counts the RARP frames that host b receives on its second wire from now on, until the test ends.
func hearRARPs(t *testing.T, b *host) *rarpCount {
	t.Helper()
	var conn *wire.Conn
	err := b.ns.Do(func() error {
		dev, err := netlink.LinkByName("w1")
		if err == nil {
			conn, err = wire.Open(uint32(dev.Attrs().Index), wire.Listen{EtherType: 0x8035, Tagged: true})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &rarpCount{last: time.Now()}
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			if _, err := conn.Receive(); err != nil {
				return
			}
			c.mu.Lock()
			c.n, c.last = c.n+1, time.Now()
			c.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		reader.Wait()
	})
	return c
}

// events returns a host's events of a kind about its uplinks, after seq.
func events(t *testing.T, h *host, kind event.Kind, seq uint64) (texts []string, last uint64) {
	t.Helper()
	last = seq
	err := h.Events(t.Context(), api.Follow{After: seq, Last: -1, NoFollow: true}, func(e api.Events) error {
		for _, one := range e.Events {
			last = max(last, one.Seq)
			if one.Kind == kind && one.Port == "" {
				texts = append(texts, one.Text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts, last
}

// An agent ends, in order or not, and another starts within the partner's timeout: the partner notices nothing and no
// frame is lost.
func TestS52_ARestartWithinTheTimeoutLosesNothing(t *testing.T) {
	testkit.Long(t, "streams over restarts; TestS52_PlanChangesTouchOnlyTheirMembers has a LAG")
	t.Parallel()
	a, b := twoHosts(t, "timeout: slow")
	warm(t, a)
	_, seq := events(t, b, event.Link, 0)
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		lossless(t, a, 200, how.String(), func() {
			a.end(how)
			a.start("")
			if u := a.uplink("up0"); u.State != api.Up {
				t.Errorf("%v: right after the start up0 is %s: %s", how, u.State, u.Reason)
			}
		})
		a.used("up0", "up1")
	}
	if texts, _ := events(t, b, event.Link, seq); len(texts) > 0 {
		t.Errorf("the partner saw: %s", strings.Join(texts, "; "))
	}
}

// A plan change that does not touch the LAG leaves it alone; if one removes a member, the partner stops using that
// member at once.
func TestS52_PlanChangesTouchOnlyTheirMembers(t *testing.T) {
	t.Parallel()
	a, b := twoHosts(t, "timeout: slow")
	_, seq := events(t, b, event.Link, 0)
	more := config("192.0.2.1", "timeout: slow", "both")
	more = strings.Replace(more, "- {name: hosts}", "- {name: hosts}\n      - {name: more, vlan: {access: 7}}", 1)
	apply(t, a, more)
	if texts, _ := events(t, b, event.Link, seq); len(texts) > 0 {
		t.Errorf("the partner saw: %s", strings.Join(texts, "; "))
	}
	apply(t, a, strings.Replace(more, "uplinks: [up0, up1]", "uplinks: [up1]", 1))
	a.used("up1")
	b.used("up1") // its timeout of 90 s is far away: it received the goodbye
}

func apply(t *testing.T, h *host, yaml string) {
	t.Helper()
	out, err := h.Apply(t.Context(), api.Apply{File: "heddle.yaml", Content: yaml,
		Window: api.Window{ConfirmWithin: time.Minute}})
	if err == nil && out.Trial != nil && out.Trial.State == api.TrialConfirm {
		// the host's own interface has no neighbours yet
		_, err = h.ConfirmChange(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// heddle down withdraws what was announced: the partner stops using its members and the neighbour is removed, both at
// once.
func TestDown_SaysGoodbyeByLACPAndLLDP(t *testing.T) {
	t.Parallel()
	a, b := twoHosts(t, "timeout: slow, fallback: none")
	b.await("b knows its neighbour", func() bool { return len(b.uplink("up0").LLDP.Neighbours) == 1 })
	n := b.uplink("up0").LLDP.Neighbours[0]
	if n.PortDescription != "w0 (uplink up0 of switch lab)" || n.Port != a.uplink("up0").MAC || n.MaxFrame != 1518 ||
		fmt.Sprint(n.Capabilities) != "[bridge]" {
		t.Errorf("neighbour %+v", n)
	}
	a.end(syscall.SIGKILL) // even if the agent no longer runs
	a.heddle("down")
	b.used()
	b.await("b forgets its neighbour", func() bool { return len(b.uplink("up0").LLDP.Neighbours) == 0 })
}
