package span

import "testing"

// asOlder is what a host of the version before reads of an update, which has nothing of tagged VLANs.
func asOlder(t *testing.T, u *Update) *Update {
	t.Helper()
	for i := range u.Put {
		if u.Put[i].Key.VLAN() != 0 {
			t.Fatalf("it is told of VLAN %d", u.Put[i].Key.VLAN())
		}
		u.Put[i].Untagged = false
	}
	return u
}

// fits holds what a host of the version before knows of a segment against what there is: a MAC is where it is in all
// VLANs, and nowhere if it is at several hosts.
func fits(t *testing.T, c *Content, s *segment, names func(uint32) string) {
	t.Helper()
	at := map[Key]map[string]bool{}
	for k := range s.places {
		_, isMAC := k.MAC()
		if !isMAC && k.VLAN() != 0 {
			continue
		}
		if at[k.In(0)] == nil {
			at[k.In(0)] = map[string]bool{}
		}
		at[k.In(0)][names(s.places[k].host)] = true
	}
	for k, hosts := range at {
		l, known := c.Places[k]
		if known != (len(hosts) == 1) || known && !hosts[l.Host] {
			t.Fatalf("%s is at %v, and a host of the version before has it at %q", k, hosts, l.Host)
		}
	}
	for k := range c.Places {
		if len(at[k]) == 0 {
			t.Fatalf("a host of the version before has %s, which is nowhere", k)
		}
	}
}

// TestS112_HostsOfTheVersionBeforeAreToldWhereAMACIsInAllVLANs: by deltas, and by snapshots found by hashes. A MAC that
// is at several hosts in several VLANs they are not told of.
func TestS112_HostsOfTheVersionBeforeAreToldWhereAMACIsInAllVLANs(t *testing.T) {
	apart := 0
	for seed := range uint64(60) {
		w, table := newWorld(seed, 4), NewTable()
		replica, cursors := &Replica{}, map[VNI]Cursor{}
		for step := range 120 {
			h := w.hosts[w.r.IntN(len(w.hosts))]
			if table.hosts[h.id] == nil || !table.hosts[h.id].connected {
				table.Report(h.id, h.id, h.whole(), at(step))
			}
			if w.r.IntN(15) == 0 {
				table.Disconnected(h.id, 0)
			}
			table.Report(h.id, h.id, w.change(h), at(step))
			if w.r.IntN(6) == 0 {
				for vni, hash := range replica.Have() {
					if cursors[vni] = table.Now(vni); table.Hash(vni, true) != hash {
						cursors[vni] = Nothing()
					}
				}
			}
			for vni := VNI(1); vni <= 3; vni++ {
				u, to, ok := table.Since(vni, cursors[vni], true)
				cursors[vni] = to
				if ok && !replica.Apply(asOlder(t, u)) {
					t.Fatalf("seed %d, step %d: an update of segment %d does not fit its hash", seed, step, vni)
				}
				if s := table.segments[vni]; s != nil && replica.Content(vni) != nil {
					fits(t, replica.Content(vni), s, func(ref uint32) string { return table.refs[ref].ID })
					apart += len(s.inside)
				}
			}
		}
	}
	if apart == 0 {
		t.Error("no MAC was in a tagged VLAN")
	}
}

// TestS112_AnAgentKeepsTheOrderOfItsClaimsWhenItIsUpdated: what it says of VLANs now, it says by the same claim, and a
// controller that relays it without that takes nothing away.
func TestS112_AnAgentKeepsTheOrderOfItsClaimsWhenItIsUpdated(t *testing.T) {
	table := NewTable()
	say := func(c Claim) Located {
		table.Report("a", "a", Report{Whole: true, Endpoints: endpoints(1), Segments: []SegmentReport{{VNI: 5,
			Whole: true, Put: []Item{{mac(1), c}}}}}, at(10))
		l, _ := table.Place(5, mac(1))
		return l
	}
	before := say(Claim{Source: Learned})
	hash := table.Hash(5, false)
	var known Replica
	u, _, _ := table.Since(5, Cursor{}, true)
	known.Apply(u)
	var own Own
	own.Set(endpoints(1), map[VNI]map[Key]Claim{5: {mac(1): {Source: Learned, Untagged: true}}})
	claim := own.Whole("a", &known).Segments[0].Put[0].Claim
	if claim.Order != before.Order {
		t.Errorf("the claim has the number %d, and had %d", claim.Order, before.Order)
	}
	if after := say(claim); !after.Untagged || after.Order != before.Order || table.Hash(5, false) == hash ||
		table.Hash(5, true) != hash {
		t.Errorf("the claim is %+v, and was %+v", after, before)
	}
	claim.Untagged = false
	if after := say(claim); !after.Untagged {
		t.Error("a controller that does not know VLANs inside a VNI has taken the VLAN away")
	}
}
