package span

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"heddle/internal/plan"
)

func at(ms int) time.Time { return time.UnixMilli(int64(ms)) }

func mac(n int) Key { return MACKey(plan.MAC{2, 0, 0, 0, byte(n >> 8), byte(n)}) }

func host(n int) string { return fmt.Sprintf("host%d", n) }

func endpoints(n int) []Endpoint {
	return []Endpoint{{Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), MTU: 1600}}
}

// world is several hosts that change what they report, and what is to come of it by other means.
type world struct {
	r     *rand.Rand
	hosts []*reporter
}

// reporter is a host with what it has at present.
type reporter struct {
	id   string
	n    int
	have map[VNI]map[Key]Claim
}

func newWorld(seed uint64, hosts int) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 1))}
	for i := range hosts {
		w.hosts = append(w.hosts, &reporter{id: host(i), n: i, have: map[VNI]map[Key]Claim{}})
	}
	return w
}

// whole is all that a host has.
func (h *reporter) whole() Report {
	r := Report{Whole: true, Endpoints: endpoints(h.n)}
	for vni, items := range h.have {
		one := SegmentReport{VNI: vni, Whole: true}
		for k, c := range items {
			one.Put = append(one.Put, Item{k, c})
		}
		r.Segments = append(r.Segments, one)
	}
	return r
}

// change changes something of a host at random, and is what it says of that.
func (w *world) change(h *reporter) Report {
	vni := VNI(1 + w.r.IntN(3))
	one := SegmentReport{VNI: vni}
	switch items := h.have[vni]; {
	case items != nil && w.r.IntN(12) == 0:
		delete(h.have, vni)
		one.Left = true
	case items == nil:
		h.have[vni] = map[Key]Claim{}
	}
	if one.Left {
		return Report{Segments: []SegmentReport{one}}
	}
	for range w.r.IntN(5) {
		k := mac(w.r.IntN(12))
		if w.r.IntN(4) == 0 {
			k = AddressKey(netip.AddrFrom4([4]byte{10, 0, 0, byte(w.r.IntN(4))}))
		}
		k = k.In([]uint16{0, 0, 10, 20}[w.r.IntN(4)])
		if slices.ContainsFunc(one.Put, func(i Item) bool { return i.Key == k }) || slices.Contains(one.Removed, k) {
			continue
		}
		if _, has := h.have[vni][k]; has && w.r.IntN(2) == 0 {
			delete(h.have[vni], k)
			one.Removed = append(one.Removed, k)
			continue
		}
		c := Claim{Source: Source(1 + w.r.IntN(2)), Since: int64(w.r.IntN(100))}
		if c.Source == Port {
			c.Generation = uint64(w.r.IntN(4))
		}
		_, isMAC := k.MAC()
		c.Untagged = isMAC && k.VLAN() == 0 && w.r.IntN(2) == 0
		h.have[vni][k] = c
		one.Put = append(one.Put, Item{k, c})
	}
	return Report{Segments: []SegmentReport{one}}
}

// check holds a table's own books against what it has.
func (t *Table) check(tt *testing.T) {
	tt.Helper()
	items := map[uint32]int{}
	for vni, s := range t.segments {
		var sum Hash
		for ref, h := range s.members {
			if !t.refs[ref].in[vni] || t.refs[ref].sum() != h {
				tt.Fatalf("segment %d has %s, which is no member or another", vni, t.refs[ref].ID)
			}
			sum.add(h)
		}
		for k, c := range s.places {
			part, _ := t.sums(k, &c)
			sum.add(part)
			items[c.host]++
			for _, rival := range s.rivals[k] {
				items[rival.host]++
				if t.better(&rival, &c) >= 0 {
					tt.Fatalf("of %s a lesser claim counts", k)
				}
			}
		}
		if sum != s.hash {
			tt.Fatalf("the hash of segment %d is not that of its content", vni)
		}
		macs := 0
		for k := range s.places {
			if _, ok := k.MAC(); ok {
				macs++
			}
		}
		if macs != s.macs {
			tt.Fatalf("segment %d has %d MACs and counts %d", vni, macs, s.macs)
		}
		for k, list := range s.rivals {
			if _, ok := s.places[k]; !ok || len(list) == 0 {
				tt.Fatalf("%s has rivals of nothing", k)
			}
		}
	}
	for _, m := range t.hosts {
		if m.items != items[m.ref] {
			tt.Fatalf("%s has %d claims and is charged for %d", m.ID, items[m.ref], m.items)
		}
		for vni := range m.in {
			if _, ok := t.segments[vni].members[m.ref]; !ok {
				tt.Fatalf("%s is no member of segment %d", m.ID, vni)
			}
		}
	}
}

// content is a segment as a replica has it.
func content(t *Table, vni VNI) *Content {
	s := t.segments[vni]
	if s == nil {
		return nil
	}
	c := &Content{Members: map[string]Host{}, Places: map[Key]Located{}, inside: s.inside, hash: s.hash}
	for ref := range s.members {
		c.Members[t.refs[ref].ID] = t.refs[ref].Host
	}
	for k, p := range s.places {
		c.Places[k] = t.located(p)
	}
	return c
}

// Deltas, lost ones, and resumes by hashes make the same of a host as a snapshot does (S105).
func TestSpan_DeltasAndResumesAreTheSnapshot(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed, 4)
		table := NewTable()
		replica, cursors := &Replica{}, map[VNI]Cursor{}
		for step := range 120 {
			h := w.hosts[w.r.IntN(len(w.hosts))]
			switch w.r.IntN(20) {
			case 0:
				table.Disconnected(h.id, 0)
			case 1:
				table.Remove(h.id)
				h.have = map[VNI]map[Key]Claim{}
			case 2:
				table.Report(h.id, h.id, h.whole(), at(step))
			default:
				if table.hosts[h.id] == nil || !table.hosts[h.id].connected {
					table.Report(h.id, h.id, h.whole(), at(step))
				}
				table.Report(h.id, h.id, w.change(h), at(step))
			}
			table.check(t)
			switch w.r.IntN(6) {
			case 0: // the connection breaks: what was told is found by its hash
				cursors = map[VNI]Cursor{}
				for vni, hash := range replica.Have() {
					if cursors[vni] = table.Now(vni); table.Hash(vni, false) != hash {
						cursors[vni] = Nothing()
					}
				}
			case 1: // a message is lost, and the hash of the next one shows it
				for vni := VNI(1); vni <= 3; vni++ {
					_, cursors[vni], _ = table.Since(vni, cursors[vni], false)
				}
				continue
			}
			for vni := VNI(1); vni <= 3; vni++ {
				u, to, ok := table.Since(vni, cursors[vni], false)
				cursors[vni] = to
				if ok && !replica.Apply(u) {
					cursors[vni] = Cursor{}
					u, cursors[vni], _ = table.Since(vni, Cursor{}, false)
					if !replica.Apply(u) {
						t.Fatal("a snapshot does not fit its hash")
					}
				}
				if ok && !reflect.DeepEqual(replica.Content(vni), content(table, vni)) {
					t.Fatalf("seed %d, step %d: the host has %+v of segment %d, the controller %+v", seed, step,
						replica.Content(vni), vni, content(table, vni))
				}
			}
		}
	}
}

// Controllers that are told by one another agree, whoever is told first (S105).
func TestSpan_ControllersAgreeInWhateverOrderTheyAreTold(t *testing.T) {
	for seed := range uint64(60) {
		w := newWorld(seed, 4)
		tables := []*Table{NewTable(), NewTable()} // hosts 0 and 1 are at the first, 2 and 3 at the second
		type message struct {
			id string
			r  Report
		}
		var late [2][]message // what the other one is still to be told
		for step := range 80 {
			h := w.hosts[w.r.IntN(len(w.hosts))]
			home := h.n / 2
			r := w.change(h)
			if tables[home].hosts[h.id] == nil {
				r = h.whole()
			}
			tables[home].Report(h.id, h.id, r, at(step))
			tables[home].Number(h.id, &r)
			late[1-home] = append(late[1-home], message{h.id, r})
			for i := range late {
				for len(late[i]) > 0 && w.r.IntN(3) == 0 {
					tables[i].Report(late[i][0].id, late[i][0].id, late[i][0].r, at(step))
					late[i] = late[i][1:]
				}
			}
		}
		for i := range late {
			if w.r.IntN(3) == 0 { // the connection broke: all is told anew
				for _, h := range w.hosts[2*(1-i) : 2*(1-i)+2] {
					if name, all, ok := tables[1-i].Whole(h.id); ok {
						tables[i].Report(h.id, name, all, at(1000))
					}
				}
				continue
			}
			for _, m := range late[i] {
				tables[i].Report(m.id, m.id, m.r, at(1000))
			}
		}
		for vni := VNI(1); vni <= 3; vni++ {
			if a, b := content(tables[0], vni), content(tables[1], vni); !reflect.DeepEqual(a, b) {
				t.Fatalf("seed %d: of segment %d one has %+v and the other %+v", seed, vni, a, b)
			}
		}
		tables[0].check(t)
		tables[1].check(t)
	}
}

// Of several hosts that claim a MAC: a port's own counts more than what is learned, then the higher generation, then
// who is connected, then the later one.
func TestSpan_TheClaimThatCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  Claim
		second Claim
		away   bool // the second one loses its controllers
		want   string
	}{
		{"the later of two that learned it", Claim{Source: Learned}, Claim{Source: Learned}, false, "b"},
		{"a port's own, though learned later elsewhere", Claim{Source: Port}, Claim{Source: Learned}, false, "a"},
		{"a higher generation, though told earlier", Claim{Source: Port, Generation: 8},
			Claim{Source: Port, Generation: 7}, false, "a"},
		{"a higher generation, though it lost its controllers", Claim{Source: Port, Generation: 7},
			Claim{Source: Port, Generation: 8}, true, "b"},
		{"who is connected, of the same generation", Claim{Source: Port, Generation: 7},
			Claim{Source: Port, Generation: 7}, true, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := NewTable()
			for i, claim := range []Claim{c.first, c.second} {
				table.Report(string(rune('a'+i)), "", Report{Segments: []SegmentReport{{VNI: 5,
					Put: []Item{{mac(1), claim}}}}}, at(i+1))
			}
			if c.away {
				table.Disconnected("b", 0)
			}
			if got := content(table, 5).Places[mac(1)].Host; got != c.want {
				t.Errorf("it is at %s, not at %s", got, c.want)
			}
		})
	}
}

// What is withdrawn leaves the MAC to the next one that claims it.
func TestTable_AWithdrawnClaimLeavesTheNext(t *testing.T) {
	table := NewTable()
	put := func(id string, ms int) {
		table.Report(id, id, Report{Segments: []SegmentReport{{VNI: 5, Put: []Item{{mac(1),
			Claim{Source: Learned}}}}}}, at(ms))
	}
	put("a", 1)
	put("b", 2)
	put("a", 3) // said again, which makes it no newer
	if got := content(table, 5).Places[mac(1)].Host; got != "b" {
		t.Fatalf("it is at %s", got)
	}
	table.Report("b", "b", Report{Segments: []SegmentReport{{VNI: 5, Removed: []Key{mac(1)}}}}, at(4))
	if got := content(table, 5).Places[mac(1)].Host; got != "a" {
		t.Fatalf("it is at %s", got)
	}
	table.Remove("a")
	if c := content(table, 5); len(c.Places) != 0 || len(c.Members) != 1 {
		t.Fatalf("it has %+v", c)
	}
	table.check(t)
}

// A host that claims more than it may is told so, and the rest stays.
func TestTable_BoundsWhatAHostClaims(t *testing.T) {
	table := NewTable()
	r := Report{}
	for vni := range MostSegments + 3 {
		r.Segments = append(r.Segments, SegmentReport{VNI: VNI(vni + 1)})
	}
	if _, refused := table.Report("a", "a", r, at(1)); len(refused.Segments) != 3 {
		t.Errorf("refused are segments %v", refused.Segments)
	}
	one := SegmentReport{VNI: 1}
	for i := range MostItems + 5 {
		one.Put = append(one.Put, Item{AddressKey(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})),
			Claim{Source: Learned}})
	}
	if _, refused := table.Report("a", "a", Report{Segments: []SegmentReport{one}}, at(1)); refused.Items != 5 {
		t.Errorf("refused are %d claims", refused.Items)
	}
	if _, refused := table.Report("a", "a", Report{Segments: []SegmentReport{{VNI: 1, Whole: true, Put: one.Put[:9]}}},
		at(1)); refused.Items != 0 || table.hosts["a"].items != 9 {
		t.Errorf("%d are refused, %d are charged", refused.Items, table.hosts["a"].items)
	}
}

// A controller that was started anew numbers claims above those that it hears of, and above those of before.
func TestTable_NumbersRiseOverARestart(t *testing.T) {
	old := NewTable()
	put := []Item{{mac(1), Claim{Source: Learned}}}
	old.Report("a", "a", Report{Segments: []SegmentReport{{VNI: 5, Put: put}}}, at(1000))
	was := content(old, 5).Places[mac(1)].Order
	for _, now := range []int{2000, 10} { // the second by a clock that was set back, which it hears of from a host
		anew := NewTable()
		if now == 10 {
			kept := []Item{{mac(2), Claim{Source: Learned, Order: was}}}
			anew.Report("b", "b", Report{Segments: []SegmentReport{{VNI: 5, Put: kept}}}, at(now))
		}
		anew.Report("a", "a", Report{Segments: []SegmentReport{{VNI: 5, Put: put}}}, at(now))
		if got := content(anew, 5).Places[mac(1)].Order; got <= was {
			t.Errorf("after %d comes %d", was, got)
		}
	}
}

// Of two connections of a host, what comes late of the older one counts no more.
func TestTable_AnOlderSessionCountsNoMore(t *testing.T) {
	table := NewTable()
	older, newer := table.NewSession(at(1)), table.NewSession(at(1))
	say := func(session uint64, k Key) {
		table.Report("a", "a", Report{Session: session, Whole: true, Segments: []SegmentReport{{VNI: 5, Whole: true,
			Put: []Item{{k, Claim{Source: Learned}}}}}}, at(2))
	}
	say(newer, mac(1))
	say(older, mac(2))
	table.Disconnected("a", older)
	c := content(table, 5)
	if _, connected, _ := table.Host("a"); !connected || len(c.Places) != 1 || c.Places[mac(1)].Host != "a" {
		t.Errorf("connected %v, it has %+v", connected, c)
	}
	table.Disconnected("a", newer)
	if _, connected, _ := table.Host("a"); connected {
		t.Error("it is connected still")
	}
}

// A controller that was started anew learns from what one host knew where the MACs of others are, which have not come
// back yet: nobody loses a location by that. What such a host says itself counts more (S105).
func TestSpan_ANewControllerKnowsWhatHostsKnew(t *testing.T) {
	old := NewTable()
	say := func(table *Table, id string, keys ...Key) {
		one := SegmentReport{VNI: 5, Whole: true}
		for _, k := range keys {
			one.Put = append(one.Put, Item{k, Claim{Source: Learned}})
		}
		table.Report(id, id, Report{Session: table.NewSession(at(1)), Whole: true, Endpoints: endpoints(1),
			Segments: []SegmentReport{one}}, at(1))
	}
	say(old, "a", mac(1))
	say(old, "b", mac(2), mac(3))
	say(old, "gone", mac(4))
	var a Replica
	u, _, _ := old.Since(5, Cursor{}, false)
	a.Apply(u)

	anew := NewTable()
	say(anew, "a", mac(1))
	anew.Seed(a.All(5), func(id string) bool { return id != "gone" })
	anew.check(t)
	c := content(anew, 5)
	if len(c.Members) != 2 || len(c.Places) != 3 || c.Places[mac(3)].Host != "b" || len(c.Members["b"].Endpoints) != 1 {
		t.Fatalf("it has %+v", c)
	}
	say(anew, "b", mac(2)) // which forgot the other
	anew.Seed(a.All(5), func(string) bool { return true })
	anew.check(t)
	if c := content(anew, 5); len(c.Places) != 3 || c.Places[mac(3)].Host != "" || c.Places[mac(4)].Host != "gone" {
		t.Fatalf("it has %+v", c)
	}
}

// Keys are read as they are written.
func TestKey_Bytes(t *testing.T) {
	for _, k := range []Key{mac(300), AddressKey(netip.MustParseAddr("10.1.2.3")),
		AddressKey(netip.MustParseAddr("2001:db8::1"))} {
		if got, err := ParseKey(k.Bytes()); err != nil || got != k {
			t.Errorf("%v is read as %v: %v", k, got, err)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 5), netip.MustParseAddr("::ffff:10.1.2.3").AsSlice()} {
		if k, err := ParseKey(b); err == nil {
			t.Errorf("%x is read as %v", b, k)
		}
	}
	if AddressKey(netip.MustParseAddr("::ffff:10.1.2.3")) != AddressKey(netip.MustParseAddr("10.1.2.3")) {
		t.Error("one address has two keys")
	}
}

// A replica that was kept on disk is the same again.
func TestReplica_All(t *testing.T) {
	table := NewTable()
	table.Report("a", "A", Report{Endpoints: endpoints(1), Segments: []SegmentReport{{VNI: 5,
		Put: []Item{{mac(1), Claim{Source: Port, Generation: 3}}}}}}, at(1))
	u, _, _ := table.Since(5, Cursor{}, false)
	var r, again Replica
	if !r.Apply(u) || !again.Apply(r.All(5)) {
		t.Fatal("it does not fit")
	}
	if !reflect.DeepEqual(r, again) || !maps.Equal(r.Have(), again.Have()) {
		t.Errorf("%+v is %+v", r, again)
	}
	again.Apply(again.All(6))
	if got := again.Segments(); !slices.Equal(got, []VNI{5}) {
		t.Errorf("it has %v", got)
	}
}
