package identity

import (
	"fmt"
)

// Role is what a person or a tool may do. Each one may do what those before it may.
type Role uint8

// The roles, from the least to the most.
const (
	// Viewer reads.
	Viewer Role = iota + 1
	// Operator connects, moves and blocks ports.
	Operator
	// Admin changes everything.
	Admin
)

// String is the role's word.
func (r Role) String() string {
	switch r {
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	case Admin:
		return "admin"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return r >= Viewer && r <= Admin }

// Covers reports whether the role may do what the other one may. No role covers one that does not exist.
func (r Role) Covers(need Role) bool { return r.Valid() && need.Valid() && r >= need }

// MarshalText writes the role's word.
func (r Role) MarshalText() ([]byte, error) {
	if !r.Valid() {
		return nil, fmt.Errorf("there is no %v", r)
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads a role's word.
func (r *Role) UnmarshalText(text []byte) error {
	for _, known := range []Role{Viewer, Operator, Admin} {
		if known.String() == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("there is no role %.40q: use viewer, operator or admin", text)
}
