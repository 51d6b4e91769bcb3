package slice

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Kind is the kind of an object. A later controller may have kinds that this program does not know: they are kept, and
// reported when the configuration is made.
type Kind string

// The kinds.
const (
	// Switch is a switch without its port groups; its uplinks name this host's devices.
	Switch Kind = "switch"
	// PortGroup is named SWITCH/GROUP.
	PortGroup Kind = "portGroup"
	// Port is a port of this host.
	Port Kind = "port"
	// StaticPort are the settings of a static port that is bound on this host, named by its number.
	StaticPort Kind = "staticPort"
)

// Key names an object of a slice.
type Key struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func (k Key) String() string { return string(k.Kind) + " " + k.Name }

// Compare orders keys by kind and name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Kind, o.Kind), cmp.Compare(k.Name, o.Name))
}

// Object is one object of the definition. Doc is JSON and does not change once it is in a set.
type Object struct {
	Key
	Doc []byte `json:"doc"`
}

// Hash is that of a set's content: the exclusive or of its objects' SHA-256 digests. It finds faults, not forgers:
// whoever may send a slice is known by the connection.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:8]) }

// Without is the hash of a set without those of its objects that have this hash.
func (h Hash) Without(o Hash) Hash {
	for i, b := range o {
		h[i] ^= b
	}
	return h
}

func (h *Hash) fold(o Object) {
	for i, b := range o.digest() {
		h[i] ^= b
	}
}

// digest is over the object's kind, name and document, each with its length.
func (o Object) digest() [sha256.Size]byte {
	d := sha256.New()
	for _, part := range [][]byte{[]byte(o.Kind), []byte(o.Name), o.Doc} {
		// Never fails (hash.Hash).
		_, _ = fmt.Fprintf(d, "%d:", len(part))
		_, _ = d.Write(part)
	}
	return [sha256.Size]byte(d.Sum(nil))
}

// Set is the content of a slice. The zero value is empty. It is for one goroutine while it is changed.
type Set struct {
	objects map[Key]Object
	hash    Hash
	base    *Set // has further objects, of other names; nil for none
}

// Of makes a set of these objects; of two with one name the later one counts.
func Of(objects ...Object) *Set {
	s := &Set{}
	for _, o := range objects {
		s.Put(o)
	}
	return s
}

// Over is the set with all objects of base besides, which are of other names. base is shared: it must not change any
// more. A fleet's hosts have the same switches and port groups, and each a few objects of its own.
func (s *Set) Over(base *Set) *Set {
	if s.Len() == 0 {
		return base
	}
	if base.base != nil {
		base = base.Clone()
	}
	return &Set{objects: s.objects, hash: s.hash.Without(base.hash), base: base}
}

// Parts are what a set made by Over is made of. Those of another set are the empty set and itself.
func (s *Set) Parts() (own, base *Set) {
	if s.base == nil {
		return &Set{}, s
	}
	return &Set{objects: s.objects, hash: s.hash.Without(s.base.hash)}, s.base
}

// flatten makes the set one that can be changed: with no base.
func (s *Set) flatten() {
	if s.base == nil {
		return
	}
	all := maps.Clone(s.base.objects)
	maps.Copy(all, s.objects)
	s.objects, s.base = all, nil
}

// Put adds an object or replaces the one of its name.
func (s *Set) Put(o Object) {
	s.Remove(o.Key)
	if s.objects == nil {
		s.objects = map[Key]Object{}
	}
	s.objects[o.Key] = o
	s.hash.fold(o)
}

// Remove takes an object out, if it is there.
func (s *Set) Remove(k Key) {
	s.flatten()
	if o, ok := s.objects[k]; ok {
		s.hash.fold(o)
		delete(s.objects, k)
	}
}

// Get is the object of that name.
func (s *Set) Get(k Key) (Object, bool) {
	o, ok := s.objects[k]
	if !ok && s.base != nil {
		return s.base.Get(k)
	}
	return o, ok
}

// Hash is the hash of the content; that of the empty set is zero.
func (s *Set) Hash() Hash { return s.hash }

// Len is the number of objects.
func (s *Set) Len() int {
	if s.base != nil {
		return len(s.objects) + s.base.Len()
	}
	return len(s.objects)
}

// All are the objects, sorted by kind and name.
func (s *Set) All() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		keys := slices.Collect(maps.Keys(s.objects))
		if s.base != nil {
			keys = slices.AppendSeq(keys, maps.Keys(s.base.objects))
		}
		slices.SortFunc(keys, Key.Compare)
		for _, k := range keys {
			if o, _ := s.Get(k); !yield(o) {
				return
			}
		}
	}
}

// Clone is a copy that can be changed.
func (s *Set) Clone() *Set {
	c := &Set{objects: maps.Clone(s.objects), hash: s.hash, base: s.base}
	c.flatten()
	return c
}

// Change is what makes one set another.
type Change struct {
	Put     []Object
	Removed []Key
}

// Empty reports whether the change changes nothing.
func (c Change) Empty() bool { return len(c.Put)+len(c.Removed) == 0 }

// Between is the change from one set to another, sorted by kind and name.
func Between(from, to *Set) (c Change) {
	if from.base != nil && from.base == to.base {
		from, to = &Set{objects: from.objects}, &Set{objects: to.objects}
	}
	for o := range to.All() {
		if was, ok := from.Get(o.Key); !ok || !bytes.Equal(was.Doc, o.Doc) {
			c.Put = append(c.Put, o)
		}
	}
	for o := range from.All() {
		if _, ok := to.Get(o.Key); !ok {
			c.Removed = append(c.Removed, o.Key)
		}
	}
	return c
}

// Apply makes the change.
func (s *Set) Apply(c Change) {
	for _, k := range c.Removed {
		s.Remove(k)
	}
	for _, o := range c.Put {
		s.Put(o)
	}
}
