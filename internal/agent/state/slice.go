package state

import "heddle/internal/slice"

// Slice is what a controller sent this host last, as far as it is active. It is replaced and never changed in place.
type Slice struct {
	// Epoch and Revision are those of the controller's definition.
	Epoch    int64 `json:"epoch"`
	Revision int64 `json:"revision"`
	// Objects are the content of the slice, sorted.
	Objects []slice.Object `json:"objects,omitempty"`
}

// Set returns the content as a set; nil gives an empty set.
func (s *Slice) Set() *slice.Set {
	if s == nil {
		return &slice.Set{}
	}
	return slice.Of(s.Objects...)
}

// Same reports whether both are the same version of the definition.
func (s *Slice) Same(o *Slice) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Epoch == o.Epoch && s.Revision == o.Revision
}
