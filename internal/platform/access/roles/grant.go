package roles

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is who somebody is whom something is granted to.
type Kind string

// The kinds.
const (
	// Person is somebody who signed in, by the name that the identity provider gives.
	Person Kind = "person"
	// Group is a group of people and tokens: a local one, or one that the identity provider names.
	Group Kind = "group"
	// Token is a token, by its id.
	Token Kind = "token"
)

// Kinds are all.
func Kinds() []Kind { return []Kind{Person, Group, Token} }

// Who names a person, a group or a token.
type Who struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
}

func (w Who) String() string { return string(w.Kind) + " " + w.Name }

// Compare orders by kind and name.
func (w Who) Compare(o Who) int {
	return cmp.Or(cmp.Compare(w.Kind, o.Kind), cmp.Compare(w.Name, o.Name))
}

// Check returns an error where that can be nobody.
func (w Who) Check() error {
	if !slices.Contains(Kinds(), w.Kind) {
		return fmt.Errorf("%.40q is neither person, group nor token", string(w.Kind))
	}
	if w.Name == "" || len(w.Name) > mostNameBytes || strings.ContainsFunc(w.Name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029'
	}) {
		return fmt.Errorf("a %s needs a name of one line and at most %d bytes", w.Kind, mostNameBytes)
	}
	return nil
}

// Grant gives a role for a part of the cluster.
type Grant struct {
	// ID names a grant of its own; "" for one that is part of a token.
	ID    string    `json:"id,omitempty"`
	Who   Who       `json:"who"`
	Role  Role      `json:"role"`
	Scope Scope     `json:"scope,omitzero"`
	Made  time.Time `json:"made,omitzero"`
	// By is who made it.
	By string `json:"by,omitempty"`
	// Via is the local group by which it is somebody's; "" where it is their own.
	Via string `json:"-"`
}

// Check returns an error for a grant that can be none.
func (g *Grant) Check() error {
	if err := g.Who.Check(); err != nil {
		return err
	}
	if err := g.Role.Known(); err != nil {
		return err
	}
	return g.Scope.Check()
}

// String names the grant for people and for the audit log.
func (g Grant) String() string {
	text := fmt.Sprintf("%s of %s", g.Role, g.Scope)
	if g.Who != (Who{}) {
		text += " (" + g.Who.String()
		if g.ID != "" {
			text += ", grant " + g.ID
		}
		text += ")"
	}
	return text
}

// Allows reports whether the grant gives the permission for a part of the cluster.
func (g *Grant) Allows(p Permission, o Scope) bool { return g.Role.Has(p) && g.Scope.Covers(o) }

// Access is all that somebody has been granted. nil is nothing.
type Access struct{ grants []Grant }

// NewAccess makes the access of these grants.
func NewAccess(grants ...Grant) *Access { return &Access{grants} }

// Grants are those of the access. They must not be changed.
func (a *Access) Grants() []Grant {
	if a == nil {
		return nil
	}
	return a.grants
}

// Allows returns the first grant that gives the permission for a part of the cluster.
func (a *Access) Allows(p Permission, o Scope) (Grant, bool) {
	for _, g := range a.Grants() {
		if g.Allows(p, o) {
			return g, true
		}
	}
	return Grant{}, false
}

// Has reports whether there is a grant of the permission for that part.
func (a *Access) Has(p Permission, o Scope) bool { _, ok := a.Allows(p, o); return ok }

// Somewhere returns the first grant that gives one of the permissions for any part of the cluster.
func (a *Access) Somewhere(any ...Permission) (Grant, bool) {
	for _, p := range any {
		for _, g := range a.Grants() {
			if g.Role.Has(p) {
				return g, true
			}
		}
	}
	return Grant{}, false
}

// SeesAll reports whether all of the cluster may be seen.
func (a *Access) SeesAll() bool { return a.Has(View, Cluster()) }

// Sees reports whether the ports of a port group may be seen.
func (a *Access) Sees(sw, group string) bool { return a.Has(View, Scope{sw, group}) }

// SeesSwitch reports whether a switch may be seen: one with a port group that may be is.
func (a *Access) SeesSwitch(sw string) bool {
	return slices.ContainsFunc(a.Grants(), func(g Grant) bool {
		return g.Role.Has(View) && (g.Scope.Switch == "" || g.Scope.Switch == sw)
	})
}

// Covers reports whether this access gives all that the other one does: nothing was taken back in between.
func (a *Access) Covers(o *Access) bool {
	for _, g := range o.Grants() {
		for _, p := range g.Role.Permissions() {
			if !a.Has(p, g.Scope) {
				return false
			}
		}
	}
	return true
}

// Roles are the roles of the access with their parts of the cluster, in short, for lists and the audit log.
func (a *Access) Roles() string {
	var list []string
	for _, g := range a.Grants() {
		text := string(g.Role)
		if g.Scope != Cluster() {
			text += " " + g.Scope.Short()
		}
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

// Refusal is the error of something that is not granted.
type Refusal struct {
	// Who is refused, as people know them.
	Who string
	// Needs is one of these permissions for that part of the cluster.
	Needs []Permission
	Of    Scope
	// What is what was asked for, such as "security.promiscuous of port group dvs/web"; "" for a whole call.
	What string
	Has  *Access
}

// Error says what is missing, and who may.
func (r *Refusal) Error() string {
	var b strings.Builder
	if r.What != "" {
		fmt.Fprintf(&b, "%s: ", r.What)
	}
	fmt.Fprintf(&b, "this needs %s", Words(rolesWith(r.Needs), "or"))
	if r.Of == Cluster() {
		b.WriteString(" of the whole cluster")
	} else {
		fmt.Fprintf(&b, " of %s", r.Of)
	}
	has := r.Has.Roles()
	if has == "" {
		has = "no role"
	}
	fmt.Fprintf(&b, ", and %s has %s", r.Who, has)
	return b.String()
}

// rolesWith are the roles that have one of the permissions.
func rolesWith(any []Permission) (list []Role) {
	for _, r := range All() {
		if slices.ContainsFunc(any, r.Has) {
			list = append(list, r)
		}
	}
	return list
}
