package linkproto_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"heddle/internal/lab/netns"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/lldp"
)

// tags are the ways in which a frame carries tags, outermost first.
var tags = map[string][]byte{
	"VLAN 300":              {0x81, 0, 1, 44},
	"priority tag":          {0x81, 0, 0xe0, 0},
	"802.1ad 300":           {0x88, 0xa8, 1, 44},
	"802.1ad priority tag":  {0x88, 0xa8, 0, 0},
	"VLAN 300 in VLAN 300":  {0x81, 0, 1, 44, 0x81, 0, 1, 44},
	"VLAN 300 in a 0":       {0x81, 0, 0, 0, 0x81, 0, 1, 44},
	"two priority tags":     {0x81, 0, 0, 0, 0x81, 0, 0, 0},
	"an 802.1ad 0 in two 0": {0x81, 0, 0, 0, 0x81, 0, 0, 0, 0x88, 0xa8, 0, 0},
}

// impostor returns the n-th sender of frames that no neighbour sends.
func impostor(n int) plan.MAC { return plan.MAC{2, 0, 0, 0xbb, byte(n >> 8), byte(n)} }

// lacpFrame returns a LACPDU of a separate partner that is ready to bundle.
func lacpFrame(to [6]byte, tag []byte, from plan.MAC) []byte {
	state := lacp.Activity | lacp.Aggregation | lacp.Synchronization | lacp.Collecting | lacp.Distributing
	p := lacp.PDU{Actor: lacp.Info{System: lacp.System{Priority: 1, MAC: from}, Key: 1, Port: lacp.Port{Number: 1},
		State: state}}
	return slices.Concat(to[:], from[:], tag, []byte{0x88, 0x09}, p.Encode())
}

// lldpFrame returns a LLDPDU of a separate system.
func lldpFrame(t *testing.T, to [6]byte, tag []byte, from plan.MAC) []byte {
	t.Helper()
	p := lldp.PDU{Chassis: lldp.ChassisID{Subtype: lldp.ChassisMAC, Value: from[:]},
		Port: lldp.PortID{Subtype: lldp.PortMAC, Value: from[:]}, TTL: 600}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(to[:], from[:], tag, []byte{0x88, 0xcc}, b)
}

// strangers returns the frames of LACP and LLDP that no neighbour sends: each protocol × each destination × each
// combination of tags, except the valid ones.
func strangers(t *testing.T) (frames [][]byte) {
	t.Helper()
	to := [][6]byte{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 1, 1, 1}, {2, 0, 0, 0, 9, 9},
		{1, 0x80, 0xc2, 0, 0, 1}, {1, 0, 0x0c, 0xcc, 0xcc, 0xcc},
		lacp.Destination, lldp.Groups[0], lldp.Groups[1], lldp.Groups[2]}
	for _, tag := range append(slices.Collect(maps.Values(tags)), nil) {
		for _, d := range to {
			if tag != nil || d != lacp.Destination {
				frames = append(frames, lacpFrame(d, tag, impostor(len(frames))))
			}
			if tag != nil || !slices.Contains(lldp.Groups, plan.MAC(d)) {
				frames = append(frames, lldpFrame(t, d, tag, impostor(len(frames))))
			}
		}
	}
	return frames
}

// On real devices only the neighbour's own frames count, whatever else arrives. The same holds if the host has a VLAN
// device on the uplink's device, which removes the tag before the socket sees the frame, and if the host's own traffic
// uses the uplink.
func TestS98_OnRealDevicesOnlyTheNeighbourIsHeard(t *testing.T) {
	for _, c := range []struct{ what, setup string }{
		{"plain", ""},
		{"with VLAN devices", "ip link add link w0 name w0v type vlan id 300; ip link set w0v up; ip link add link " +
			"w0 name w0p type vlan id 0; ip link set w0p up;" +
			"ip link add link w0 name w0ad type vlan protocol 802.1ad id 300; ip link set w0ad up"},
		{"with the host's traffic", "ip addr add 198.51.100.1/24 dev w0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			h := newHost(t, "hears")
			other := testkit.NS(t, "speaks")
			wires(t, h.ns, other, 2)
			for command := range strings.SplitSeq(c.setup, ";") {
				f := strings.Fields(command)
				if len(f) == 0 {
					continue
				}
				if _, err := h.ns.Output(f[0], f[1:]...); err != nil &&
					strings.Contains(err.Error(), "Unknown device type") {
					// Skip even if all requirements are demanded: no package adds this to a kernel without modules.
					t.Skip("missing requirement: VLAN devices of the kernel (CONFIG_VLAN_8021Q)")
				} else if err != nil {
					t.Fatal(err)
				}
			}
			h.start(config("192.0.2.1", "timeout: slow, fallback: none", "listen"))
			h.await("LLDP listens", func() bool { return h.uplink("up0").LLDP != nil })
			end := cable.Open(t, other, "w0")
			for _, f := range strangers(t) {
				end.Send(f)
			}
			neighbour := plan.MAC{2, 0, 0, 0, 0, 0x99}
			end.Send(lacpFrame(lacp.Destination, nil, neighbour))
			for _, g := range lldp.Groups {
				end.Send(lldpFrame(t, g, nil, neighbour))
			}
			h.await("the neighbour is heard by both", func() bool {
				u := h.uplink("up0")
				return u.LAG.In > 0 && u.LLDP.In >= uint64(len(lldp.Groups))
			})
			u := h.uplink("up0")
			if u.LAG.In != 1 || u.LAG.Bad != 0 || u.LAG.Partner == nil || u.LAG.Partner.System != neighbour.String() {
				t.Errorf("LACP: %+v", u.LAG)
			}
			if l := u.LLDP; l.In != uint64(len(lldp.Groups)) || l.Bad != 0 || len(l.Neighbours) != 1 ||
				l.Neighbours[0].Chassis != neighbour.String() {
				t.Errorf("LLDP: %+v", l)
			}
		})
	}
}

// guestOf gives a host a guest: a port in VLAN 300 whose other end is eth0 of the guest's namespace.
func guestOf(t *testing.T, h *host, name string, mac plan.MAC) *netns.NS {
	t.Helper()
	guest := testkit.NS(t, name)
	run(t, h.ns, fmt.Sprintf("ip link add pg up type veth peer name eth0 address %s netns %s", mac, guest.Path()))
	run(t, guest, "ip link set eth0 up")
	return guest
}

// Two hosts are joined by a LAG. A guest of one, in a VLAN of its own, sends LACPDUs and LLDPDUs to everybody, and
// somebody on the cable sends them tagged. The other host keeps its LAG, and traffic in another VLAN loses no frame.
func TestS98_NoGuestTakesTheLAGOfAnotherHostDown(t *testing.T) {
	testkit.Long(t, "waits for a LAG that stays up; TestS98_OnRealDevicesOnlyTheNeighbourIsHeard has frames of "+
		"guests")
	testkit.Tool(t, "ping")
	a, b := newHost(t, "hostile"), newHost(t, "target")
	wires(t, a.ns, b.ns, 2)
	from, to := plan.MAC{2, 0, 0, 0, 3, 1}, plan.MAC{2, 0, 0, 0, 3, 2}
	hostile, bystander := guestOf(t, a, "guesta", from), guestOf(t, b, "guestb", to)
	inVLANs := func(address string, guest plan.MAC) string {
		c := strings.Replace(config(address, "timeout: slow", "both"), "- {name: hosts}",
			"- {name: hosts, vlan: {access: 100}}\n      - {name: guests, vlan: {access: 300}}", 1)
		return c + fmt.Sprintf("  - {name: guest, switch: lab, portGroup: guests, device: pg, mac: %q}\n",
			guest.String())
	}
	a.start(inVLANs("192.0.2.1", from))
	b.start(inVLANs("192.0.2.2", to))
	a.used("up0", "up1")
	b.used("up0", "up1")
	warm(t, a)
	b.await("b knows its neighbour", func() bool {
		return len(b.uplink("up0").LLDP.Neighbours) == 1 && len(b.uplink("up1").LLDP.Neighbours) == 1
	})
	_, links := events(t, b, event.Link, 0)
	guest, heard, wire := cable.Open(t, hostile, "eth0"), cable.Open(t, bystander, "eth0"), cable.Open(t, a.ns, "w0")
	lossless(t, a, 100, "under attack", func() {
		for _, to := range [][6]byte{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0, 0x5e, 1, 1, 1}} {
			for range 20 {
				guest.Send(lacpFrame(to, nil, from))
				guest.Send(lldpFrame(t, to, nil, from))
			}
			heard.Expect(lldpFrame(t, to, nil, from), "the attack goes to the other host")
		}
		for range 10 {
			for _, tag := range tags {
				wire.Send(lacpFrame(lacp.Destination, tag, from))
				wire.Send(lldpFrame(t, lldp.Groups[0], tag, from))
			}
		}
	})
	b.used("up0", "up1")
	if texts, _ := events(t, b, event.Link, links); len(texts) > 0 {
		t.Errorf("members changed: %s", strings.Join(texts, "; "))
	}
	for _, name := range []string{"up0", "up1"} {
		u := b.uplink(name)
		if u.LAG.Partner == nil || u.LAG.Partner.System != a.uplink(name).LAG.Actor.System {
			t.Errorf("%s has the partner %+v", name, u.LAG.Partner)
		}
		if n := u.LLDP.Neighbours; len(n) != 1 || n[0].Port != a.uplink(name).MAC {
			t.Errorf("%s has the neighbours %+v", name, n)
		}
	}
}
