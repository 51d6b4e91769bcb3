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
}

// last is the order of a claim that counts less than every other one: the host has said it before, and the controllers
// have said since that the MAC is elsewhere.
const last = 1

// Set is what the host has now. The maps are the Own's from here on.
func (o *Own) Set(endpoints []Endpoint, have map[VNI]map[Key]Claim) {
	o.endpoints, o.have = slices.Clone(endpoints), have
	if o.endpoints == nil {
		o.endpoints = []Endpoint{}
	}
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
	case ok && place.Host == self && place.Same(c):
		return place.Order
	case ok && place.Host != self && said && before.Same(c):
		return last
	}
	return 0
}

// Changes is what is to be said since the report before; false for nothing.
func (o *Own) Changes() (r Report, ok bool) {
	if !o.open {
		return r, false
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
			}
		}
		for _, k := range sortedKeys(was) {
			if _, has := o.have[vni][k]; !has {
				one.Removed = append(one.Removed, k)
			}
		}
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
	return r, ok
}

// keep keeps what there is as what was said.
func (o *Own) keep() {
	o.told = slices.Clone(o.endpoints)
	o.said = make(map[VNI]map[Key]Claim, len(o.have))
	for vni, items := range o.have {
		o.said[vni] = maps.Clone(items)
	}
}

// Again forgets that a segment was said, so that it is said once more: it was refused, as the controller did not have
// the definition yet that gives it to the host.
func (o *Own) Again(vni VNI) { delete(o.said, vni) }

// End ends a conversation.
func (o *Own) End() { o.open = false }

func sortedKeys(items map[Key]Claim) []Key { return slices.SortedFunc(maps.Keys(items), Key.Compare) }
