package visibility

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/platform/access/roles"
	"heddle/internal/slice"
	"heddle/internal/slice/fields"
)

// Visible are the objects of a definition that somebody sees: port groups and static ports of what they were granted,
// and the switches of these, whose policies port groups inherit. Templates and hosts are of the whole cluster.
func Visible(a *roles.Access, all *slice.Set) *slice.Set {
	if a.SeesAll() {
		return all
	}
	seen := &slice.Set{}
	for o := range all.All() {
		if Sees(a, o) {
			seen.Put(o)
		}
	}
	return seen
}

// Sees reports whether somebody sees an object of a definition.
func Sees(a *roles.Access, o slice.Object) bool {
	if a.SeesAll() {
		return true
	}
	if o.Kind == slice.Switch {
		return a.SeesSwitch(o.Name)
	}
	s := scopeOf(o)
	return s != roles.Cluster() && a.Has(roles.View, s)
}

// SeesNamed does so by the name of an object alone. A static port's says nothing of its port group: it is seen by who
// sees all.
func SeesNamed(a *roles.Access, k slice.Key) bool { return Sees(a, slice.Object{Key: k}) }

// scopeOf is the part of the cluster that an object belongs to.
func scopeOf(o slice.Object) roles.Scope {
	switch o.Kind {
	case slice.Switch:
		return roles.Scope{Switch: o.Name}
	case slice.PortGroup:
		return roles.GroupOf(o.Name)
	case slice.StaticPort:
		var p struct{ Switch, PortGroup string }
		if json.Unmarshal(o.Doc, &p) == nil && p.Switch != "" && p.PortGroup != "" {
			return roles.Scope{Switch: p.Switch, PortGroup: p.PortGroup}
		}
	}
	return roles.Cluster()
}

// Complete adds to a definition that somebody wants what they do not see of the one that there is: it stays as it is.
// Objects that they name and do not see stay in the definition that they want, and Judge refuses them. earlier says
// that the definition is an earlier one of the whole cluster: what they do not see of it is left out first.
func Complete(a *roles.Access, have, want *slice.Set, earlier bool) *slice.Set {
	if a.SeesAll() {
		return want
	}
	next := want.Clone()
	if earlier {
		next = Visible(a, want).Clone()
	}
	for o := range have.All() {
		if _, named := next.Get(o.Key); !named && !Sees(a, o) {
			next.Put(o)
		}
	}
	return next
}

// mostRefused is how many fields are named that somebody may not change.
const mostRefused = 20

// Judge returns an error that names the fields that a change touches and who may not change them: a field needs its
// permission for the object's part of the cluster, and for the part that it belonged to before. A *roles.Refusal is
// among the errors.
func Judge(who string, a *roles.Access, have *slice.Set, c slice.Change) error {
	var errs []error
	left := 0
	refuse := func(r *roles.Refusal) {
		if r.Who, r.Has = who, a; len(errs) < mostRefused {
			errs = append(errs, r)
			return
		}
		left++
	}
	for _, o := range c.Put {
		was, _ := have.Get(o.Key)
		for _, r := range touched(a, o.Key, was, o) {
			refuse(r)
		}
	}
	for _, k := range c.Removed {
		was, _ := have.Get(k)
		for _, r := range touched(a, k, was, slice.Object{Key: k}) {
			refuse(r)
		}
	}
	if left > 0 {
		errs = append(errs, fmt.Errorf("and %d more fields", left))
	}
	return errors.Join(errs...)
}

// touched are the refusals of one object's change. An object without a document is absent.
func touched(a *roles.Access, k slice.Key, was, next slice.Object) (list []*roles.Refusal) {
	scopes := []roles.Scope{}
	for _, o := range []slice.Object{was, next} {
		if o.Doc == nil {
			continue
		}
		if s := scopeOf(o); !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	if was.Doc == nil || next.Doc == nil { // whatever the fields are, there is another object, or one less
		word := "adding "
		if next.Doc == nil {
			word = "removing "
		}
		list = append(list, lacking(a, word+k.String(), []roles.Permission{roles.Network}, scopes)...)
	}
	for _, d := range differences(was.Doc, next.Doc) {
		what := k.String()
		if d != "" {
			what = d + " of " + what
		}
		if needs := roles.Of(d); was.Doc != nil && next.Doc != nil || slices.Contains(needs, roles.Security) {
			list = append(list, lacking(a, what, needs, scopes)...)
		}
	}
	return list
}

// lacking are refusals for each permission that is missing for a part of the cluster.
func lacking(a *roles.Access, what string, needs []roles.Permission, scopes []roles.Scope) (list []*roles.Refusal) {
	for _, p := range needs {
		for _, s := range scopes {
			if !a.Has(p, s) {
				list = append(list, &roles.Refusal{Needs: []roles.Permission{p}, Of: s, What: what})
			}
		}
	}
	return list
}

// differences are the fields in which two documents differ. One that is absent has no fields.
func differences(was, next []byte) (list []string) {
	for _, d := range fields.Diff(emptied(was), emptied(next)) {
		list = append(list, strings.TrimPrefix(d.Field, "."))
	}
	return list
}

func emptied(doc []byte) []byte {
	if doc == nil {
		return []byte("{}")
	}
	return doc
}
