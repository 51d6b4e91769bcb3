package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// loopConfig has guests that may bridge, guests that may not, and two switches that a guest can join.
const loopConfig = `
switches:
- name: lab
  portGroups:
  - {name: open, security: {forgedTransmits: accept, promiscuous: accept, macLearning: {enabled: true}}}
  - {name: plain}
  - {name: spared, security: {forgedTransmits: accept, promiscuous: accept, loopDetection: false}}
- name: other
  portGroups:
  - {name: open, security: {forgedTransmits: accept, promiscuous: accept}}
ports:
- {name: vm1, switch: lab, portGroup: plain, device: p-vm1, mac: "02:00:00:00:00:01"}
- {name: vm2, switch: lab, portGroup: plain, device: p-vm2, mac: "02:00:00:00:00:02"}
`

// bridging is a guest in a namespace of its own whose adapters are members of a real Linux bridge.
type bridging struct {
	h  *host
	ns *netns.NS
}

// adapter adds an adapter to the guest, and the port for it. The bridge has the MAC of the adapter with the lowest.
func (g *bridging) adapter(sw, group, name string, mac byte) {
	g.h.T.Helper()
	handle, err := g.ns.Handle()
	if err != nil {
		g.h.T.Fatal(err)
	}
	defer handle.Close()
	hw := cable.MAC(mac)
	err = g.h.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "p-" + name}, PeerName: name,
			PeerNamespace: netlink.NsFd(int(handle)), PeerHardwareAddr: hw[:]}
		return errors.Join(netlink.LinkAdd(veth), netlink.LinkSetUp(veth))
	})
	if err != nil {
		g.h.T.Fatal(err)
	}
	g.inside(func() error { return up(name) })
	out := g.h.must("port", "connect", name, "--switch", sw, "--port-group", group, "--device", "p-"+name, "--mac",
		fmt.Sprintf("02:00:00:00:00:%02x", mac))
	if strings.Contains(out, "loop") {
		g.h.T.Fatalf("connecting %s: %s", name, out)
	}
	g.h.Up(name)
}

func up(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

func (g *bridging) inside(f func() error) {
	g.h.T.Helper()
	if err := g.ns.Do(f); err != nil {
		g.h.T.Fatal(err)
	}
}

// bridge joins the adapters.
func (g *bridging) bridge(names ...string) {
	g.h.T.Helper()
	g.inside(func() error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		for _, n := range names {
			l, err := netlink.LinkByName(n)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(l, br); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(br)
	})
}

func (g *bridging) unbridge() {
	g.h.T.Helper()
	g.inside(func() error {
		l, err := netlink.LinkByName("br0")
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

func (h *host) must(args ...string) string {
	h.T.Helper()
	out, err := h.Output(context.Background(), args...)
	if err != nil {
		h.T.Fatalf("heddle %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// loopHost is a host with two victims, and a guest to give adapters to.
func loopHost(t *testing.T) (h *host, vm1, vm2 *cable.End, g *bridging) {
	h = newHost(t, testkit.NS(t, "loop"))
	vm1, vm2 = h.Plug("p-vm1", cable.MAC(1)), h.Plug("p-vm2", cable.MAC(2))
	h.Start(loopConfig)
	h.Up("vm1", "vm2")
	return h, vm1, vm2, &bridging{h, testkit.NS(t, "bridging")}
}

// stall is the longest time for which the machine kept a process waiting that had something to do.
type stall struct {
	end     chan struct{}
	longest chan time.Duration
}

// stalls begins to watch the machine. A loop under way is a storm, and other work makes a machine slow as well.
func stalls() stall {
	const every = 5 * time.Millisecond
	s := stall{end: make(chan struct{}), longest: make(chan time.Duration, 1)}
	go func() {
		var longest time.Duration
		for {
			asked := time.Now()
			select {
			case <-s.end:
				s.longest <- longest
				return
			case <-time.After(every):
				longest = max(longest, time.Since(asked)-every)
			}
		}
	}()
	return s
}

// judge ends the watch and holds the time that a block took against the second of S110. A machine that kept a process
// waiting for longer than a probe has until it is evaluated shows nothing of that: rounds of probes then have to be
// repeated.
func (s stall) judge(t *testing.T, took time.Duration) {
	t.Helper()
	close(s.end)
	longest := <-s.longest
	t.Logf("blocked after %v, on a machine that kept a process waiting for %v at most", took, longest)
	if took > time.Second && longest < 10*time.Millisecond {
		t.Errorf("blocked after %v, want a second at most", took)
	}
}

// blocked waits until one of the ports is blocked, says which, and how long that took.
func (h *host) blocked(names ...string) (port string, took time.Duration) {
	h.T.Helper()
	began := time.Now()
	h.Await("one of "+strings.Join(names, " ")+" is blocked", func() bool {
		for _, n := range names {
			if h.StateOf(n) == api.Blocked {
				port = n
			}
		}
		return port != ""
	})
	return port, time.Since(began)
}

// quiet waits until no more frames come in by the port than the test itself sends, and has the ends forget what they
// got of the storm: a socket full of that would lose what comes next.
func (h *host) quiet(port string, ends ...*cable.End) {
	h.T.Helper()
	last := ^uint64(0)
	h.Await("the storm is over at "+port, func() bool {
		n := h.Counter(port, "packetsInBroadcast") + h.Counter(port, "loop-blocked")
		over := n == last
		last = n
		time.Sleep(20 * time.Millisecond)
		return over
	})
	for _, e := range ends {
		e.Forget()
	}
}

// passes sends numbered frames between the victims and counts those that do not arrive in time.
func passes(from, to *cable.End, n int, within time.Duration) (lost int) {
	for i := range n {
		f := cable.Frame(cable.MAC(2), cable.MAC(1), 0, fmt.Sprintf("numbered %d", i))
		from.Send(f)
		if !to.Await(f, within) {
			lost++
		}
	}
	return lost
}

// others are the ports of the host that are blocked, but for one.
func (h *host) othersBlocked(but string) (list []string) {
	h.T.Helper()
	s, err := h.State(context.Background())
	if err != nil {
		h.T.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.State == api.Blocked && p.Name != but {
			list = append(list, p.Name)
		}
	}
	return list
}

func TestS110_AGuestThatBridgesTwoOfItsAdaptersIsFoundInItsStorm(t *testing.T) {
	h, vm1, vm2, g := loopHost(t)
	g.adapter("lab", "open", "fw0", 0x11)
	g.adapter("lab", "open", "fw1", 0x12)
	g.bridge("fw0", "fw1")
	during := make(chan int, 1)
	go func() { during <- passes(vm1, vm2, 300, time.Second) }()
	vm1.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "the one frame that goes round"))
	port, took := h.blocked("fw0", "fw1")
	t.Logf("%s is blocked %v after the first broadcast; it had sent %d broadcasts", port, took,
		h.Counter(port, "packetsInBroadcast"))
	t.Logf("the victims lost %d of 300 frames from before the storm until after it", <-during)
	if port != "fw1" {
		t.Errorf("%s is blocked, want fw1, the younger one", port)
	}
	if list := h.othersBlocked(port); len(list) > 0 {
		t.Errorf("%v are blocked as well", list)
	}
	h.quiet(port, vm2)
	if lost := passes(vm1, vm2, 200, realhost.Patience); lost > 0 {
		t.Errorf("%d of 200 frames between the victims were lost after the block", lost)
	}
	show := h.must("port", "show", port)
	for _, want := range []string{"because of a loop", "fw0", "fw1", "heddle port unblock"} {
		if !strings.Contains(show, want) {
			t.Errorf("port show does not say %q:\n%s", want, show)
		}
	}
	if advice := h.advice("loop"); !slices.Equal(advice, []string{port}) {
		t.Errorf("advise tells of %v", advice)
	}
	h.must("port", "unblock", port) // the loop is still there
	h.Await("it was tried", func() bool {
		return h.Counter("fw0", "loop-blocked")+
			h.Counter("fw1", "loop-blocked") > 0
	})
	if h.StateOf(port) != api.Blocked {
		t.Error("it came back while the loop is there")
	}
	g.unbridge()
	h.must("port", "unblock", port)
	h.Up(port)
	if got := h.loopEvents(); strings.Join(got, " ") != "+"+port+" -"+port {
		t.Errorf("events %v", got)
	}
}

// A storm ends within a second: that of a guest that bridges its adapters, and that of a cable between two hosts.
func TestTime_S110_ALoopIsBlockedWithinASecond(t *testing.T) {
	t.Run("in a guest", func(t *testing.T) {
		h, vm1, _, g := loopHost(t)
		g.adapter("lab", "open", "fw0", 0x11)
		g.adapter("lab", "open", "fw1", 0x12)
		g.bridge("fw0", "fw1")
		late := stalls()
		vm1.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "the one frame that goes round"))
		_, took := h.blocked("fw0", "fw1")
		late.judge(t, took)
	})
	for _, reversePath := range []bool{true, false} {
		t.Run(fmt.Sprintf("between hosts, reversePath %v", reversePath), func(t *testing.T) {
			s := newSite(t, reversePath)
			s.joined(t)
			late := stalls()
			late.judge(t, s.storm())
			s.unjoin(t)
		})
	}
}

// advice are the ports for which a rule has a finding.
func (h *host) advice(rule string) (ports []string) {
	h.T.Helper()
	a, err := h.Advise(h.T.Context(), api.AdviseRequest{})
	if err != nil {
		h.T.Fatal(err)
	}
	for _, f := range a.Findings {
		if f.Rule == rule {
			ports = append(ports, f.Port)
		}
	}
	return ports
}

// loopEvents are the events of loops: + for a port that was blocked, - for one that came back.
func (h *host) loopEvents() (list []string) {
	h.T.Helper()
	err := h.Events(h.T.Context(), api.Follow{Last: 1000, NoFollow: true}, func(e api.Events) error {
		for _, e := range e.Events {
			if e.Kind == event.Loop && e.To == "blocked" {
				list = append(list, "+"+e.Port)
			} else if e.Kind == event.Loop {
				list = append(list, "-"+e.Port)
			}
		}
		return nil
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return list
}

// With default policies nothing of others gets through the guest, but what it sends itself goes round all the same: its
// bridge has the address of one of its ports.
func TestS110_AGuestThatBridgesWithDefaultPoliciesIsFoundByItsOwnStorm(t *testing.T) {
	h, vm1, vm2, g := loopHost(t)
	g.adapter("lab", "plain", "fw0", 0x11)
	g.adapter("lab", "plain", "fw1", 0x12)
	g.bridge("fw0", "fw1")
	self := cable.Open(t, g.ns, "br0")
	self.Send(cable.Frame(cable.Broadcast(), cable.MAC(0x11), 0, "of the guest itself"))
	port, took := h.blocked("fw0", "fw1")
	t.Logf("%s is blocked %v after the first broadcast", port, took)
	h.quiet(port, vm2)
	if lost := passes(vm1, vm2, 200, realhost.Patience); lost > 0 || len(h.othersBlocked(port)) > 0 {
		t.Errorf("%d of 200 frames lost, also blocked %v", lost, h.othersBlocked(port))
	}
}

func TestS110_TwoGuestsThatJoinTwoSwitchesAreALoopAndOneIsNone(t *testing.T) {
	h, vm1, vm2, g := loopHost(t)
	g.adapter("lab", "open", "a0", 0x11)
	g.adapter("other", "open", "a1", 0x12)
	g.bridge("a0", "a1")
	for i := range 50 {
		vm1.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprintf("no loop yet %d", i)))
	}
	again := &bridging{h, testkit.NS(t, "again")}
	again.adapter("lab", "open", "b0", 0x13)
	again.adapter("other", "open", "b1", 0x14)
	if list := h.othersBlocked(""); len(list) > 0 {
		t.Fatalf("%v are blocked without a loop", list)
	}
	again.bridge("b0", "b1")
	vm1.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "goes round"))
	port, took := h.blocked("a0", "a1", "b0", "b1")
	t.Logf("%s is blocked %v after the first broadcast", port, took)
	h.quiet(port, vm2)
	if lost := passes(vm1, vm2, 200, realhost.Patience); lost > 0 || len(h.othersBlocked(port)) > 0 {
		t.Errorf("%d of 200 frames lost, also blocked %v", lost, h.othersBlocked(port))
	}
}

// What looks like a loop and is none: addresses that move, and floods.
func TestS110_NoFalseAlarms(t *testing.T) {
	h, vm1, _, g := loopHost(t)
	g.adapter("lab", "open", "n0", 0x11)
	g.adapter("lab", "open", "n1", 0x12)
	n0, n1 := cable.Open(t, g.ns, "n0"), cable.Open(t, g.ns, "n1")
	virtual := [6]byte{0, 0, 0x5e, 0, 1, 7}
	probed(t, n0, 40, func(i int) { // VRRP that flaps, a bond that fails over, a nested VM that moves
		end := []*cable.End{n0, n1}[i%2]
		end.Send(cable.Frame(cable.Broadcast(), virtual, 0, fmt.Sprintf("advertisement %d", i)))
		end.Send(cable.Frame(cable.Broadcast(), cable.MAC(0x11), 0, fmt.Sprintf("bond %d", i)))
		end.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprintf("another's address %d", i)))
	})
	for i := range 3000 { // a flood
		vm1.Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, fmt.Sprintf("flood %d", i)))
	}
	time.Sleep(500 * time.Millisecond) // longer than a round lasts
	if got := h.loopEvents(); len(got) > 0 || len(h.othersBlocked("")) > 0 {
		t.Errorf("events %v, blocked %v", got, h.othersBlocked(""))
	}
}
