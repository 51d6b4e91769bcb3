package span

import "slices"

// claimOf is what a host claims of a key.
func (s *segment) claimOf(k Key, host uint32) (claim, bool) {
	c, ok := s.places[k]
	if ok && c.host == host {
		return c, true
	}
	for _, c := range s.rivals[k] {
		if c.host == host {
			return c, true
		}
	}
	return claim{}, false
}

// of are the keys that a host claims.
func (s *segment) of(host uint32) (keys []Key) {
	for k, c := range s.places {
		if c.host == host {
			keys = append(keys, k)
		}
	}
	for k, list := range s.rivals {
		if slices.ContainsFunc(list, func(c claim) bool { return c.host == host }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// put takes in a host's claim, which replaces the one before.
func (s *segment) put(t *Table, k Key, c claim) {
	was, ok := s.places[k]
	switch {
	case !ok:
		s.settle(t, k, nil, &c)
	case was.host == c.host && len(s.rivals[k]) == 0:
		s.settle(t, k, &was, &c)
	default:
		list := append(s.others(k, c.host), c)
		s.choose(t, k, list)
	}
}

// drop takes a host's claim out; false where it has none.
func (s *segment) drop(t *Table, k Key, host uint32) bool {
	if _, ok := s.claimOf(k, host); !ok {
		return false
	}
	s.choose(t, k, s.others(k, host))
	return true
}

// decide chooses anew which claim counts.
func (s *segment) decide(t *Table, k Key) { s.choose(t, k, s.others(k, none)) }

const none = ^uint32(0)

// others are the claims of all hosts but one.
func (s *segment) others(k Key, host uint32) (list []claim) {
	if c, ok := s.places[k]; ok && c.host != host {
		list = append(list, c)
	}
	for _, c := range s.rivals[k] {
		if c.host != host {
			list = append(list, c)
		}
	}
	return list
}

// choose makes of claims the one that counts, and its rivals.
func (s *segment) choose(t *Table, k Key, list []claim) {
	var old *claim
	if was, ok := s.places[k]; ok {
		old = &was
	}
	if len(list) == 0 {
		delete(s.rivals, k)
		s.settle(t, k, old, nil)
		return
	}
	slices.SortFunc(list, func(a, b claim) int { return t.better(&b, &a) })
	if len(list) == 1 {
		delete(s.rivals, k)
	} else {
		if s.rivals == nil {
			s.rivals = map[Key][]claim{}
		}
		s.rivals[k] = slices.Clone(list[1:])
	}
	s.settle(t, k, old, &list[0])
}

// settle makes the claim that counts another; nil for none.
func (s *segment) settle(t *Table, k Key, old, next *claim) {
	if old != nil && next != nil && *old == *next {
		return
	}
	// Without VLANs inside, hosts of the version before know the same.
	same := k.vlan == 0 && len(s.inside) == 0
	if !same {
		s.older.remove(s.olderSum(t, k))
	}
	if old != nil {
		h, older := t.sums(k, old)
		s.hash.remove(h)
		if same {
			s.older.remove(older)
		}
	}
	if next == nil {
		delete(s.places, k)
		s.count(k, -1)
	} else {
		if old == nil {
			s.count(k, 1)
		}
		s.places[k] = *next
		h, older := t.sums(k, next)
		s.hash.add(h)
		if same {
			s.older.add(older)
		}
	}
	s.inside.note(k, next != nil)
	if !same {
		s.older.add(s.olderSum(t, k))
	}
	s.log.add(len(s.places), entry{key: k})
}

func (t *Table) located(c claim) Located { return Located{Host: t.refs[c.host].ID, Claim: c.claim()} }

func (s *segment) count(k Key, n int) {
	if k.kind == isMAC {
		s.macs += n
	}
}

// member puts a host into the span, or describes it anew.
func (s *segment) member(m *member) {
	sum := m.sum()
	if was, ok := s.members[m.ref]; ok {
		s.hash.remove(was)
		s.older.remove(was)
	}
	s.members[m.ref] = sum
	s.hash.add(sum)
	s.older.add(sum)
	s.log.add(len(s.places), entry{host: m.ID})
}

// noMember takes a host out of the span.
func (s *segment) noMember(m *member) {
	if was, ok := s.members[m.ref]; ok {
		s.hash.remove(was)
		s.older.remove(was)
		delete(s.members, m.ref)
		s.log.add(len(s.places), entry{host: m.ID})
	}
}

// log is what has changed lately in a segment, in order. Hosts that were told up to a point are told what is after it.
type log struct {
	next    uint64 // the number of the next change
	entries []entry
}

// entry names what has changed: a host of the span, or a key.
type entry struct {
	host string
	key  Key
}

// leastLog is how many changes are remembered at least. Beyond, as many as a quarter of the segment's locations: for
// who lags further behind a snapshot is no more to send.
const leastLog = 32

func (l *log) add(places int, e entry) {
	keep := max(leastLog, places/4)
	if len(l.entries) >= 2*keep {
		l.entries = append([]entry(nil), l.entries[len(l.entries)-keep:]...)
	}
	l.entries = append(l.entries, e)
	l.next++
}

// since are the changes from that number on; false where they are not remembered.
func (l *log) since(from uint64) ([]entry, bool) {
	if from > l.next || l.next-from > uint64(len(l.entries)) {
		return nil, false
	}
	return l.entries[uint64(len(l.entries))-(l.next-from):], true
}

// sums of a location in the segment's hashes.
func (t *Table) sums(k Key, c *claim) (h, older Hash) {
	l := t.located(*c)
	return l.sums(k)
}
