package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// acrossConfig is a switch with an uplink, guests, and a port for a cable. The reflection check would keep most
// frames of such a loop from going round.
const acrossConfig = `
switches:
- name: lab
  checks: {reversePath: %t}
  uplinks: [{name: uplink1, device: eno1}]
  portGroups:
  - name: open
    security: {forgedTransmits: accept, promiscuous: accept, macLearning: {enabled: true}, guestLinkControl: [lacp]}
  - {name: plain}
ports:
- {name: vm, switch: lab, portGroup: plain, device: p-vm, mac: "02:00:00:00:00:%02x"}
- {name: q, switch: lab, portGroup: open, device: p-q, mac: "02:00:00:00:01:%02x"}
- {name: joined, switch: lab, portGroup: open, device: joined}
`

// site is two hosts on one physical network, a Linux bridge, each with a guest and one that is up to no good.
type site struct {
	a, b    *host
	vm, q   map[*host]*cable.End
	network *netns.NS
}

func newSite(t *testing.T, reversePath bool) *site {
	t.Helper()
	s := &site{vm: map[*host]*cable.End{}, q: map[*host]*cable.End{}}
	network := testkit.NS(t, "network")
	s.network = network
	s.a, s.b = newHost(t, testkit.NS(t, "a")), newHost(t, testkit.NS(t, "b"))
	inside(t, network, func() error {
		return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "network"}}),
			up("network"))
	})
	for i, h := range []*host{s.a, s.b} {
		far := fmt.Sprintf("to%d", i)
		join(t, h.NS, "eno1", network, far)
		inside(t, network, func() error { return enslave(far, "network") })
		s.vm[h], s.q[h] = h.Plug("p-vm", cable.MAC(byte(1+i))), h.Plug("p-q", [6]byte{2, 0, 0, 0, 1, byte(1 + i)})
		h.Start(fmt.Sprintf(acrossConfig, reversePath, 1+i, 1+i))
		h.Up("vm", "q", "uplink1")
	}
	return s
}

func inside(t *testing.T, ns *netns.NS, f func() error) {
	t.Helper()
	if err := ns.Do(f); err != nil {
		t.Fatal(err)
	}
}

func enslave(device, bridge string) error {
	l, err := netlink.LinkByName(device)
	if err != nil {
		return err
	}
	m, err := netlink.LinkByName(bridge)
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(l, m)
}

// join makes a veth pair between two namespaces, up at both ends.
func join(t *testing.T, ns *netns.NS, name string, far *netns.NS, farName string) {
	t.Helper()
	handle, err := far.Handle()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	inside(t, ns, func() error {
		v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: farName,
			PeerNamespace: netlink.NsFd(int(handle))}
		return errors.Join(netlink.LinkAdd(v), up(name))
	})
	inside(t, far, func() error { return up(farName) })
}

// unjoin takes the cable between the hosts away.
func (s *site) unjoin(t *testing.T) {
	t.Helper()
	inside(t, s.a.NS, func() error {
		l, err := netlink.LinkByName("joined")
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}

// blockedAt are the hosts that have blocked their end of the cable.
func (s *site) blockedAt() (list []*host) {
	for _, h := range []*host{s.a, s.b} {
		if h.StateOf("joined") == api.Blocked {
			list = append(list, h)
		}
	}
	return list
}

// A cable that joins a port of one host with a port of another is a second way between them, beside the physical
// network.
func TestS110_ACableBetweenPortsOfTwoHostsIsALoop(t *testing.T) {
	for _, reversePath := range []bool{true, false} {
		t.Run(fmt.Sprintf("reversePath %v", reversePath), func(t *testing.T) {
			s := newSite(t, reversePath)
			s.joined(t)
			t.Logf("blocked after %v", s.storm())
			s.over(t)
		})
	}
}

// joined joins the hosts by a cable.
func (s *site) joined(t *testing.T) {
	t.Helper()
	join(t, s.a.NS, "joined", s.b.NS, "joined")
	for _, h := range []*host{s.a, s.b} { // any host's own frames may have gone round by now
		h.Await("joined is in service, or blocked", func() bool {
			state := h.StateOf("joined")
			return state == api.Up || state == api.Blocked
		})
	}
}

// storm has a frame go round by the cable, waits until an end of that is blocked, and says how long that took.
func (s *site) storm() time.Duration {
	s.a.T.Helper()
	began := time.Now()
	s.vm[s.a].Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "goes round"))
	s.a.Await("an end of the cable is blocked", func() bool { return len(s.blockedAt()) > 0 })
	return time.Since(began)
}

// over waits until one end of the cable is blocked, and checks that the other ports work, and that the port is
// unblocked in the end.
func (s *site) over(t *testing.T) {
	t.Helper()
	// Both may have found the loop in the same instant. Then the block of one opens it, and the other port is free when
	// it is tried.
	asked := false
	s.a.Await("one end of the cable is blocked", func() bool {
		list := s.blockedAt()
		if len(list) == 2 && !asked {
			asked = true
			list[0].must("port", "unblock", "joined")
		}
		return len(list) == 1
	})
	at := s.blockedAt()[0]
	at.quiet("joined")
	f := cable.Frame(cable.MAC(2), cable.MAC(1), 0, "from host to host")
	s.a.Await("a frame goes over the physical network", func() bool {
		// the storm's last frames are still in the guest's queue
		s.vm[s.a].Send(f)
		return s.vm[s.b].Await(f, 100*time.Millisecond)
	})
	for _, h := range []*host{s.a, s.b} {
		if list := h.othersBlocked("joined"); len(list) > 0 {
			t.Errorf("%v are blocked", list)
		}
	}
	if show := at.must("port", "show", "joined"); !strings.Contains(show, "uplink1") ||
		!strings.Contains(show, "because of a loop") {
		t.Errorf("port show:\n%s", show)
	}
	far := s.a
	if at == s.a {
		far = s.b
	}
	tried := far.Counter("joined", "loop-blocked")
	at.must("port", "unblock", "joined") // the cable is still there
	at.Await("it was tried", func() bool { return far.Counter("joined", "loop-blocked") > tried })
	if at.StateOf("joined") != api.Blocked {
		t.Error("it came back while the cable is there")
	}
	s.unjoin(t)
}

// Probes that guests make up, or send where they did not come from, block no port but those of guests that gave theirs
// away.
func TestS110_ProbesThatGuestsSendBlockNobodyElse(t *testing.T) {
	testkit.Long(t, "TestS110_ACableBetweenPortsOfTwoHostsIsALoop has probes for loops")
	s := newSite(t, false)
	of := func(payload []byte, from byte) []byte {
		return cable.Frame(cable.Broadcast(), [6]byte{2, 0, 0, 0, 9, from}, 0, string(payload))
	}
	// The guest q of host a gets a probe of its host by showing a sign: a frame from another's address.
	s.q[s.a].Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "from another's address"))
	all := s.q[s.a].Gather("a probe", func(all [][]byte) bool {
		return bytes.Contains(all[len(all)-1], []byte("HdLp"))
	})
	probe := all[len(all)-1][14:70]
	forged := bytes.Clone(probe)
	forged[11] ^= 3 // it left by another port
	other, third := bytes.Clone(probe), bytes.Clone(probe)
	other[24] ^= 0xff // of a host that there is not
	third[25] ^= 0xff
	// No probe is forwarded for a guest that may not send frames of others, and one is for a guest that may. They send
	// in this order, so that the arrival of the second one's probe shows that the first one's never comes.
	network := cable.Open(t, s.network, "network")
	s.vm[s.b].Send(of(third, 1))
	s.q[s.b].Send(of(other, 2))
	seen := network.Gather("a probe is sent on", func(all [][]byte) bool {
		return bytes.Contains(all[len(all)-1], other)
	})
	if bytes.Contains(bytes.Join(seen, nil), third) {
		t.Error("the probe of a guest that may not send frames of others is sent on")
	}
	for range 100 {
		s.q[s.b].Send(of(forged, 2))
		s.q[s.a].Send(of(forged, 1))
		s.q[s.a].Send(of(other, 1))
		s.q[s.a].Send(of(probe, 1)) // back where it came from
	}
	marker := cable.Frame(cable.Broadcast(), [6]byte{2, 0, 0, 0, 1, 2}, 0, "after all of them")
	s.q[s.b].Send(marker)
	s.vm[s.a].Expect(marker, "the hosts go on")
	s.noLoops(t)
}
