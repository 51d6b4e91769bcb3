package spec

import "strconv"

// at is a place in a configuration: its key finds its position in the file, its steps from the root are what a person
// reads. Keys are computed while a file of a thousand ports is read and checked; the text is made only for a fault.
type at struct {
	key  uint64 // a hash of the steps; 0 at the root
	up   *at    // what contains it; nil at the root
	step string // the name of a field, or the name in a list's element
	elem bool   // an element of a list
}

// The hash is FNV-1a; an element's index is preceded by a byte that no name contains.
const (
	hashPrime   = 1099511628211
	elementMark = 0xff
)

// ofPolicy is a name that no field has: it stands for any field of an object's policy.
const ofPolicy = "\x00"

// fieldKey is the key of a field; key is that of the place that contains it.
func fieldKey(key uint64, name string) uint64 {
	key = (key ^ '.') * hashPrime
	for i := range len(name) {
		key = (key ^ uint64(name[i])) * hashPrime
	}
	return key
}

func (a at) field(name string) at { return at{key: fieldKey(a.key, name), up: &a, step: name} }

// item is element i of a list, shown by its name if that is readable.
func (a at) item(i int, name string) at {
	key := (a.key ^ elementMark) * hashPrime
	key = (key ^ uint64(i+1)) * hashPrime
	if name == "" || checkName(name) != "" {
		name = strconv.Itoa(i)
	}
	return at{key: key, up: &a, step: name, elem: true}
}

// show is the place as a person reads it: switches[lab].portGroups[web].vlan.
func (a at) show() string {
	switch {
	case a.elem:
		return a.up.show() + "[" + a.step + "]"
	case a.up == nil || a.up.key == 0:
		return a.step
	}
	return a.up.show() + "." + a.step
}

// position is a position in the file, counted from 1.
type position struct{ line, column int }

// source remembers the positions of a parsed file's values, and which of them could not be read.
type source struct {
	file string
	pos  map[uint64]position
	// section contains the positions of the ports; nil if there are none.
	section *section
	// shift is how many lines further down they are than in section.
	shift int
	// bad contains the places with a fault of their own, below those with a fault in something that they contain.
	// What depends on a value that could not be read is not reported a second time.
	bad, below map[uint64]bool
	// ports is how many of the configuration's ports are the file's, which come first; the others were connected at
	// run time.
	ports int
}

func newSource(file string) *source {
	return &source{file: file, pos: map[uint64]position{}, bad: map[uint64]bool{}, below: map[uint64]bool{}}
}

// at is the position of the value with the key; ok is false if the file has no such value.
func (s *source) at(key uint64) (p position, ok bool) {
	if p, ok = s.pos[key]; ok || s.section == nil {
		return p, ok
	}
	p, ok = s.section.pos[key]
	p.line += s.shift
	return p, ok
}

// find is the position of a place or of the nearest thing that contains it.
func (s *source) find(a at) position {
	for b := &a; b != nil; b = b.up {
		if p, ok := s.at(b.key); ok {
			return p
		}
	}
	return s.pos[0]
}

func (s *source) markBad(a at) {
	s.bad[a.key] = true
	for b := &a; b != nil && b.key != 0 && !s.below[b.key]; b = b.up {
		s.below[b.key] = true
	}
}

// spoilt reports whether the place, something that contains it or something in it could not be read.
func (s *source) spoilt(a at) bool {
	if len(s.bad) == 0 {
		return false
	}
	return s.below[a.key] || s.lost(a)
}

// lost reports whether the place or something that contains it could not be read.
func (s *source) lost(a at) bool {
	for b := &a; b != nil; b = b.up {
		if s.bad[b.key] {
			return true
		}
	}
	return s.bad[0]
}

// namesLost reports whether a name may be missing from the list of n objects at a because part of the file could not be
// read, so that a reference to a seemingly missing name may be right all the same. Faults in other fields of the
// objects lose no name.
func (s *source) namesLost(list at, n int) bool {
	if s.lost(list) {
		return true
	}
	for i := range n {
		if e := list.item(i, ""); s.bad[e.key] || s.spoilt(e.field("name")) {
			return true
		}
	}
	return false
}
