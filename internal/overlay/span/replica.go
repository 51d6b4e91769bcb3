package span

import (
	"maps"
	"slices"

	"heddle/internal/plan"
)

// Replica is what a host knows of its segments. The zero value knows nothing. It is not safe for concurrent use.
type Replica struct {
	segments map[VNI]*Content
}

// Content is what a host knows of one segment. Only Replica changes it.
type Content struct {
	Members map[string]Host
	Places  map[Key]Located
	inside  inside
	hash    Hash
}

// Inside are the VLANs inside the VNI in which a MAC is located, in order.
func (c *Content) Inside(mac plan.MAC) []uint16 { return c.inside[mac] }

// Hash of the content.
func (c *Content) Hash() Hash { return c.hash }

// Segments are those that the host knows, in order.
func (r *Replica) Segments() []VNI { return slices.Sorted(maps.Keys(r.segments)) }

// Content is what is known of a segment; nil for nothing.
func (r *Replica) Content(vni VNI) *Content { return r.segments[vni] }

// Have is the hash of what is known of each segment: a controller sends the others alone.
func (r *Replica) Have() map[VNI]Hash {
	all := make(map[VNI]Hash, len(r.segments))
	for vni, c := range r.segments {
		all[vni] = c.hash
	}
	return all
}

// Forget forgets a segment.
func (r *Replica) Forget(vni VNI) { delete(r.segments, vni) }

// Apply takes in an update. False: it does not fit what the host knows of the segment, and all of it has to be asked
// for; until that comes the host goes on by what it knows.
func (r *Replica) Apply(u *Update) bool {
	if r.segments == nil {
		r.segments = map[VNI]*Content{}
	}
	if u.Gone {
		delete(r.segments, u.VNI)
		return true
	}
	c := r.segments[u.VNI]
	if u.Whole || c == nil {
		c = &Content{Members: make(map[string]Host, len(u.Members)), Places: make(map[Key]Located, len(u.Put))}
	}
	r.segments[u.VNI] = c
	for _, id := range u.Left {
		c.leave(id)
	}
	for _, m := range u.Members {
		c.leave(m.ID)
		c.Members[m.ID] = m
		c.hash.add(m.sum())
	}
	for _, k := range u.Removed {
		c.remove(k)
	}
	for i := range u.Put {
		p := &u.Put[i]
		c.remove(p.Key)
		c.Places[p.Key] = p.Located
		c.inside.note(p.Key, true)
		sum, _ := p.Located.sums(p.Key)
		c.hash.add(sum)
	}
	return c.hash == u.Hash
}

func (c *Content) leave(id string) {
	if was, ok := c.Members[id]; ok {
		c.hash.remove(was.sum())
		delete(c.Members, id)
	}
}

func (c *Content) remove(k Key) {
	if was, ok := c.Places[k]; ok {
		sum, _ := was.sums(k)
		c.hash.remove(sum)
		c.inside.note(k, false)
		delete(c.Places, k)
	}
}

// All is an update that makes all of what is known of a segment: it is what is kept on disk.
func (r *Replica) All(vni VNI) *Update {
	c := r.segments[vni]
	if c == nil {
		return &Update{VNI: vni, Gone: true}
	}
	u := &Update{VNI: vni, Whole: true, Hash: c.hash}
	for _, id := range slices.Sorted(maps.Keys(c.Members)) {
		u.Members = append(u.Members, c.Members[id])
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.Places), Key.Compare) {
		u.Put = append(u.Put, Place{k, c.Places[k]})
	}
	return u
}
