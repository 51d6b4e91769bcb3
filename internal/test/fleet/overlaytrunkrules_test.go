package fleet

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/test/testkit/cable"
)

// TestS112_RulesOfATrunkHoldInItsVLANs: the address guard and the storm control of a trunk inside a VNI look behind its
// tags, in both tiers of replication a frame crosses once, and a guest of a VLAN that sends too long a packet gets the
// error in that VLAN.
func TestS112_RulesOfATrunkHoldInItsVLANs(t *testing.T) {
	t.Parallel()
	r := newOverlayRig(t, false, "db")
	const rules = "portGroup: hypervisor, security: {addressGuard: {addresses: [10.0.0.21]}}, "
	for i, h := range r.hosts {
		text := r.nestedConfig(i, `"0", "10", "20-22"`, "db")
		if i == 0 {
			text = strings.Replace(text, "portGroup: hypervisor, ", rules, 1)
			text = strings.Replace(text, "macLearning:", "addressGuard: {enabled: true}, macLearning:", 1)
		}
		h.Configure(text)
	}
	r.nested("all are ready")
	t.Run("address guard", func(t *testing.T) { r.guardedTrunk() })
	t.Run("too long", func(t *testing.T) { r.trunkIsTold() })
	t.Run("storm control", func(t *testing.T) { r.stormOfATrunk() })
	t.Run("two tiers", func(t *testing.T) { r.trunkInTwoTiers() })
}

// inVLAN is an untagged frame in a VLAN.
func inVLAN(f []byte, vlan uint16) []byte {
	return slices.Concat(f[:12], []byte{0x81, 0, byte(vlan >> 8), byte(vlan)}, f[12:])
}

// guardedTrunk: the hypervisor's guest speaks for its own address alone, in each VLAN.
func (r *overlayRig) guardedTrunk() {
	n, h := &neighbourRig{r, false}, r.hosts[0]
	own, other := n.at(21), netip.MustParseAddr("10.0.0.66")
	for _, vlan := range []uint16{20, 22} {
		before := h.Counter("one", "arp-sender-not-allowed")
		bad, good := inVLAN(n.announces(own, other), vlan), inVLAN(n.announces(own, own.ip), vlan)
		r.guests[0][0].Send(bad)
		r.guests[0][0].Send(good)
		got := r.guests[1][0].Gather("S112: the guest's own address", func(all [][]byte) bool {
			return bytes.Equal(all[len(all)-1], good)
		})
		if slices.ContainsFunc(got, func(f []byte) bool { return bytes.Equal(f, bad) }) {
			r.t.Errorf("S112: in VLAN %d the guest announced the address of another one", vlan)
		}
		if got := h.Counter("one", "arp-sender-not-allowed"); got != before+1 {
			r.t.Errorf("S112: in VLAN %d the guard counted %d frames more, want 1", vlan, got-before)
		}
	}
}

// trunkIsTold: the error about a packet of a VLAN comes in that VLAN, and says what fits with its tag.
func (r *overlayRig) trunkIsTold() {
	const room = 1446 // the underlay's 1,500 without the outer headers, the inner Ethernet header and the tag
	h := r.hosts[0]
	r.command(h.NS, "ip", "link", "set", "u0", "mtu", "1500")
	r.smallUnderlay(h, room)
	long := cable.Frame(cable.MAC(22), cable.MAC(21), 0, "")[:12]
	long = append(long, 8, 0, 0x45, 0, byte((room+1)>>8), byte((room+1)&0xff), 0, 1, 0x40, 0, 64, 17, 0, 0,
		10, 0, 0, 21, 10, 0, 0, 22)
	long = inVLAN(append(long, make([]byte, 14+room+1-len(long))...), 20)
	told := func(f []byte) bool { // ICMP in VLAN 20: fragmentation needed, and the MTU
		return len(f) > 18+28 && bytes.Equal(f[12:16], []byte{0x81, 0, 0, 20}) && f[18+9] == 1 && f[18+20] == 3 &&
			f[18+21] == 4 && int(f[18+26])<<8|int(f[18+27]) == room
	}
	h.Await("S112: the sender is told in its VLAN what fits", func() bool {
		r.guests[0][0].Send(long)
		return r.guests[0][0].Hears(told)
	})
	r.guests[1][0].Refuse(long, "S112: a packet that does not fit")
	fits := bytes.Clone(long[:18+room])
	fits[18+3] = byte(room & 0xff)
	r.guests[0][0].Send(fits)
	r.guests[1][0].Expect(fits, "S112: a packet that fits to the byte")
	r.command(h.NS, "ip", "link", "set", "u0", "mtu", "1600")
}

// stormOfATrunk: broadcasts of a trunk's VLANs count together, and frames to one station go on.
func (r *overlayRig) stormOfATrunk() {
	h := r.hosts[0]
	text := r.nestedConfig(0, `"0", "10", "20-22"`, "db")
	h.Configure(strings.Replace(text, "    vlan: {trunk:", "    stormControl: {broadcast: 2}\n    vlan: {trunk:", 1))
	before := h.Counter("one", "storm-control")
	h.Await("S112: the trunk's broadcasts are limited", func() bool {
		for vlan := uint16(20); vlan <= 22; vlan++ {
			r.guests[0][0].Send(taggedInside(cable.Broadcast(), cable.MAC(21), vlan, 0, 0, "a storm"))
		}
		return h.Counter("one", "storm-control") > before
	})
	for vlan := uint16(20); vlan <= 22; vlan++ {
		f := taggedInside(cable.MAC(22), cable.MAC(21), vlan, 0, 0, "to one station during a storm")
		r.guests[0][0].Send(f)
		r.guests[1][0].Expect(f, "S112: to one station during a storm")
	}
}

// trunkInTwoTiers: what a trunk sends to all is repeated once by the proxy, in its VLAN.
func (r *overlayRig) trunkInTwoTiers() {
	for i, h := range r.hosts {
		text := r.twoTier(i, "db")
		text = strings.Replace(text, "ports:\n", strings.Replace(trunkGroup, "%s", `"0", "10", "20-22"`, 1)+"ports:\n", 1)
		one := "name: one, switch: lab, portGroup: "
		h.Configure(strings.Replace(text, one+"web", one+"hypervisor", 1))
	}
	r.nested("two tiers")
	f := taggedInside(cable.Broadcast(), cable.MAC(21), 20, 4, 0, "by a proxy")
	last := taggedInside(cable.Broadcast(), cable.MAC(21), 20, 0, 0, "after it")
	r.guests[0][0].Send(f)
	r.guests[0][0].Send(last)
	for name, e := range map[string]*cable.End{"the proxy's trunk": r.guests[1][0], "the third machine": r.kernel} {
		n := 0
		for _, got := range e.Until(last) {
			if bytes.Equal(got, f) {
				n++
			}
		}
		if n != 1 {
			r.t.Errorf("S112: %s has got %d copies", name, n)
		}
	}
	r.guests[0][0].Refuse(f, "S112: its own frame came back")
}
