package span

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Update makes what a host has of one segment what it is to have.
type Update struct {
	VNI VNI
	// Gone: the host has nothing of the segment any more.
	Gone bool
	// Whole: what is put is all of the segment.
	Whole bool
	// Members are hosts that are new or another; Left the ids of those that are no members any more.
	Members []Host
	Left    []string
	Put     []Place
	Removed []Key
	// Hash of the segment's content after the update.
	Hash Hash
}

// Place is one location.
type Place struct {
	Key Key
	Located
}

// Cursor says up to which change a host was told of a segment.
type Cursor struct {
	next uint64
	// of is the segment: one that all hosts left and joined again is another.
	of *segment
	// other: it has something, of which nobody knows what.
	other bool
}

// SegmentsOf are the segments that a host is a member of, in order.
func (t *Table) SegmentsOf(id string) []VNI {
	m := t.hosts[id]
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.in))
}

// Span are the ids of the hosts of a segment.
func (t *Table) Span(vni VNI) []string {
	s := t.segments[vni]
	if s == nil {
		return nil
	}
	list := make([]string, 0, len(s.members))
	for ref := range s.members {
		list = append(list, t.refs[ref].ID)
	}
	return list
}

// Hash is that of a segment's content; zero for one without members. older: of what a host of the version before knows
// of it, to which there are no VLANs inside a VNI.
func (t *Table) Hash(vni VNI, older bool) Hash {
	if s := t.segments[vni]; s != nil {
		return s.hashFor(older)
	}
	return Hash{}
}

func (s *segment) hashFor(older bool) Hash {
	if older {
		return s.older
	}
	return s.hash
}

// Now is the cursor of who has all of a segment.
func (t *Table) Now(vni VNI) Cursor {
	if s := t.segments[vni]; s != nil {
		return Cursor{next: s.log.next, of: s}
	}
	return Cursor{}
}

// Nothing is the cursor of who has something of a segment, and has to be sent all of it.
func Nothing() Cursor { return Cursor{other: true} }

// Since is what has changed of a segment since the cursor, and the cursor after it; false for nothing. The zero cursor
// is that of who has nothing. older is as for Hash.
func (t *Table) Since(vni VNI, from Cursor, older bool) (u *Update, to Cursor, ok bool) {
	s := t.segments[vni]
	if s == nil {
		return &Update{VNI: vni, Gone: true}, Cursor{}, from != Cursor{}
	}
	to = Cursor{next: s.log.next, of: s}
	if from == to {
		return nil, to, false
	}
	if from.of == s {
		if entries, known := s.log.since(from.next); known {
			return t.delta(s, entries, older), to, true
		}
	}
	return t.whole(s, older), to, true
}

// whole is all of a segment.
func (t *Table) whole(s *segment, older bool) *Update {
	u := &Update{VNI: s.vni, Whole: true, Hash: s.hashFor(older), Members: make([]Host, 0, len(s.members)),
		Put: make([]Place, 0, len(s.places))}
	for ref := range s.members {
		u.Members = append(u.Members, t.refs[ref].Host)
	}
	for _, k := range s.keys(older) {
		if c, ok := s.place(k, older); ok {
			u.Put = append(u.Put, Place{k, t.located(c)})
		}
	}
	slices.SortFunc(u.Members, func(a, b Host) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(u.Put, func(a, b Place) int { return a.Key.Compare(b.Key) })
	return u
}

// delta is what these changes made of a segment: each key and each host once, as it is now.
func (t *Table) delta(s *segment, entries []entry, older bool) *Update {
	u := &Update{VNI: s.vni, Hash: s.hashFor(older)}
	seen := make(map[entry]bool, len(entries))
	for _, e := range entries {
		if older && e.key.vlan != 0 {
			if e.key.kind != isMAC {
				continue
			}
			e.key = e.key.In(0)
		}
		if seen[e] {
			continue
		}
		seen[e] = true
		if e.host != "" {
			m := t.hosts[e.host]
			if m != nil && m.in[s.vni] {
				u.Members = append(u.Members, m.Host)
			} else {
				u.Left = append(u.Left, e.host)
			}
			continue
		}
		if c, ok := s.place(e.key, older); ok {
			u.Put = append(u.Put, Place{e.key, t.located(c)})
		} else {
			u.Removed = append(u.Removed, e.key)
		}
	}
	return u
}

// Host is a host as it was described last; false for one that has said nothing. connected: a controller hears from it.
func (t *Table) Host(id string) (h Host, connected, ok bool) {
	m := t.hosts[id]
	if m == nil {
		return h, false, false
	}
	return m.Host, m.connected, true
}

// Session is that of a host's newest connection; 0 for none.
func (t *Table) Session(id string) uint64 {
	if m := t.hosts[id]; m != nil {
		return m.session
	}
	return 0
}

// Hosts are the ids of all hosts that have said something.
func (t *Table) Hosts() []string { return slices.Sorted(maps.Keys(t.hosts)) }

// IsMember reports whether a host is a member of a segment.
func (t *Table) IsMember(id string, vni VNI) bool {
	m := t.hosts[id]
	return m != nil && m.in[vni]
}

// VNIs are all segments that have members, in order.
func (t *Table) VNIs() []VNI { return slices.Sorted(maps.Keys(t.segments)) }

// Sizes are how much of a segment there is.
type Sizes struct{ Hosts, MACs, Addresses, Contested int }

// Sizes of a segment.
func (t *Table) Sizes(vni VNI) (n Sizes) {
	s := t.segments[vni]
	if s == nil {
		return n
	}
	n.Hosts, n.Contested = len(s.members), len(s.rivals)
	n.MACs = s.macs
	n.Addresses = len(s.places) - s.macs
	return n
}

// Contested are the MACs and addresses of a segment that several hosts claim, and the ids, in order, of those whose
// claims do not count.
func (t *Table) Contested(vni VNI) map[Key][]string {
	s := t.segments[vni]
	if s == nil {
		return nil
	}
	all := make(map[Key][]string, len(s.rivals))
	for k, claims := range s.rivals {
		for _, c := range claims {
			all[k] = append(all[k], t.refs[c.host].ID)
		}
		slices.Sort(all[k])
	}
	return all
}

// Snapshot is all of a segment; nil for one without members.
func (t *Table) Snapshot(vni VNI) *Update {
	if s := t.segments[vni]; s != nil {
		return t.whole(s, false)
	}
	return nil
}

// Place is where a MAC or an address of a segment is.
func (t *Table) Place(vni VNI, k Key) (l Located, ok bool) {
	if s := t.segments[vni]; s != nil {
		if c, ok := s.places[k]; ok {
			return t.located(c), true
		}
	}
	return l, false
}

// Seed takes in what a host knew of a segment before this controller was started: what hosts had that have not
// connected since. It counts like what a host said that has lost its controllers, until the host itself says more.
// known reports whether a host is one of the cluster still.
func (t *Table) Seed(u *Update, known func(id string) bool) (changed Changed) {
	changed = Changed{}
	seeds := map[string]*member{}
	for _, h := range u.Members {
		m := t.hosts[h.ID]
		if m != nil && m.session != 0 || !known(h.ID) {
			continue
		}
		if m == nil {
			m = &member{Host: Host{ID: h.ID, Name: h.Name}, in: map[VNI]bool{}}
			t.number(m)
			t.hosts[h.ID] = m
		}
		if !m.told && h.Endpoints != nil {
			t.describe(m, h.Name, h.Endpoints, changed)
		}
		if len(m.in) < MostSegments || m.in[u.VNI] {
			seeds[h.ID] = m
			t.segment(m, &SegmentReport{VNI: u.VNI}, changed, time.Time{})
		}
	}
	put := map[*member][]Item{}
	for i := range u.Put {
		if m, p := seeds[u.Put[i].Host], &u.Put[i]; m != nil && p.Order != 0 {
			put[m] = append(put[m], Item{p.Key, p.Claim})
		}
	}
	for m, items := range put {
		t.segment(m, &SegmentReport{VNI: u.VNI, Put: items}, changed, time.Time{})
	}
	return changed
}

// Whole is all that a host has reported and that counts or might: what another controller is told of it. False for a
// host that has said nothing.
func (t *Table) Whole(id string) (name string, r Report, ok bool) {
	m := t.hosts[id]
	if m == nil {
		return "", r, false
	}
	r = Report{Whole: true, Session: m.session}
	if m.told {
		r.Endpoints = append([]Endpoint{}, m.Endpoints...)
	}
	for _, vni := range slices.Sorted(maps.Keys(m.in)) {
		s := t.segments[vni]
		one := SegmentReport{VNI: vni, Whole: true}
		for _, k := range s.of(m.ref) {
			c, _ := s.claimOf(k, m.ref)
			one.Put = append(one.Put, Item{k, c.claim()})
		}
		slices.SortFunc(one.Put, func(a, b Item) int { return a.Key.Compare(b.Key) })
		r.Segments = append(r.Segments, one)
	}
	return m.Name, r, true
}

// Number gives each claim of a report the number that the table has given it, so that other controllers know them by
// the same.
func (t *Table) Number(id string, r *Report) {
	m := t.hosts[id]
	if m == nil {
		return
	}
	r.Session = m.session
	for i := range r.Segments {
		one := &r.Segments[i]
		s := t.segments[one.VNI]
		if s == nil {
			continue
		}
		for k := range one.Put {
			if c, ok := s.claimOf(one.Put[k].Key, m.ref); ok {
				one.Put[k].Order, one.Put[k].Since = c.order, c.since
			}
		}
	}
}
