package span

import (
	"maps"
	"slices"
)

// Own is what a host has in its segments, and what it has said of that. The zero value has nothing. It is not safe for
// concurrent use.
type Own struct {
	endpoints []Endpoint
	have      map[VNI]map[Key]Claim
	// said is what was said last to any controller; told, the endpoints.
	said map[VNI]map[Key]Claim
	told []Endpoint
	// open: a conversation has begun, by a whole report.
	open bool
	// noted are the keys that Note has changed since the last report; with all, Set may have changed anything.
	noted map[VNI]map[Key]bool
	all   bool
	// anew are keys that were said, and were withdrawn or are claimed anew since: the old claim is withdrawn first, as
	// the controllers would take the new one for it.
	anew map[VNI]map[Key]bool
	// unsure are keys that were said as later claims than another host's, while no controller has said yet that they
	// are here: they are said once more as such if the conversation ends.
	unsure map[VNI]map[Key]bool
}

// last is the order of a claim that counts less than every other one: the host has said it before, and the controllers
// have said since that the MAC is elsewhere.
const last = 1

// Set is what the host has now. The maps are the Own's from here on.
func (o *Own) Set(endpoints []Endpoint, have map[VNI]map[Key]Claim) {
	o.endpoints, o.have, o.all = slices.Clone(endpoints), have, true
	if o.endpoints == nil {
		o.endpoints = []Endpoint{}
	}
	for vni, was := range o.said {
		for k := range was {
			if _, has := have[vni][k]; !has {
				o.claimAnew(vni, k)
			}
		}
	}
	for vni, keys := range o.unsure {
		maps.DeleteFunc(keys, func(k Key, _ bool) bool { _, has := have[vni][k]; return !has })
	}
}

// claimAnew has what was said of a key withdrawn with the next report. Once it is gone, it is another claim when the
// host has it again, also if nothing was reported in between.
func (o *Own) claimAnew(vni VNI, k Key) {
	delete(o.said[vni], k)
	o.anew = with(o.anew, vni, k)
}

// Confirm takes in what a controller says of who has what.
func (o *Own) Confirm(self string, u *Update) {
	unsure := o.unsure[u.VNI]
	if len(unsure) == 0 {
		return
	}
	for i := range u.Put {
		if p := &u.Put[i]; p.Host == self {
			delete(unsure, p.Key)
		}
	}
}

// Note adds one thing that is behind the host's ports, which costs less than Set. elsewhere: the controllers say that
// another host has it, so that it is said once more, as the later claim. A segment that the host is not in is left out,
// and so is a key that it claims more strongly.
func (o *Own) Note(vni VNI, k Key, c Claim, elsewhere bool) {
	items, member := o.have[vni]
	if was, has := items[k]; !member || has && was.Source > c.Source {
		return
	}
	items[k] = c
	if _, said := o.said[vni][k]; said && elsewhere {
		o.claimAnew(vni, k)
	}
	o.noted = with(o.noted, vni, k)
}

// with adds a key to a set.
func with(set map[VNI]map[Key]bool, vni VNI, k Key) map[VNI]map[Key]bool {
	if set == nil {
		set = map[VNI]map[Key]bool{}
	}
	if set[vni] == nil {
		set[vni] = map[Key]bool{}
	}
	set[vni][k] = true
	return set
}

// Segments are those that the host has, in order.
func (o *Own) Segments() []VNI { return slices.Sorted(maps.Keys(o.have)) }

// Wanted reports whether there is something to be said: a host without endpoints and segments says nothing.
func (o *Own) Wanted() bool { return len(o.endpoints) > 0 || len(o.have) > 0 }

// Whole is all that the host has: the first report of a conversation. known is what the host knows of its segments,
// self its id there: claims keep the numbers that they had, so that a controller that was started anew knows which of
// two is the later one.
func (o *Own) Whole(self string, known *Replica) Report {
	r := Report{Whole: true, Endpoints: slices.Clone(o.endpoints)}
	if r.Endpoints == nil {
		r.Endpoints = []Endpoint{}
	}
	for _, vni := range o.Segments() {
		one, content := SegmentReport{VNI: vni, Whole: true}, known.Content(vni)
		for _, k := range sortedKeys(o.have[vni]) {
			c := o.have[vni][k]
			if content != nil {
				c.Order = o.orderOf(vni, k, c, self, content)
			}
			one.Put = append(one.Put, Item{k, c})
			if o.anew[vni][k] {
				o.unsure = with(o.unsure, vni, k)
			}
			if o.unsure[vni][k] {
				one.Removed = append(one.Removed, k)
			}
		}
		r.Segments = append(r.Segments, one)
	}
	o.keep()
	o.open = true
	return r
}

// orderOf is the number with which a claim is said to a controller that may not know it.
func (o *Own) orderOf(vni VNI, k Key, c Claim, self string, content *Content) uint64 {
	place, ok := content.Places[k]
	before, said := o.said[vni][k]
	switch {
	case o.anew[vni][k]:
		return 0
	case ok && place.Host == self && place.alike(c):
		return place.Order
	case ok && place.Host != self && said && before.Same(c) && !o.unsure[vni][k]:
		return last
	}
	return 0
}

// Changes is what is to be said since the report before; false for nothing. self and known are as for Whole.
func (o *Own) Changes(self string, known *Replica) (r Report, ok bool) {
	if !o.open {
		return r, false
	}
	if !o.all {
		return o.notes(self, known)
	}
	if !slices.Equal(o.endpoints, o.told) {
		r.Endpoints, ok = slices.Clone(o.endpoints), true
	}
	for _, vni := range o.Segments() {
		was, member := o.said[vni]
		one := SegmentReport{VNI: vni}
		for _, k := range sortedKeys(o.have[vni]) {
			if old, has := was[k]; !has || !old.Same(o.have[vni][k]) {
				one.Put = append(one.Put, Item{k, o.have[vni][k]})
				if member {
					o.doubt(vni, k, self, known)
				}
			}
		}
		one.Removed = slices.SortedFunc(maps.Keys(o.anew[vni]), Key.Compare)
		if !member || len(one.Put)+len(one.Removed) > 0 {
			r.Segments = append(r.Segments, one)
		}
	}
	for vni := range o.said {
		if _, has := o.have[vni]; !has {
			r.Segments = append(r.Segments, SegmentReport{VNI: vni, Left: true})
		}
	}
	if ok = ok || len(r.Segments) > 0; ok {
		o.keep()
	}
	o.noted, o.anew, o.all = nil, nil, false
	return r, ok
}

// doubt notes that a claim is a later one than another host's, which no controller has taken in yet.
func (o *Own) doubt(vni VNI, k Key, self string, known *Replica) {
	at, elsewhere := Located{}, false
	if content := known.Content(vni); content != nil {
		at, elsewhere = content.Places[k]
	}
	if o.anew[vni][k] || elsewhere && at.Host != self {
		o.unsure = with(o.unsure, vni, k)
	}
}

// notes is what is to be said of what was noted, where nothing else has changed.
func (o *Own) notes(self string, known *Replica) (r Report, ok bool) {
	for _, vni := range slices.Sorted(maps.Keys(o.noted)) {
		one := SegmentReport{VNI: vni}
		for _, k := range slices.SortedFunc(maps.Keys(o.noted[vni]), Key.Compare) {
			c, has := o.have[vni][k]
			if old, said := o.said[vni][k]; !has || said && old.Same(c) {
				continue
			}
			if o.anew[vni][k] {
				one.Removed = append(one.Removed, k)
			}
			one.Put = append(one.Put, Item{k, c})
			o.doubt(vni, k, self, known)
			o.said[vni][k] = c
		}
		if len(one.Put) > 0 {
			r.Segments = append(r.Segments, one)
		}
	}
	o.noted, o.anew = nil, nil
	return r, len(r.Segments) > 0
}

// keep keeps what there is as what was said.
func (o *Own) keep() {
	o.told = slices.Clone(o.endpoints)
	o.said = make(map[VNI]map[Key]Claim, len(o.have))
	for vni, items := range o.have {
		o.said[vni] = maps.Clone(items)
	}
	o.noted, o.anew, o.all = nil, nil, false
}

// Again forgets that a segment was said, so that it is said once more: it was refused, as the controller did not have
// the definition yet that gives it to the host.
func (o *Own) Again(vni VNI) {
	delete(o.said, vni)
	o.all = true
}

// End ends a conversation.
func (o *Own) End() { o.open = false }

func sortedKeys(items map[Key]Claim) []Key { return slices.SortedFunc(maps.Keys(items), Key.Compare) }
