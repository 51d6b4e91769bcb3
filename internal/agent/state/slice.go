package state

import (
	"slices"

	"heddle/internal/slice"
)

// Definition is what the agent remembers of the controllers' definition.
type Definition struct {
	// Slice is what a controller sent the host; nil if the host follows none.
	Slice *Slice `json:"slice,omitzero"`
	// WholeSlice is what the slice was before the fields that this program does not know were taken out; nil for none.
	WholeSlice *Slice `json:"wholeSlice,omitzero"`
	// KeptObjects are of earlier versions: the host goes on with them beside the slice.
	KeptObjects []KeptObject `json:"keptObjects,omitzero"`
	// Reverted is the controller's version from which the host went back; nil for none.
	Reverted *Reverted `json:"reverted,omitzero"`
}

// Slice is what a controller sent this host last, as far as it is active. It is replaced and never changed in place.
type Slice struct {
	// Epoch and Revision are those of the controller's definition.
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
	// Objects are the content of the slice, sorted.
	Objects []slice.Object `json:"objects,omitempty"`
	// Forced: it is to be tried though the host went back from it before.
	Forced bool `json:"-"`
	// NotBefore is the instant before which it is not activated, in nanoseconds of CLOCK_MONOTONIC; 0 for at once.
	NotBefore int64 `json:"-"`
	// Together is the change that hosts make at that instant.
	Together string `json:"-"`
	// Made is the newest change that the host made at an instant with others; nil for none.
	Made *Made `json:"made,omitempty"`
}

// Made is a change that a host made at an instant with others (S101). It is on disk with the version by which the host
// made it, so that an agent that starts anew says of it what the one before knew.
type Made struct {
	ID string `json:"id"`
	// Off is by how much after the instant, in nanoseconds, where that is Known: the version is on disk first.
	Off   int64 `json:"off,omitzero"`
	Known bool  `json:"known,omitzero"`
}

// Noting is the version with what is to be remembered of the change that the host makes by it; has is the version
// before it.
func (s *Slice) Noting(has *Slice) *Slice {
	next := *s
	switch {
	case s.Together != "":
		next.Made = &Made{ID: s.Together}
	case has != nil:
		next.Made = has.Made
	}
	return &next
}

// Noted is the version with when the host made the change: at that time, by the clock of its instant.
func (s *Slice) Noted(at int64) *Slice {
	next := *s
	next.Made = &Made{ID: s.Together, Off: max(at, s.NotBefore) - s.NotBefore, Known: true}
	return &next
}

// Reverted is a controller's version from which the host went back, since it lost its controllers by it. It is replaced
// and not changed in place.
type Reverted struct {
	Epoch    int64  `json:"epoch"`
	Revision int64  `json:"revision"`
	Hash     []byte `json:"hash"`
	Why      string `json:"why"`
	// Times is how often the host went back from it.
	Times int64 `json:"times"`
}

// Again is what is to be remembered when the host goes back from a version, once more or for the first time.
func (r *Reverted) Again(from *Slice, why string) *Reverted {
	hash := from.Set().Hash()
	next := &Reverted{Hash: hash[:], Why: why, Times: 1}
	if from != nil {
		next.Epoch, next.Revision = from.Epoch, from.Revision
	}
	if r.Is(hash) {
		next.Times += r.Times
	}
	return next
}

// Is reports whether it is the version with that content.
func (r *Reverted) Is(hash slice.Hash) bool { return r != nil && string(r.Hash) == string(hash[:]) }

// Set returns the content as a set; nil gives an empty set.
func (s *Slice) Set() *slice.Set {
	if s == nil {
		return &slice.Set{}
	}
	return slice.Of(s.Objects...)
}

// Get returns the object of that name; of nil, none.
func (s *Slice) Get(k slice.Key) (slice.Object, bool) {
	if s == nil {
		return slice.Object{}, false
	}
	i, ok := slices.BinarySearchFunc(s.Objects, k, func(o slice.Object, k slice.Key) int { return o.Compare(k) })
	if !ok {
		return slice.Object{}, false
	}
	return s.Objects[i], true
}

// Same reports whether both are the same version of the definition.
func (s *Slice) Same(o *Slice) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Epoch == o.Epoch && s.Revision == o.Revision
}
