package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/part"
)

const (
	movedVM   = "6f9619ff-8b86-d011-b42d-00c04fc96499"
	firstMove = "00112233445566778899aabbccddeeff"
)

// apartText has a port group that hosts of zone a serve alone.
const apartText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups: [{name: web}, {name: apart, labels: {zone: a}}]
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

// Moves keeps what a controller says.
func (m *machine) Moves(_ context.Context, all *controllerv1.HostMoves) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moves = all
	return nil
}

// Flapping keeps what a controller says.
func (m *machine) Flapping(_ context.Context, all *controllerv1.HostFlapping) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flapping = all
	return nil
}

// knows is what a controller has said of moves, in words; "" before the first message.
func (m *machine) knows() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moves == nil {
		return ""
	}
	lines := []string{"told"}
	for _, o := range m.moves.GetOrders() {
		lines = append(lines, fmt.Sprintf("order %s to %s at %s", o.GetMove()[:4], o.GetHostName(),
			strings.Join(o.GetAddresses(), " ")))
	}
	for _, e := range m.moves.GetExpected() {
		lines = append(lines, fmt.Sprintf("expect %s from %s after %d", e.GetMove()[:4], e.GetHostName(),
			e.GetGeneration()))
	}
	return strings.Join(lines, "; ")
}

// reports makes these the ports that the machine reports.
func (m *machine) reports(ports ...*controllerv1.HostPort) {
	m.mu.Lock()
	m.report = &controllerv1.HostReport{Ports: ports}
	m.mu.Unlock()
	if m.client != nil {
		m.client.Changed()
	}
}

// movedPort is the port of the VM that moves.
func movedPort(generation uint64, edit func(*controllerv1.HostPort)) *controllerv1.HostPort {
	p := &controllerv1.HostPort{Switch: "dvs", Name: "vm1/eth0", PortGroup: "web", Vm: movedVM, Adapter: "eth0",
		Generation: generation}
	if edit != nil {
		edit(p)
	}
	return p
}

func atRest(p *controllerv1.HostPort) { p.Waits = true }
func absent(p *controllerv1.HostPort) { p.Absent = true }

// takesOver is an offer for that port, by a host that has two addresses.
func takesOver(edit func(*controllerv1.MoveOffer)) *controllerv1.HostOffers {
	o := &controllerv1.MoveOffer{Move: firstMove, Vm: strings.ToUpper(movedVM), Adapter: "eth0", Switch: "dvs",
		Name: "vm1/eth0", PortGroup: "web", Addresses: []string{"192.0.2.1:7413", "name:7413", "[2001:db8::1]:7413"}}
	if edit != nil {
		edit(o)
	}
	return &controllerv1.HostOffers{Offers: []*controllerv1.MoveOffer{o}}
}

const (
	ordered   = "told; order 0011 to target at 192.0.2.1:7413 [2001:db8::1]:7413"
	nothing   = "told"
	fromNone0 = "told; expect 0011 from  after 0"
)

// told waits until a machine knows that.
func (c *controller) told(m *machine, want string) {
	c.t.Helper()
	c.await(m.record.Name()+" knows "+want, func() bool { return m.knows() == want })
}

// at is a machine that joins at one controller and stays at another one.
func (c *controller) at(other *controller, name string, labels map[string]string) *machine {
	c.t.Helper()
	m := &machine{c: c, dir: c.t.TempDir(), report: &controllerv1.HostReport{}, at: other.address}
	m.join(name, c.tokenOf(labels), false)
	m.start()
	other.await(name+" is up", func() bool { return other.state(name) == controllerv1.HostState_HOST_STATE_UP })
	return m
}

// breaks ends a host's connection, which comes again.
func (c *controller) breaks(name string) {
	c.t.Helper()
	c.fleet.mu.Lock()
	h := c.fleet.names[name]
	was := h.conn
	was.end(errors.New("a test ends it"))
	c.fleet.mu.Unlock()
	c.await(name+" is here again", func() bool {
		c.fleet.mu.Lock()
		defer c.fleet.mu.Unlock()
		return h.conn != nil && h.conn != was
	})
}

func TestS79_TheHostsOfAMoveAreNamedToOneAnother(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	source, target := c.up("source"), c.up("target")
	target.client.Offer(takesOver(nil))
	c.told(target, fromNone0) // nobody has the port
	source.reports(movedPort(3, nil))
	c.told(source, ordered)
	c.told(target, "told; expect 0011 from source after 3")
	// The guest stops, which changes nothing; a copy does not either.
	source.reports(movedPort(3, atRest))
	target.client.Offer(takesOver(func(o *controllerv1.MoveOffer) { o.Confirmed = 2 }))
	for _, m := range []*machine{source, target} {
		if err := m.Moves(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		c.breaks(m.record.Name())
	}
	c.told(source, ordered)
	c.told(target, "told; expect 0011 from source after 3")
	// The source has no port any more, and stays the one that has the last copy.
	source.reports()
	c.await("the report is there", func() bool { return c.shown("source").GetPorts() == 0 })
	target.client.Offer(takesOver(func(o *controllerv1.MoveOffer) { o.Generation = 7 }))
	c.offers("target", 7)
	c.told(target, "told; expect 0011 from source after 3")
	c.told(source, ordered)
	// The guest runs at the target.
	target.client.Offer(&controllerv1.HostOffers{})
	c.told(source, nothing)
	c.told(target, nothing)
}

// offers waits until the offers of a host are there with a generation.
func (c *controller) offers(host string, generation uint64) {
	c.t.Helper()
	c.await("the offer is there", func() bool {
		list := c.offered(host)
		return len(list) == 1 && list[0].GetOffer().GetGeneration() == generation
	})
}

// offered are the offers of a host that count.
func (c *controller) offered(host string) []*controllerv1.SharedOffer {
	c.fleet.mu.Lock()
	id := c.fleet.names[host].id
	c.fleet.mu.Unlock()
	all, _ := c.match.SharedFor("another controller")
	return slices.DeleteFunc(all.GetOffers(), func(o *controllerv1.SharedOffer) bool { return o.GetHost() != id })
}

// A target hears of the generations of other hosts only. With its own it would raise itself above it each time, and the
// source could not know how high the target is: both might have the same one when the guest starts at the source again.
func TestS100_ATargetHearsOfOtherHostsGenerations(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	source, target := c.up("source"), c.up("target")
	source.reports(movedPort(1, atRest))
	for generation := range uint64(4) { // until the last copy is there the guest may run for long
		at := 2 + generation
		target.reports(movedPort(at, nil))
		target.client.Offer(takesOver(func(o *controllerv1.MoveOffer) { o.Generation = at }))
		c.offers("target", at)
		c.await("the target's report is there", func() bool {
			return slices.ContainsFunc(c.fleet.adapters.Ports(part.AdapterOf(movedVM, "eth0")),
				func(p adapters.Port) bool { return p.Host == target.record.Host() && p.Generation == at })
		})
		c.told(target, "told; expect 0011 from source after 1")
	}
	source.reports(movedPort(9, atRest)) // another host's counts
	c.told(target, "told; expect 0011 from source after 9")
}

// A connection that ends takes nothing back that a host has been told: the two hosts go on by themselves.
func TestS79_AMoveOutlivesTheConnectionsOfItsHosts(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	source, target := c.up("source"), c.up("target")
	source.reports(movedPort(1, nil))
	target.client.Offer(takesOver(nil))
	c.told(source, ordered)
	c.told(target, "told; expect 0011 from source after 1")
	target.stop()
	c.await("the target is away", func() bool {
		return c.state("target") == controllerv1.HostState_HOST_STATE_DISCONNECTED
	})
	c.meetNow()
	if got := source.knows(); got != ordered {
		t.Errorf("the source was told %q when the target lost its controller", got)
	}
	// It is over when the target comes again without the offer.
	target.start()
	c.told(source, nothing)
}

// meetNow brings hosts together without waiting.
func (c *controller) meetNow() {
	c.match.Match()
}

func TestS100_ThePortComesFromTheHostThatHadItLast(t *testing.T) {
	c := newController(t)
	c.define(clusterText)
	a, b, target := c.up("a"), c.up("b"), c.up("target")
	a.reports(movedPort(4, absent))
	b.reports(movedPort(5, atRest))
	target.client.Offer(takesOver(nil))
	c.told(target, "told; expect 0011 from b after 5")
	a.reports(movedPort(6, atRest))
	c.told(target, "told; expect 0011 from a after 6")
	c.told(b, nothing)
	// Who runs the guest has the port, whatever the numbers say: a host of the version before says none.
	b.reports(movedPort(0, nil))
	c.told(target, "told; expect 0011 from b after 6")
	c.told(a, nothing)
	// A host that waits for the guest as well has nothing to give, even if it had the port once.
	b.reports()
	a.reports(movedPort(7, atRest))
	c.told(target, "told; expect 0011 from a after 7")
	b.client.Offer(takesOver(func(o *controllerv1.MoveOffer) { o.Move = "ffff" + firstMove[4:] }))
	b.reports(movedPort(9, atRest))
	c.told(target, "told; expect 0011 from a after 9")
	c.told(b, "told; expect ffff from a after 7")
}

func TestS104_NoPortGoesToAHostThatMayNotServeIt(t *testing.T) {
	c := newController(t)
	c.define(apartText)
	source := c.at(c, "source", map[string]string{"rack": "a", "zone": "a"})
	target := c.at(c, "target", map[string]string{"rack": "a"})
	apart := func(p *controllerv1.HostPort) { p.PortGroup = "apart" }
	source.reports(movedPort(1, apart))
	// It offers a port group that it serves, and the port is in another one.
	target.client.Offer(takesOver(nil))
	c.told(target, "told; expect 0011 from  after 1")
	// It offers the one of the port.
	target.client.Offer(takesOver(func(o *controllerv1.MoveOffer) { o.PortGroup = "apart" }))
	c.told(target, nothing)
	if c.log.count("not its to serve", "host=target", "group=apart") != 1 {
		t.Errorf("the log:\n%s", c.log.text.String())
	}
	if got := source.knows(); got != "" {
		t.Errorf("the source was told %q", got)
	}
	// The port group becomes one that it may serve.
	c.define(strings.ReplaceAll(apartText, ", labels: {zone: a}", ""))
	c.told(target, "told; expect 0011 from source after 1")
	c.told(source, ordered)
	// And no longer.
	target.client.Offer(takesOver(nil))
	c.define(apartText)
	c.told(target, "told; expect 0011 from  after 1")
	c.told(source, nothing)
}

// The two hosts are connected to different controllers, either way round.
func TestS79_HostsOfTwoControllersMeet(t *testing.T) {
	c1 := newController(t)
	c2 := controllerOn(t, "c2", c1.authority, c1.disk)
	c1.define(clusterText)
	rack := map[string]string{"rack": "a"}
	source, target := c1.at(c2, "source", rack), c1.at(c1, "target", rack)
	target.client.Offer(takesOver(nil))
	c1.told(target, fromNone0)
	source.reports(movedPort(2, nil))
	c2.told(source, ordered)
	c1.told(target, "told; expect 0011 from source after 2")
	// The guest is back at the source, and the target goes to the other controller, and then away.
	source.reports(movedPort(3, nil))
	c1.told(target, "told; expect 0011 from source after 3")
	target.stop()
	target.at = c2.address
	target.start().client.Offer(takesOver(nil))
	c2.told(target, "told; expect 0011 from source after 3")
	c2.told(source, ordered)
	target.client.Offer(&controllerv1.HostOffers{})
	c2.told(source, nothing)
	// It goes back and offers nothing any more.
	target.client.Offer(takesOver(nil))
	c2.told(source, ordered)
	target.stop()
	target.at = c1.address
	target.start()
	c2.told(source, nothing)
	// The same, with the source at the first controller.
	source.stop()
	source.at = c1.address
	source.start()
	source.reports(movedPort(4, atRest))
	target.stop()
	target.at = c2.address
	target.start().client.Offer(takesOver(nil))
	c1.told(source, ordered)
	c2.told(target, "told; expect 0011 from source after 4")
	target.client.Offer(&controllerv1.HostOffers{})
	c1.told(source, nothing)
}

// A host that ran the guest when it went to another controller, and has no port for it any more, is not the one that
// the guest comes from, whatever it has reported before: to the controller of the target, or to a third one. It may be
// named until the controllers have heard from the one that it went to, and no longer.
func TestS79_AnOldReportNamesNoSource(t *testing.T) {
	for name, own := range map[string]bool{"to the target's controller": true, "to a third controller": false} {
		t.Run(name, func(t *testing.T) {
			c1 := newController(t)
			c2, c3 := controllerOn(t, "c2", c1.authority, c1.disk), controllerOn(t, "c3", c1.authority, c1.disk)
			c1.define(clusterText)
			rack := map[string]string{"rack": "a"}
			first := c1
			if !own {
				first = c3
			}
			old := c1.at(first, "old", rack)
			source, target := c1.at(c3, "source", rack), c1.at(c1, "target", rack)
			old.reports(movedPort(4, nil))
			first.await("the guest runs on the old host", func() bool { return len(first.ports()) == 1 })
			old.stop()
			old.at = c2.address
			old.reports()
			old.start()
			c2.await("the old host is elsewhere", func() bool {
				return c2.state("old") == controllerv1.HostState_HOST_STATE_UP
			})
			source.reports(movedPort(5, atRest)) // it came from there, and leaves
			target.client.Offer(takesOver(nil))
			c3.told(source, ordered)
			c1.told(target, "told; expect 0011 from source after 5")
			c2.await("the host that the guest has left long ago is told nothing", func() bool {
				got := old.knows()
				return got == "" || got == nothing
			})
		})
	}
}
