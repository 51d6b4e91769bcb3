package span

import (
	"cmp"
	"slices"
	"time"

	"heddle/internal/plan"
)

// Bounds of what one host may report.
const (
	// MostSegments is how many segments one host is a member of.
	MostSegments = 4096
	// MostItems is how many MACs and addresses one host locates, in all its segments.
	MostItems = 1 << 18
	// MostEndpoints is how many endpoints one host has.
	MostEndpoints = 8
)

// Report is what a host says of its segments. The first one after it connects is whole.
type Report struct {
	// Session is that of the host's connection, by NewSession of whichever controller has it: what comes of an older
	// one counts no more. 0 is that of before.
	Session uint64
	// Whole: the host is a member of the segments that are listed, and of no others.
	Whole bool
	// Endpoints are all of the host; nil where they are as before.
	Endpoints []Endpoint
	Segments  []SegmentReport
}

// SegmentReport is what a host says of one segment.
type SegmentReport struct {
	VNI VNI
	// Left: the host is no member any more.
	Left bool
	// Whole: what is put is all that the host locates.
	Whole   bool
	Put     []Item
	Removed []Key
}

// Item is one claim of a host.
type Item struct {
	Key Key
	Claim
}

// Table is a controller's knowledge of all segments. It is not safe for concurrent use.
type Table struct {
	segments map[VNI]*segment
	hosts    map[string]*member
	refs     []*member // by the number that claims have; nil for one that is free
	free     []uint32
	order    uint64 // the highest that was given or seen
}

// member is a host that has said something.
type member struct {
	Host
	ref       uint32
	session   uint64
	connected bool
	// told: it has said which endpoints it has.
	told  bool
	in    map[VNI]bool
	items int
}

// segment is one VNI.
type segment struct {
	vni     VNI
	members map[uint32]Hash // by the hosts' numbers, with the sums that are in the hash
	places  map[Key]claim   // what counts
	macs    int             // of places
	rivals  map[Key][]claim // what other hosts claim
	inside  inside
	hash    Hash
	older   Hash // of what hosts of the version before know
	log     log
}

// claim is one of a host, as the table keeps it: a million of them fit in memory.
type claim struct {
	generation, order uint64
	since             int64
	host              uint32
	owner             plan.MAC
	source            Source
	untagged          bool
}

func (c *claim) claim() Claim {
	return Claim{Source: c.source, Owner: c.owner, Generation: c.generation, Order: c.order, Since: c.since,
		Untagged: c.untagged}
}

// NewTable makes one of nothing.
func NewTable() *Table {
	return &Table{segments: map[VNI]*segment{}, hosts: map[string]*member{}}
}

// Refused is what of a report was not taken.
type Refused struct {
	// Segments are those beyond the number that a host may have.
	Segments []VNI
	// Items is how many claims are beyond the number that a host may have.
	Items int
}

// Changed are the segments that a change made another.
type Changed map[VNI]bool

// NewSession is the number of a host's connection: above all that any controller has given before, as far as this one
// has heard of them, and by its clock.
func (t *Table) NewSession(now time.Time) uint64 { return t.nextOrder(now) }

// Report takes in what a host says. now numbers the claims that have no number yet.
func (t *Table) Report(id, name string, r Report, now time.Time) (changed Changed, refused Refused) {
	changed = Changed{}
	m := t.hosts[id]
	if m == nil {
		m = &member{Host: Host{ID: id, Name: name}, in: map[VNI]bool{}}
		t.number(m)
		t.hosts[id] = m
	}
	if r.Session != 0 {
		if r.Session < m.session {
			return changed, refused
		}
		m.session, t.order = r.Session, max(t.order, r.Session)
	}
	t.connect(m, true, changed)
	if r.Endpoints != nil || m.Name != name {
		t.describe(m, name, r.Endpoints, changed)
	}
	listed := map[VNI]bool{}
	for i := range r.Segments {
		s := &r.Segments[i]
		switch {
		case s.Left:
			t.leave(m, s.VNI, changed)
			continue
		case !m.in[s.VNI] && len(m.in) >= MostSegments:
			refused.Segments = append(refused.Segments, s.VNI)
			continue
		}
		listed[s.VNI] = true
		refused.Items += t.segment(m, s, changed, now)
	}
	if r.Whole {
		for vni := range m.in {
			if !listed[vni] {
				t.leave(m, vni, changed)
			}
		}
	}
	return changed, refused
}

// number gives a host the number that its claims have.
func (t *Table) number(m *member) {
	if n := len(t.free); n > 0 {
		m.ref, t.free = t.free[n-1], t.free[:n-1]
		t.refs[m.ref] = m
		return
	}
	m.ref = uint32(len(t.refs))
	t.refs = append(t.refs, m)
}

// describe takes in a host's name and endpoints.
func (t *Table) describe(m *member, name string, endpoints []Endpoint, changed Changed) {
	if endpoints == nil {
		endpoints = m.Endpoints
	} else {
		m.told = true
	}
	if len(endpoints) > MostEndpoints {
		endpoints = endpoints[:MostEndpoints]
	}
	if m.Name == name && slices.Equal(m.Endpoints, endpoints) {
		return
	}
	m.Name, m.Endpoints = name, slices.Clone(endpoints)
	for vni := range m.in {
		t.segments[vni].member(m)
		changed[vni] = true
	}
}

// segment takes in what a host says of one segment, and returns how many claims it did not take.
func (t *Table) segment(m *member, r *SegmentReport, changed Changed, now time.Time) (refused int) {
	s := t.segments[r.VNI]
	if s == nil {
		s = &segment{vni: r.VNI, members: map[uint32]Hash{}, places: map[Key]claim{}}
		t.segments[r.VNI] = s
	}
	if !m.in[r.VNI] {
		m.in[r.VNI] = true
		s.member(m)
		changed[r.VNI] = true
	}
	before := s.log.next
	if r.Whole {
		put := make(map[Key]bool, len(r.Put))
		for i := range r.Put {
			put[r.Put[i].Key] = true
		}
		for _, k := range s.of(m.ref) {
			if !put[k] {
				t.withdraw(s, m, k)
			}
		}
	}
	for _, k := range r.Removed {
		t.withdraw(s, m, k)
	}
	for i := range r.Put {
		if !t.claims(s, m, &r.Put[i], now) {
			refused++
		}
	}
	if s.log.next != before {
		changed[r.VNI] = true
	}
	return refused
}

// claims takes in one claim; false where the host has too many.
func (t *Table) claims(s *segment, m *member, i *Item, now time.Time) bool {
	was, has := s.claimOf(i.Key, m.ref)
	if !has && m.items >= MostItems {
		return false
	}
	next := claim{generation: i.Generation, order: i.Order, since: i.Since, host: m.ref, owner: i.Owner,
		source: i.Source, untagged: i.Untagged}
	switch {
	case next.order == 0 && has && was.same(&next):
		return true
	case next.order == 0:
		next.order = t.nextOrder(now)
	case has && was.order > next.order: // it is older than what the host has said by another way
		return true
	case has && was.order == next.order: // it may come by who does not know VLANs inside a VNI
		next.untagged = next.untagged || was.untagged
	}
	if t.order < next.order {
		t.order = next.order
	}
	if !has {
		m.items++
	}
	s.put(t, i.Key, next)
	return true
}

func (c *claim) same(o *claim) bool {
	return c.source == o.source && c.owner == o.owner && c.generation == o.generation && c.untagged == o.untagged
}

// nextOrder is the number of the next claim: above all that were seen, and above those that a controller gave which
// was started anew. A clock that is wrong makes it no less rise.
func (t *Table) nextOrder(now time.Time) uint64 {
	t.order = max(t.order+1, uint64(max(now.UnixMilli(), 0))<<16)
	return t.order
}

// withdraw takes a host's claim out.
func (t *Table) withdraw(s *segment, m *member, k Key) {
	if s.drop(t, k, m.ref) {
		m.items--
	}
}

// leave ends a host's membership.
func (t *Table) leave(m *member, vni VNI, changed Changed) {
	if !m.in[vni] {
		return
	}
	s := t.segments[vni]
	for _, k := range s.of(m.ref) {
		t.withdraw(s, m, k)
	}
	delete(m.in, vni)
	s.noMember(m)
	changed[vni] = true
	if len(s.members) == 0 {
		delete(t.segments, vni)
	}
}

// Disconnected takes in that the connection of that session has ended. What the host said last stays: its ports go on
// without controllers. Only against claims of a host that is connected it counts less.
func (t *Table) Disconnected(id string, session uint64) (changed Changed) {
	changed = Changed{}
	if m := t.hosts[id]; m != nil && m.session <= session {
		t.connect(m, false, changed)
	}
	return changed
}

// connect takes in whether a host is connected, and decides anew what it claims beside others.
func (t *Table) connect(m *member, is bool, changed Changed) {
	if m.connected == is {
		return
	}
	m.connected = is
	for vni := range m.in {
		s := t.segments[vni]
		before := s.log.next
		for k, list := range s.rivals {
			if s.places[k].host == m.ref || slices.ContainsFunc(list, func(c claim) bool { return c.host == m.ref }) {
				s.decide(t, k)
			}
		}
		if s.log.next != before {
			changed[vni] = true
		}
	}
}

// Remove forgets a host that was taken out of the cluster.
func (t *Table) Remove(id string) (changed Changed) {
	changed = Changed{}
	m := t.hosts[id]
	if m == nil {
		return changed
	}
	for vni := range m.in {
		t.leave(m, vni, changed)
	}
	delete(t.hosts, id)
	t.refs[m.ref] = nil
	t.free = append(t.free, m.ref)
	return changed
}

// better orders claims of one key: a port's own MAC before what is learned, so that nobody takes a MAC over by
// sending from it; then the generation; then whether the host is connected; then the later one.
func (t *Table) better(a, b *claim) int {
	flag := func(c *claim) int {
		if t.refs[c.host].connected {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.generation, b.generation),
		cmp.Compare(flag(a), flag(b)), cmp.Compare(a.order, b.order),
		cmp.Compare(t.refs[a.host].ID, t.refs[b.host].ID))
}
