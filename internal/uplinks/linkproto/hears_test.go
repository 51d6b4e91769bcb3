package linkproto

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/uplinks/beacon"
	"heddle/internal/uplinks/cdp"
	"heddle/internal/uplinks/lacp"
	"heddle/internal/uplinks/stp"
	"heddle/internal/uplinks/wire"
)

// destinations returns all kinds of destination addresses, by description.
func destinations() map[string][6]byte {
	all := map[string][6]byte{"broadcast": beacon.Destination, "IP multicast": {1, 0, 0x5e, 1, 1, 1},
		"unicast": {2, 0, 0, 0, 0, 0x77},
		"CDP":     {1, 0, 0x0c, 0xcc, 0xcc, 0xcc}, "zero": {}}
	for i := range byte(16) {
		all[fmt.Sprintf("link control %x", i)] = [6]byte{1, 0x80, 0xc2, 0, 0, i}
	}
	return all
}

// Every listener × every kind of destination × with and without a tag × the types and senders of the others: a listener
// accepts its own protocol from its own group and nothing else.
func TestS98_EveryListenerTakesItsGroupAlone(t *testing.T) {
	s := beacon.Sender{ID: [16]byte{7}}
	probe := s.Frame(beacon.Beacon{}, plan.MAC{2, 0, 0, 0, 0, 9})[14:]
	beacons := hearsBeacons(&s)
	beacons.Sources = [][6]byte{{2, 0, 0, 0, 0, 9}}
	lldpdu := payload(t, pdu("1", 120))
	lacpdu := lacp.PDU{Actor: lacp.Info{System: them}}.Encode()
	for _, c := range []struct {
		what    string
		listen  wire.Listen
		payload []byte
		groups  []string
		tagged  bool
	}{
		{"LACP", hearsLACP(), lacpdu, []string{"link control 2"}, false},
		{"marker", hearsLACP(), lacp.Marker{}.Encode(), []string{"link control 2"}, false},
		{"LLDP", hearsLLDP(), lldpdu, []string{"link control 0", "link control 3", "link control e"}, false},
		{"spanning tree", hearsSTP(), append(slices.Clone(stp.LLC), make([]byte, 34)...), []string{"link control 0"},
			false},
		{"CDP", hearsCDP(), append(slices.Clone(cdp.LLC), 2, 180, 0, 0), []string{"CDP"}, false},
		{"beacons", beacons, probe, []string{"broadcast"}, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			for to, address := range destinations() {
				group := false
				for _, g := range c.groups {
					group = group || g == to
				}
				good := wire.Frame{Destination: address, Source: [6]byte{2, 0, 0, 0, 0, 9},
					EtherType: c.listen.EtherType, Payload: c.payload}
				if c.listen.Takes(&good) != group {
					t.Errorf("%s to %s, untagged: taken %v, want %v", c.what, to, !group, group)
				}
				tagged := good
				tagged.Tagged = true
				if want := group && c.tagged; c.listen.Takes(&tagged) != want {
					t.Errorf("%s to %s, tagged: taken %v, want %v", c.what, to, !want, want)
				}
				for _, typ := range []uint16{0x8100, 0x88a8, 0x0800, 0x8808} {
					// a second tag in the bytes, frames of others
					other := good
					if other.EtherType = typ; c.listen.Takes(&other) {
						t.Errorf("%s to %s of type %#x is taken", c.what, to, typ)
					}
				}
			}
		})
	}
	oam := wire.Frame{Destination: lacp.Destination, EtherType: lacp.EtherType, Payload: make([]byte, 46)}
	if oam.Payload[0] = 3; hearsLACP().Takes(&oam) {
		t.Error("OAM wakes the agent up")
	}
	for what, f := range map[string]wire.Frame{
		"another agent's": {Source: [6]byte{2, 0, 0, 0, 0, 9},
			Payload: (&beacon.Sender{ID: [16]byte{8}}).Frame(beacon.Beacon{}, plan.MAC{})[14:]},
		"a guest's": {Source: [6]byte{2, 0, 0, 0, 0, 8}, Payload: probe},
		"a short":   {Source: [6]byte{2, 0, 0, 0, 0, 9}, Payload: probe[:beacon.MinSize-1]},
	} {
		t.Run(what, func(t *testing.T) {
			f.Destination, f.EtherType = beacon.Destination, beacon.EtherType
			if beacons.Takes(&f) {
				t.Errorf("%s beacon is taken", what)
			}
		})
	}
}

// A frame from an address of this host's own ports changes nothing: two uplinks joined by a cable are no LAG and no
// neighbours.
func TestS98_WhatThisHostSentCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		l, d := StartLACP(n.open, quiet, func([]LACPReport) {}), newNetwork()
		neighbours := StartLLDP(d.open, quiet, func([]LLDPReport) {})
		defer l.Close()
		defer neighbours.Close()
		own := plan.MAC{2, 0, 0, 0, 0, 2}
		l.Own(Own{own: true})
		neighbours.Own(Own{own: true})
		l.Want([]LAG{oneLAG()})
		up := LLDPPort{ID: uplinkID("up0"), Device: Uplink{Ifindex: 1, Up: true}, Listen: true}
		neighbours.Want([]LLDPPort{up})
		synctest.Wait()
		for _, from := range []plan.MAC{own, them.MAC} {
			n.put(1, from, lacp.PDU{Actor: lacp.Info{System: lacp.System{MAC: from}}}.Encode())
			d.put(1, from, payload(t, pdu(from.String(), 120)))
		}
		synctest.Wait()
		n.put(1, own, lacp.PDU{Actor: lacp.Info{System: oneLAG().Config.System}}.Encode()) // while a partner is heard
		synctest.Wait()
		if s, _ := l.Status(lagID); s.Members[0].Counters.In != 2 || s.Members[0].Partner.System.MAC != them.MAC {
			t.Errorf("LACP: %+v", s.Members[0])
		}
		if s, _ := neighbours.Status(up.ID); s.In != 1 || len(s.Neighbours) != 1 || s.Neighbours[0].Source != them.MAC {
			t.Errorf("LLDP: %+v", s)
		}
	})
}

// A beacon counts if its source is the address of the uplink that it names. A copy that a guest sends, or one from
// another uplink's address, keeps no uplink in use.
func TestS98_ABeaconComesFromItsUplink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, reports := newNetwork(), &collected[BeaconReport]{}
		b := StartBeacons(n.open, quiet, func(r BeaconReport) { reports.take([]BeaconReport{r}) })
		defer b.Close()
		g := BeaconGroup{Group: beacon.Group{Switch: "lab", VLANs: []uint16{0}}, Devices: map[plan.PortID]Uplink{}}
		for i := range uint32(3) {
			var all plan.VLANSet
			all.AddRange(0, 4094)
			id := uplinkID(fmt.Sprintf("up%d", i))
			g.Members = append(g.Members, beacon.Member{ID: id, VLANs: all})
			g.Devices[id] = Uplink{Ifindex: i + 1, MAC: plan.MAC{2, 0, 0, 0, 0, byte(i)}, Up: true}
		}
		b.Want([]BeaconGroup{g})
		carry := func(from uint32, rename func(*wire.Frame)) {
			for _, s := range n.take(from) {
				for to := uint32(1); to <= 3; to++ {
					f := wire.Frame{Destination: [6]byte(s.bytes), Source: [6]byte(s.bytes[6:]),
						EtherType: beacon.EtherType, Payload: s.bytes[14:]}
					if rename(&f); to != from {
						n.socket(to).arrive(&f)
					}
				}
			}
		}
		seconds := func(count int, third func(*wire.Frame)) {
			for range count {
				time.Sleep(time.Second)
				synctest.Wait()
				carry(1, func(*wire.Frame) {})
				carry(2, func(*wire.Frame) {})
				carry(3, third)
				synctest.Wait()
			}
		}
		out := func() problem.Problem {
			if all := reports.list(); len(all) > 0 {
				return all[len(all)-1].Out[uplinkID("up2")]
			}
			return problem.Problem{}
		}
		seconds(10, func(*wire.Frame) {})
		if why := out(); !why.None() {
			t.Fatalf("with all beacons: %s", why)
		}
		for what, forge := range map[string]func(*wire.Frame){
			"a guest's address":         func(f *wire.Frame) { f.Source = [6]byte{2, 0, 0, 0, 9, 9} },
			"another uplink's address":  func(f *wire.Frame) { f.Source = [6]byte{2, 0, 0, 0, 0, 0} },
			"the uplink's, but unicast": func(f *wire.Frame) { f.Destination = [6]byte{2, 0, 0, 0, 0, 1} },
		} {
			seconds(10, forge)
			if why := out(); why.Code != problem.BeaconsUnheard {
				t.Errorf("%s: up2 is out for %q", what, why)
			}
			seconds(10, func(*wire.Frame) {})
		}
	})
}
