package roles

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is a kind of thing that can be done.
type Permission string

// The permissions.
const (
	// View: the definition, hosts, ports, counters, events, flows, moves and the history.
	View Permission = "view"
	// Operate: connect, move, block, release and settle ports, send a host its part of the definition again.
	Operate Permission = "operate"
	// Network: all fields of the definition but those of Security.
	Network Permission = "network"
	// Security: the fields of the definition that protect: security policies, the checks of a switch, and whether ports
	// may set security policies of their own.
	Security Permission = "security"
	// Capture: what guests send: captures and traces.
	Capture Permission = "capture"
	// Audit: who did what, and who may do what.
	Audit Permission = "audit"
	// Manage: hosts, controllers, tokens, grants, the authority, backups; all that is nothing of the others.
	Manage Permission = "manage"
)

// Permissions are all, in the order in which they are listed.
func Permissions() []Permission {
	return []Permission{View, Operate, Network, Security, Capture, Audit, Manage}
}

// What says what a permission allows, for people.
func (p Permission) What() string {
	switch p {
	case View:
		return "see the definition, hosts, ports, counters, events, flows, moves and the history"
	case Operate:
		return "move, release and settle ports, send hosts their part of the definition again"
	case Network:
		return "change switches, port groups, VLANs, teaming, monitoring and storm control"
	case Security:
		return "change security policies, the checks of a switch, and whether ports may have their own"
	case Capture:
		return "capture and trace frames: what guests send"
	case Audit:
		return "read who did what, and who may do what"
	case Manage:
		return "manage hosts, controllers, tokens, grants, the authority, and all the rest"
	}
	return string(p)
}

// Role is a named set of permissions.
type Role string

// The roles.
const (
	Viewer        Role = "viewer"
	Operator      Role = "operator"
	NetworkAdmin  Role = "network-admin"
	SecurityAdmin Role = "security-admin"
	Captures      Role = "capture"
	Admin         Role = "admin"
)

// All are the roles, in the order in which they are listed.
func All() []Role {
	return []Role{Viewer, Operator, NetworkAdmin, SecurityAdmin, Captures, Admin}
}

// Permissions are those of the role. A role that does not exist has none.
func (r Role) Permissions() []Permission {
	switch r {
	case Viewer:
		return []Permission{View}
	case Operator:
		return []Permission{View, Operate}
	case NetworkAdmin:
		return []Permission{View, Network}
	case SecurityAdmin:
		return []Permission{View, Security}
	case Captures:
		return []Permission{View, Capture}
	case Admin:
		return Permissions()
	}
	return nil
}

// Has reports whether the role has the permission.
func (r Role) Has(p Permission) bool { return slices.Contains(r.Permissions(), p) }

// Valid reports whether there is such a role.
func (r Role) Valid() bool { return slices.Contains(All(), r) }

// Known returns an error for a role that does not exist.
func (r Role) Known() error {
	if r.Valid() {
		return nil
	}
	return fmt.Errorf("there is no role %.40q: use %s", string(r), Words(All(), "or"))
}

// With are the roles that have the permission.
func With(p Permission) (list []Role) {
	for _, r := range All() {
		if r.Has(p) {
			list = append(list, r)
		}
	}
	return list
}

// Words lists words in a sentence: "a, b or c".
func Words[T ~string](list []T, last string) string {
	var b strings.Builder
	for i, w := range list {
		switch {
		case i > 0 && i == len(list)-1:
			b.WriteString(" " + last + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}
