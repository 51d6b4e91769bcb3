//go:build guest

package smoke

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// The tests of this file run in a guest whose network cards' wires send back every frame to MAC(99), with addresses
// exchanged.

// cardsVar and membersVar name the guest's network cards: those to test, and two that are free for a bond.
const (
	cardsVar   = "HEDDLE_CARDS"
	membersVar = "HEDDLE_BOND_MEMBERS"
)

// nicConfig has an access port, a trunk, and the device of that name as uplink.
const nicConfig = `
switches:
  - name: lab
    kind: distributed
    uplinks: [{name: uplink1, device: %s}]
    portGroups:
      - {name: web, vlan: {access: 10}}
      - {name: plain, vlan: {none: true}}
      - {name: trunk, vlan: {trunk: ["20", "4000"]}}
ports:
  - {name: a, switch: lab, portGroup: web, device: port-a, mac: "02:00:00:00:00:01"}
  - {name: b, switch: lab, portGroup: plain, device: port-b, mac: "02:00:00:00:00:02"}
  - {name: c, switch: lab, portGroup: trunk, device: port-c, mac: "02:00:00:00:00:03"}
`

// nicRig is the guest's own namespace as host, with the ends of nicConfig's ports.
type nicRig struct {
	*host
	a, b, c *cable.End
	sent    int
}

// newNICRig starts an agent on a device.
func newNICRig(t *testing.T, device string) *nicRig {
	t.Helper()
	h := newHost(t, nil)
	t.Cleanup(func() {
		for _, name := range []string{"port-a", "port-b", "port-c"} {
			if l, err := netlink.LinkByName(name); err == nil {
				testkit.Remove(t, name, func() error { return netlink.LinkDel(l) })
			}
		}
	})
	r := &nicRig{host: h, a: h.Plug("port-a", cable.MAC(1)), b: h.Plug("port-b", cable.MAC(2)),
		c: h.Plug("port-c", cable.MAC(3))}
	h.Start(fmt.Sprintf(nicConfig, device))
	h.Up("a", "b", "c", "uplink1")
	return r
}

// trip sends a frame of a port's owner to the wire and says whether it came back. The frame has the VLAN's tag on both
// ways.
func (r *nicRig) trip(e *cable.End, mac [6]byte, vlan uint16, within time.Duration) bool {
	r.T.Helper()
	r.sent++
	text := fmt.Sprintf("trip %d", r.sent)
	e.Send(cable.Frame(cable.MAC(99), mac, vlan, text))
	return e.Await(cable.Frame(mac, cable.MAC(99), vlan, text), within)
}

// trips expects frames of all ports to come back.
func (r *nicRig) trips() {
	r.T.Helper()
	for _, p := range []struct {
		name string
		end  *cable.End
		mac  [6]byte
		vlan uint16
	}{{"access port", r.a, cable.MAC(1), 0}, {"untagged port", r.b, cable.MAC(2), 0}, {"trunk", r.c, cable.MAC(3), 20},
		{"trunk", r.c, cable.MAC(3), 4000}} {
		if !r.trip(p.end, p.mac, p.vlan, realhost.Patience) {
			r.T.Errorf("nothing came back to the %s, VLAN %d", p.name, p.vlan)
		}
	}
}

// bring sets a device up and waits for its link.
func bring(t *testing.T, name string) netlink.Link {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(realhost.Patience); l.Attrs().RawFlags&0x10000 == 0; time.Sleep(realhost.Poll) {
		// IFF_LOWER_UP
		if l, err = netlink.LinkByName(name); err != nil || time.Now().After(deadline) {
			t.Fatalf("%s has no link: %v", name, err)
		}
	}
	return l
}

// features is everything "ethtool -k" shows.
func features(t *testing.T, device string) map[string]bool {
	t.Helper()
	e, err := ethtool.NewEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	f, err := e.Features(device)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// passed is what a card lets through by itself.
type passed struct {
	tagged  bool // a frame to its own address, of a VLAN the host has no interface for
	foreign bool // a frame to another address
}

// direct sends such frames to a card, then one that the card must accept, and returns which arrived.
func direct(t *testing.T, device string) (p passed) {
	t.Helper()
	l := bring(t, device)
	e, own := cable.Open(t, nil, device), [6]byte(l.Attrs().HardwareAddr)
	e.Send(cable.Frame(cable.MAC(99), own, 10, "tagged"))
	// An address whose hash is that of no group the device listens to: cards filter groups by hash.
	foreign := [6]byte{2, 0, 0, 0x5a, 0x77, 0x55}
	e.Send(cable.Frame(cable.MAC(99), foreign, 0, "foreign"))
	e.Send(cable.Frame(cable.MAC(99), own, 0, "own"))
	for _, f := range e.Until(cable.Frame(own, cable.MAC(99), 0, "own")) {
		p.tagged = p.tagged || bytes.Equal(f, cable.Frame(own, cable.MAC(99), 10, "tagged"))
		p.foreign = p.foreign || bytes.Equal(f, cable.Frame(foreign, cable.MAC(99), 0, "foreign"))
	}
	return p
}

// TestNIC_UplinkSetAndGivenBack: a card drops what is not for it before, passes the frames of all VLANs and of all
// guests while it is an uplink, and is as it was afterwards.
func TestNIC_UplinkSetAndGivenBack(t *testing.T) {
	cards := strings.Fields(os.Getenv(cardsVar))
	if len(cards) == 0 {
		t.Fatal(cardsVar + " names no network card")
	}
	for _, card := range cards {
		t.Run(card, func(t *testing.T) {
			before, filter := features(t, card), direct(t, card)
			// The driver e1000e says that its VLAN filter is on, and leaves it open in the card; virtio_net's does
			// filter.
			if filter.foreign || filter.tagged && driver(t, card) == "virtio_net" {
				t.Errorf("%s passes %+v by itself: the test shows nothing", card, filter)
			}
			r := newNICRig(t, card)
			r.trips()
			r.shown(card, before)
			if err := r.Heddle("down", "--purge"); err != nil {
				t.Fatal(err)
			}
			if after := features(t, card); !maps.Equal(before, after) {
				t.Errorf("features before %v, after %v", before, after)
			}
			if now := direct(t, card); now != filter {
				t.Errorf("%s passes %+v after heddle down, %+v before", card, now, filter)
			}
		})
	}
}

// driver is the name of a card's driver.
func driver(t *testing.T, card string) string {
	t.Helper()
	e, err := ethtool.NewEthtool()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	name, err := e.DriverName(card)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// shown checks what the agent reports about the card: every offload that was on is off, or there is a warning.
func (r *nicRig) shown(card string, before map[string]bool) {
	r.T.Helper()
	s, err := r.State(r.T.Context())
	if err != nil {
		r.T.Fatal(err)
	}
	u := s.Uplinks[0]
	now := features(r.T, card)
	for _, name := range []string{"rx-lro", "rx-vlan-filter"} {
		warned, changed := strings.Contains(strings.Join(u.Warnings, "\n"), name), slices.Contains(u.Changed, name+
			" off")
		if now[name] != warned || (before[name] && !now[name]) != changed {
			r.T.Errorf("%s was %v, is %v: changed %q, warnings %q", name, before[name], now[name], u.Changed,
				u.Warnings)
		}
	}
	if before["rx-lro"] && now["rx-lro"] {
		r.T.Errorf("%s still merges segments", card)
	}
	if u.State != api.Up || !strings.Contains(strings.Join(u.Changed, " "), "promiscuous mode on") {
		r.T.Errorf("shown as %+v", u)
	}
}

// TestNIC_QueuesKeepFlowsInOrderAndSpreadThem: flows go out by a card with several queues and come back; each comes by
// one receive queue, which is still known where the frame ends, at the port's owner.
func TestNIC_QueuesKeepFlowsInOrderAndSpreadThem(t *testing.T) {
	card := strings.Fields(os.Getenv(cardsVar))[0]
	bring(t, card)
	h := newHost(t, nil)
	owner := h.plugWide("port-v", cable.MAC(2))
	h.Start(strings.ReplaceAll(cardQueueConfig, "CARD", card))
	h.Up("veth", "uplink1")
	// The kernel may go on with a frame on another CPU than the sender's where that has work of the same device at
	// hand, and the flow then changes queues. That happens once in a while on a busy machine; a switch that spread
	// flows over queues would do so every time.
	const attempts = 5
	for i := range uint16(attempts) {
		base := 10000 + i*flowCount
		sendFromAllCPUs(t, owner, base)
		used, astray := owner.sort(cable.MAC(2), cable.MAC(99), base)
		if used < 2 {
			t.Errorf("%d flows came by %d queue", flowCount, used)
		}
		if astray == "" {
			return
		}
		t.Logf("attempt %d: %s", i+1, astray)
	}
	t.Errorf("flows went astray in each of %d attempts", attempts)
}

// sendFromAllCPUs sends each flow from a CPU that it chooses. With the drivers of such cards a frame's CPU decides by
// which queue it leaves (XPS), as without a switch.
func sendFromAllCPUs(t *testing.T, owner *queues, base uint16) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		t.Fatalf("%d CPUs: %v", all.Count(), err)
	}
	for n := range uint32(perFlow) {
		for flow := range uint16(flowCount) {
			var one unix.CPUSet
			one.Set(int(flow) % all.Count())
			err := unix.SchedSetaffinity(0, &one)
			if err == nil {
				_, err = unix.Write(owner.fds[0], flowFrame(cable.MAC(99), cable.MAC(2), base+flow, n))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
}

const cardQueueConfig = `
switches:
  - name: lab
    kind: distributed
    uplinks: [{name: uplink1, device: CARD}]
    portGroups: [{name: plain, vlan: {none: true}}]
ports:
  - {name: veth, switch: lab, portGroup: plain, device: port-v, mac: "02:00:00:00:00:02"}
`
