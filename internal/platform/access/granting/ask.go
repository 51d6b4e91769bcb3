package granting

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
)

// asked are the permissions that a question is about.
func asked(p controllerv1.Permission, field string) ([]roles.Permission, error) {
	switch {
	case field != "" && p != 0:
		return nil, invalid(errors.New("ask about a permission or about a field, not about both"))
	case field != "":
		return roles.Of(field), nil
	}
	if word := wordOf(p); word != "" {
		return []roles.Permission{roles.Permission(word)}, nil
	}
	return nil, invalid(fmt.Errorf("say which permission: %s", roles.Words(roles.Permissions(), "or")))
}

// question is what is asked about, and where: the permissions that it takes, and a scope that can be.
func question(q interface {
	GetPermission() controllerv1.Permission
	GetField() string
	GetScope() *controllerv1.AccessScope
}) ([]roles.Permission, roles.Scope, error) {
	scope := ScopeOf(q.GetScope())
	needs, err := asked(q.GetPermission(), q.GetField())
	if err != nil {
		return nil, scope, err
	}
	if err := scope.Check(); err != nil {
		return nil, scope, invalid(err)
	}
	return needs, scope, nil
}

// ExplainAccess says whether somebody may do something, by which grant, or what is missing.
func (s Service) ExplainAccess(ctx context.Context, q *controllerv1.ExplainAccessRequest) (
	*controllerv1.ExplainAccessResponse, error) {
	needs, scope, err := question(q)
	if err != nil {
		return nil, err
	}
	c, err := s.about(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.ExplainAccessResponse{Allowed: true, Name: c.Name, Groups: c.Groups,
		Grants: Grants(c.Access.Grants())}
	for _, p := range needs {
		g, ok := c.Access.Allows(p, scope)
		if ok {
			out.By = append(out.By, Grant(g))
			continue
		}
		why := (&roles.Refusal{Who: c.Title(), Needs: []roles.Permission{p}, Of: scope, Has: c.Access}).Error()
		if w := whoOf(q.GetWho()); s.GroupsOfProvider && q.GetWho() != nil && w.Kind == roles.Person &&
			len(q.GetGroups()) == 0 {
			why += "; groups that an identity provider names are not counted here: ask with those (--of-group)"
		}
		if !out.GetAllowed() {
			why = out.GetWhy() + "\n" + why
		}
		out.Allowed, out.Why = false, why
	}
	return out, nil
}

// about is who a question is about: the caller, or somebody else where the caller may ask that.
func (s Service) about(ctx context.Context, q *controllerv1.ExplainAccessRequest) (access.Caller, error) {
	c, _ := access.Of(ctx)
	if q.GetWho() == nil {
		if len(q.GetGroups()) > 0 {
			return c, invalid(errors.New("groups are asked about together with a person"))
		}
		return c, nil
	}
	if err := access.Need(ctx, roles.Audit, "what others may do", roles.Cluster()); err != nil {
		return c, err
	}
	switch w := whoOf(q.GetWho()); w.Kind {
	case roles.Person:
		groups, a := s.Book().OfPerson(w.Name, q.GetGroups())
		return access.Caller{Name: w.Name, Groups: groups, Access: a}, nil
	case roles.Group:
		groups, a := s.Book().OfPerson("", []string{w.Name})
		return access.Caller{Name: "group " + w.Name, Groups: groups, Access: a}, nil
	case roles.Token:
		r := s.Token(identity.TokenID(w.Name))
		if r == nil {
			return c, connect.NewError(connect.CodeNotFound,
				fmt.Sprintf("there is no token %q: see heddle access token list", w.Name))
		}
		groups, a := s.Book().Of(r)
		return access.Caller{Name: r.Owner(), Token: r, Groups: groups, Access: a}, nil
	}
	return c, invalid(errors.New("say who: a person, a group or a token"))
}

// WhoCan lists the grants by which something may be done.
func (s Service) WhoCan(ctx context.Context, q *controllerv1.WhoCanRequest) (*controllerv1.WhoCanResponse, error) {
	needs, scope, err := question(q)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.WhoCanResponse{}
	for _, p := range needs {
		out.Needs = append(out.Needs, controllerv1.Permission(numberOf(controllerv1.Permission(0), string(p))))
	}
	all, err := s.ListGrants(ctx, &controllerv1.ListGrantsRequest{})
	if err != nil {
		return nil, err
	}
	for _, g := range all.GetGrants() {
		for _, p := range needs {
			has := roles.Grant{Role: RoleOf(g.GetRole()), Scope: ScopeOf(g.GetScope())}
			if has.Allows(p, scope) {
				out.Grants = append(out.Grants, g)
				break
			}
		}
	}
	return out, nil
}
