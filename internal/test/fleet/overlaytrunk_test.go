package fleet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// trunkGroup makes the first port of a host of the rig a trunk inside the VNI, with MAC learning as for a nested
// hypervisor.
const trunkGroup = `  - name: hypervisor
    overlay: {vni: 5000}
    vlan: {trunk: [%s]}
    security: {forgedTransmits: accept, macLearning: {enabled: true}}
`

// nestedConfig is the configuration of a host of the rig, whose first port is a trunk of these VLANs inside.
func (r *overlayRig) nestedConfig(i int, vlans, second string) string {
	text := strings.Replace(r.config(i, second), "ports:\n", fmt.Sprintf(trunkGroup, vlans)+"ports:\n", 1)
	one := "name: one, switch: lab, portGroup: "
	return strings.Replace(text, one+"web", one+"hypervisor", 1)
}

// taggedInside is a frame in a VLAN with a priority, with another tag behind it unless that is 0.
func taggedInside(to, from [6]byte, vlan, priority, second uint16, text string) []byte {
	plain := cable.Frame(to, from, 0, text)
	tags := binary.BigEndian.AppendUint16([]byte{0x81, 0}, priority<<13|vlan)
	if second != 0 {
		tags = binary.BigEndian.AppendUint16(append(tags, 0x81, 0), second)
	}
	return slices.Concat(plain[:12], tags, plain[12:])
}

// TestS112_ATrunkInsideAVNI: hypervisors on two hosts are trunks inside one VNI. Frames go from one to the other with
// the tags that their guests gave them, and untagged; a port of one VLAN meets that VLAN; what the trunk does not list
// is refused and counted; MACs are learned in each VLAN by itself. That holds after a port has ceased to be a trunk and
// is one again, with another agent, and without one.
func TestS112_ATrunkInsideAVNI(t *testing.T) {
	testkit.Long(t, "TestS112_RulesOfATrunkHoldInItsVLANs has a trunk inside a VNI")
	t.Parallel()
	r := newOverlayRig(t, false, "db")
	for i, h := range r.hosts {
		h.Configure(r.nestedConfig(i, `"0", "10", "20-22"`, "db"))
	}
	r.nested("the first plan")
	r.foreign()
	r.placed()
	r.hosts[0].Configure(r.config(0, "db"))
	r.once(cable.MAC(1), "not a trunk any more")
	for _, f := range [][]byte{taggedInside(cable.Broadcast(), cable.MAC(1), 20, 0, 0, "tagged and no trunk")} {
		r.guests[0][0].Send(f)
		r.guests[0][0].Send(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "after it"))
		r.guests[1][0].Expect(cable.Frame(cable.Broadcast(), cable.MAC(1), 0, "after it"), "untagged frames go on")
		r.guests[1][0].Refuse(f, "a tag from a port that is no trunk")
	}
	r.hosts[0].Configure(r.nestedConfig(0, `"0", "10", "20-22"`, "db"))
	r.nested("a trunk again")
	r.hosts[0].End(9)
	r.nested("without an agent")
	r.hosts[0].StartWith(r.hosts[0].Launch)
	r.nested("with the next agent")
	r.nothingLeft()
}

// nested: what the hypervisors send each other arrives byte for byte.
func (r *overlayRig) nested(when string) {
	r.t.Helper()
	a, b, all := cable.MAC(21), cable.MAC(22), cable.Broadcast()
	one, two := r.guests[0][0], r.guests[1][0]
	for _, f := range [][]byte{
		taggedInside(all, a, 20, 5, 0, when+": a broadcast of VLAN 20"),
		taggedInside(all, a, 22, 0, 7, when+": two tags"),
		cable.Frame(all, a, 0, when+": untagged"), taggedInside(b, a, 20, 0, 0, when+": to a station"),
	} {
		one.Send(f)
		two.Expect(f, "S112: from trunk to trunk: "+when)
		r.guests[1][1].Refuse(f, "S112: a frame of another VLAN: "+when)
	}
	back := taggedInside(a, b, 20, 3, 0, when+": back")
	two.Send(back)
	one.Expect(back, "S112: back: "+when)
	// VLAN 10 is that of the second ports.
	text := when + ": a broadcast of VLAN 10"
	one.Send(taggedInside(all, a, 10, 0, 0, text))
	for i := range r.guests {
		r.guests[i][1].Expect(cable.Frame(all, a, 0, text), "S112: from the trunk to a port of the VLAN: "+when)
	}
	two.Expect(taggedInside(all, a, 10, 0, 0, text), "S112: and to the other trunk: "+when)
	text = when + ": from VLAN 10"
	r.guests[1][1].Send(cable.Frame(all, cable.MAC(12), 0, text))
	for _, end := range []*cable.End{one, two} {
		end.Expect(taggedInside(all, cable.MAC(12), 10, 0, 0, text), "S112: from a port of the VLAN to trunks: "+when)
	}
}

// foreign: what a trunk does not list is refused at the port, in both directions, and counted.
func (r *overlayRig) foreign() {
	r.t.Helper()
	h, one, two := r.hosts[0], r.guests[0][0], r.guests[1][0]
	before := h.Counter("one", "vlan-not-allowed")
	bad := [][]byte{taggedInside(cable.Broadcast(), cable.MAC(21), 30, 0, 0, "a VLAN that is not listed"),
		taggedInside(cable.Broadcast(), cable.MAC(21), 1, 0, 0, "a VLAN that may be a number"),
		taggedInside(cable.Broadcast(), cable.MAC(21), 0, 0, 30, "a tag behind a priority tag"),
		taggedInside(cable.Broadcast(), cable.MAC(21), 4095, 0, 0, "no VLAN")}
	for _, f := range bad {
		one.Send(f)
	}
	h.Await("S112: frames of VLANs that the trunk does not list are counted", func() bool {
		return h.Counter("one", "vlan-not-allowed") == before+uint64(len(bad))
	})
	marker := taggedInside(cable.Broadcast(), cable.MAC(21), 20, 0, 0, "after the refused ones")
	one.Send(marker)
	for _, f := range two.Until(marker) {
		if slices.ContainsFunc(bad, func(b []byte) bool { return bytes.Equal(b, f) }) {
			r.t.Errorf("S112: %x passed", f)
		}
	}
}

// placed: one MAC in two VLANs is at two places.
func (r *overlayRig) placed() {
	r.t.Helper()
	shared := cable.MAC(99)
	one, two, third := r.guests[0][0], r.guests[1][0], r.kernel
	two.Send(taggedInside(cable.Broadcast(), shared, 20, 0, 0, "here in VLAN 20"))
	one.Expect(taggedInside(cable.Broadcast(), shared, 20, 0, 0, "here in VLAN 20"), "S112")
	third.Send(taggedInside(cable.Broadcast(), shared, 21, 0, 0, "elsewhere in VLAN 21"))
	one.Expect(taggedInside(cable.Broadcast(), shared, 21, 0, 0, "elsewhere in VLAN 21"), "S112")
	for _, c := range []struct {
		vlan      uint16
		at, other *cable.End
	}{{20, two, third}, {21, third, two}} {
		f := taggedInside(shared, cable.MAC(21), c.vlan, 0, 0, "to the MAC of two VLANs")
		marker := taggedInside(cable.Broadcast(), cable.MAC(21), c.vlan, 0, 0, fmt.Sprintf("after that of %d", c.vlan))
		one.Send(f)
		one.Send(marker)
		c.at.Expect(f, fmt.Sprintf("S112: the MAC of VLAN %d", c.vlan))
		if got := c.other.Until(marker); slices.ContainsFunc(got, func(g []byte) bool { return bytes.Equal(g, f) }) {
			r.t.Errorf("S112: a frame of VLAN %d went to where the MAC is in another VLAN", c.vlan)
		}
	}
	if text := r.hosts[1].must("mac", "list"); !strings.Contains(text, "vni:5000/20") {
		r.t.Errorf("S112: the MAC is not shown in its VLAN:\n%s", text)
	}
}
