package granting

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/api/wire"
	"heddle/internal/platform/access/roles"
)

// wordOf is the word of an enum of the contract; "" for none.
func wordOf(e protoreflect.Enum) string {
	v := e.Descriptor().Values().ByNumber(e.Number())
	if v == nil || e.Number() == 0 {
		return ""
	}
	return wire.Text(v)
}

// numberOf is the number of a word in an enum of the contract; 0 for none.
func numberOf(e protoreflect.Enum, word string) protoreflect.EnumNumber {
	values := e.Descriptor().Values()
	for i := range values.Len() {
		if v := values.Get(i); v.Number() != 0 && wire.Text(v) == word {
			return v.Number()
		}
	}
	return 0
}

// RoleOf is a role of the contract.
func RoleOf(r controllerv1.AccessRole) roles.Role { return roles.Role(wordOf(r)) }

// Role is a role in the contract's words.
func Role(r roles.Role) controllerv1.AccessRole {
	return controllerv1.AccessRole(numberOf(controllerv1.AccessRole(0), string(r)))
}

// ScopeOf is a part of the cluster of the contract; nil is all.
func ScopeOf(s *controllerv1.AccessScope) roles.Scope {
	return roles.Scope{Switch: s.GetSwitch(), PortGroup: s.GetPortGroup()}
}

// Scope is a part of the cluster in the contract's words.
func Scope(s roles.Scope) *controllerv1.AccessScope {
	return &controllerv1.AccessScope{Switch: s.Switch, PortGroup: s.PortGroup}
}

func whoOf(w *controllerv1.Grantee) roles.Who {
	return roles.Who{Kind: roles.Kind(wordOf(w.GetKind())), Name: w.GetName()}
}

func grantee(w roles.Who) *controllerv1.Grantee {
	return &controllerv1.Grantee{Kind: controllerv1.GranteeKind(numberOf(controllerv1.GranteeKind(0),
		string(w.Kind))), Name: w.Name}
}

// Grant is a grant in the contract's words.
func Grant(g roles.Grant) *controllerv1.AccessGrant {
	out := &controllerv1.AccessGrant{Id: g.ID, Who: grantee(g.Who), Role: Role(g.Role), Scope: Scope(g.Scope), By: g.By}
	if !g.Made.IsZero() {
		out.Made = timestamppb.New(g.Made)
	}
	if g.Who.Kind == roles.Group {
		out.OfGroup = g.Who.Name
	}
	return out
}

// Grants are several.
func Grants(list []roles.Grant) (out []*controllerv1.AccessGrant) {
	for _, g := range list {
		out = append(out, Grant(g))
	}
	return out
}

// Strongest is the role with the most permissions that a caller has for the whole cluster.
func Strongest(a *roles.Access) (found roles.Role) {
	for _, g := range a.Grants() {
		if g.Scope == roles.Cluster() && len(g.Role.Permissions()) > len(found.Permissions()) {
			found = g.Role
		}
	}
	return found
}
