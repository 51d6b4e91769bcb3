package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// insideText is a definition whose guests are nested hypervisors: trunks inside one VNI. Ports of ten are in one of the
// VLANs.
var insideText = strings.Replace(segmentText, "  - {name: web, overlay: {vni: 5000}}\n", `  - name: web
    overlay: {vni: 5000}
    vlan: {trunk: ["0", "10", "20-22"]}
    security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 256}}
  - {name: ten, overlay: {vni: 5000}, vlan: {access: 10}}
`, 1)

// virtual is the MAC of VRRP's group 7.
var virtual = [6]byte{0, 0, 0x5e, 0, 1, 7}

// toldInside is where controllers say that a MAC is in single VLANs, by the number of the kernel's endpoint; each
// segment of the host is one.
func (h *host) toldInside(mac [6]byte) (ends []uint32) {
	h.T.Helper()
	m := h.locations()
	if m == nil {
		return nil
	}
	defer m.Close()
	var key abi.LocationKey
	var value abi.Location
	each := m.Iterate()
	for each.Next(&key, &value) {
		if key.MAC == mac && key.Whole == abi.ToldInSegment {
			ends = append(ends, value.Endpoint)
		}
	}
	if err := each.Err(); err != nil {
		h.T.Fatal(err)
	}
	slices.Sort(ends)
	return ends
}

// speaksInside has the guest of a host send from a MAC in a VLAN until the controllers say that it is there.
func (f *fleet) speaksInside(n int, mac [6]byte, vlan uint16) {
	f.t.Helper()
	f.guests[fmt.Sprintf("p-web@%d", n)].Send(taggedInside(cable.Broadcast(), mac, vlan, 0, 0, "here"))
	f.hosts[0].Await(fmt.Sprintf("the controllers say that the MAC of VLAN %d is at host %d", vlan, n), func() bool {
		return f.insideAt(mac, vlan) == fmt.Sprintf("esx%d", n)
	})
}

// insideAt is the host with a MAC in a VLAN as the controllers say.
func (f *fleet) insideAt(mac [6]byte, vlan uint16) string {
	f.t.Helper()
	var s api.SegmentDetail
	f.controller.JSON(&s, "segment", "show", "5000", "--mac", plan.MAC(mac).String())
	for _, l := range s.Locations {
		if l.VLAN != nil && *l.VLAN == vlan {
			return l.Host
		}
	}
	return ""
}

// onlyTo: a frame of host 0's guest for the MAC in a VLAN goes to one of the other hosts alone, as soon as host 0 knows
// where it is.
func (f *fleet) onlyTo(n int, mac [6]byte, vlan uint16, when string) {
	f.t.Helper()
	h, from := f.hosts[0], f.guests["p-web@0"]
	other := f.hosts[3-n]
	probe := func(i int) []byte {
		return taggedInside(mac, fleetMAC(0, 3), vlan, 0, 0, fmt.Sprintf("%s: VLAN %d, %d", when, vlan, i))
	}
	i := 0
	h.Await(fmt.Sprintf("S112: a frame of VLAN %d goes to host %d alone: %s", vlan, n, when), func() bool {
		i++
		before := other.Counter("tunnel", "packetsInUnicast")
		from.Send(probe(i))
		if !f.guests[fmt.Sprintf("p-web@%d", n)].Await(probe(i), realhost.Patience/20) {
			return false
		}
		marker := taggedInside(cable.Broadcast(), fleetMAC(0, 3), vlan, 0, 0,
			fmt.Sprintf("%s: %d, after %d", when, vlan, i))
		from.Send(marker)
		f.guests[fmt.Sprintf("p-web@%d", 3-n)].Expect(marker, "S112: the frame after it")
		return other.Counter("tunnel", "packetsInUnicast") == before
	})
}

// TestS112_ControllersSayInWhichVLANAMACIs: the MAC of a VRRP group is behind trunks of two hosts, in another VLAN at
// each; a third host sends to the one or the other by the frame's VLAN. That follows when the group's master changes in
// one VLAN, and holds without a controller and for an agent that starts anew; addresses of guests in VLANs are told as
// well.
func TestS112_ControllersSayInWhichVLANAMACIs(t *testing.T) {
	testkit.Long(t, "has three hosts, without a controller too; TestS112_RulesOfATrunkHoldInItsVLANs has trunks "+
		"inside a VNI")
	t.Parallel()
	f := newOverlayFleet(t, 3, insideText)
	f.speaksInside(1, virtual, 10)
	f.speaksInside(2, virtual, 20)
	f.onlyTo(1, virtual, 10, "a master in each VLAN")
	f.onlyTo(2, virtual, 20, "a master in each VLAN")
	f.speaksInside(2, virtual, 10)
	f.onlyTo(2, virtual, 10, "the other master of VLAN 10")
	f.speaksInside(1, virtual, 10)
	f.onlyTo(1, virtual, 10, "the first master again")
	f.onlyTo(2, virtual, 20, "the first master again")
	f.showsInside()
	f.addressInside()
	f.portOfOneVLAN()
	f.controller.End(syscall.SIGKILL)
	told := f.hosts[0].toldInside(virtual)
	if len(told) != 2 || told[0] == told[1] {
		t.Errorf("S112: host 0 has the MAC at endpoints %v, want two", told)
	}
	f.hosts[0].End(syscall.SIGKILL)
	f.hosts[0].Start(fmt.Sprintf(ownConfig, 0, 0))
	f.hosts[0].Up("p-web")
	f.hosts[0].Await("S112: the next agent has the same from its disk", func() bool {
		return slices.Equal(f.hosts[0].toldInside(virtual), told)
	})
	f.onlyTo(1, virtual, 10, "without a controller")
	f.onlyTo(2, virtual, 20, "without a controller")
}

// showsInside: segment show has the MAC twice, and names the VLANs.
func (f *fleet) showsInside() {
	f.t.Helper()
	text, errs, status := f.controller.Heddle("segment", "show", "web", "--mac", plan.MAC(virtual).String())
	if status != 0 {
		f.t.Fatalf("status %d: %s", status, errs)
	}
	for _, want := range [][]string{{"10", "esx1"}, {"20", "esx2"}} {
		if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
			words := strings.Fields(line)
			return len(words) > 2 && words[0] == plan.MAC(virtual).String() && slices.Equal(words[1:3], want)
		}) {
			f.t.Errorf("S112: the MAC in VLAN %s at %s:\n%s", want[0], want[1], text)
		}
	}
}

// addressInside: what a guest in a VLAN says of its address to another host alone is known to all of the span.
func (f *fleet) addressInside() {
	f.t.Helper()
	ip, owner := netip.MustParseAddr("10.0.0.7"), cable.MAC(41)
	plain := arpFrame(fleetMAC(2, 3), owner, 2, owner, ip, fleetMAC(2, 3), netip.MustParseAddr("10.0.0.8"))
	tagged := slices.Concat(plain[:12], []byte{0x81, 0, 0, 20}, plain[12:])
	f.speaksInside(1, owner, 20)
	f.hosts[0].Await("S112: host 0 is told who has an address in VLAN 20", func() bool {
		f.guests["p-web@1"].Send(tagged)
		var known api.Neighbours
		text := f.hosts[0].must("segment", "neighbours", "5000", "--address", ip.String(), "-o", "json")
		if err := json.Unmarshal([]byte(text), &known); err != nil {
			f.t.Fatal(err)
		}
		return len(known.Neighbours) == 1 && known.Neighbours[0].VLAN == plan.SegmentOf(20, false).In(5000) &&
			known.Neighbours[0].Whose == api.OwnerTold && known.Neighbours[0].MAC == plan.MAC(owner).String()
	})
	ask := arpFrame(cable.Broadcast(), fleetMAC(0, 3), 1, fleetMAC(0, 3), netip.MustParseAddr("10.0.0.9"), [6]byte{},
		ip)
	asked := slices.Concat(ask[:12], []byte{0x81, 0, 0, 20}, ask[12:])
	before := f.hosts[0].Refused("tunnel", "neighbour-answered")
	f.hosts[0].Await("S112: host 0 answers in VLAN 20", func() bool { // the first question passes (S194)
		f.guests["p-web@0"].Send(asked)
		return f.hosts[0].Refused("tunnel", "neighbour-answered") > before
	})
	f.guests["p-web@0"].Gather("S112: the answer has the tag", func(all [][]byte) bool {
		return slices.ContainsFunc(all, func(g []byte) bool {
			return len(g) > 46 && bytes.Equal(g[12:18], []byte{0x81, 0, 0, 20, 8, 6}) && g[25] == 2 &&
				[6]byte(g[26:32]) == owner
		})
	})
}

// portOfOneVLAN: the own MAC of a port in one VLAN is told for that VLAN.
func (f *fleet) portOfOneVLAN() {
	f.t.Helper()
	f.connect(1, 8, "p-ten", "ten")
	f.hosts[0].Await("S112: the controllers know the port in VLAN 10", func() bool {
		return f.insideAt(fleetMAC(1, 8), 10) == "esx1"
	})
	frame := taggedInside(fleetMAC(1, 8), fleetMAC(0, 3), 10, 0, 0, "to a port of VLAN 10")
	plain := cable.Frame(fleetMAC(1, 8), fleetMAC(0, 3), 0, "to a port of VLAN 10")
	f.hosts[0].Await("S112: a frame comes to the port", func() bool {
		f.guests["p-web@0"].Send(frame)
		return f.guests["p-ten@1"].Await(plain, realhost.Patience/20)
	})
}
