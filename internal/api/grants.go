package api

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// AccessScope is a part of the cluster: a port group, a switch with its port groups, or all.
type AccessScope struct {
	// Switch is "" for the whole cluster, PortGroup for the whole switch.
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
}

// Grantee names a person, a group or a token.
type Grantee struct {
	// Kind is person, group or token.
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// AccessGrant is a role for a part of the cluster.
type AccessGrant struct {
	// ID is "" for what a token allows by itself.
	ID    string      `json:"id"`
	Who   Grantee     `json:"who"`
	Role  AccessRole  `json:"role"`
	Scope AccessScope `json:"scope"`
	Made  time.Time   `json:"made,omitzero"`
	// By is who made it.
	By string `json:"by"`
	// OfGroup is the group whose grant it is; "" for none.
	OfGroup string `json:"ofGroup"`
}

// AccessQuestion asks whether somebody may do something.
type AccessQuestion struct {
	// Permission, or a Field of the definition such as security.promiscuous.
	Permission string      `json:"permission"`
	Field      string      `json:"field"`
	Scope      AccessScope `json:"scope"`
	// Who is asked about, nil for the caller; Groups are those that the identity provider names.
	Who    *Grantee `json:"who,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// AccessAnswer is the answer.
type AccessAnswer struct {
	Allowed bool `json:"allowed"`
	// By are the grants that allow it, Why says what is missing.
	By  []AccessGrant `json:"by"`
	Why string        `json:"why"`
	// Name, Groups and Grants of whom was asked about.
	Name   string        `json:"name"`
	Groups []string      `json:"groups"`
	Grants []AccessGrant `json:"grants"`
}

// WhoCan are the grants by which something may be done.
type WhoCan struct {
	Grants []AccessGrant `json:"grants"`
	// Needs are the permissions, all of them needed.
	Needs []string `json:"needs"`
}

// AccessGroup is a local group of people and tokens.
type AccessGroup struct {
	Name    string    `json:"name"`
	Members []Grantee `json:"members"`
	Made    time.Time `json:"made,omitzero"`
	By      string    `json:"by"`
}

// GroupChange makes a local group, or gives it other members.
type GroupChange struct {
	Name   string    `json:"name"`
	Add    []Grantee `json:"add"`
	Remove []Grantee `json:"remove"`
}

// ExplainAccess says whether somebody may do something, by which grant, or what is missing.
func (a accessCalls) ExplainAccess(ctx context.Context, q AccessQuestion) (*AccessAnswer, error) {
	out, err := call[AccessAnswer, controllerv1.ExplainAccessRequest, controllerv1.ExplainAccessResponse](ctx, a.fleet,
		a.rpc.ExplainAccess, q)
	return &out, err
}

// WhoCan lists the grants by which something may be done.
func (a accessCalls) WhoCan(ctx context.Context, q AccessQuestion) (*WhoCan, error) {
	out, err := call[WhoCan, controllerv1.WhoCanRequest, controllerv1.WhoCanResponse](ctx, a.fleet, a.rpc.WhoCan,
		struct {
			Permission string      `json:"permission"`
			Field      string      `json:"field"`
			Scope      AccessScope `json:"scope"`
		}{q.Permission, q.Field, q.Scope})
	return &out, err
}

// CreateGrant gives somebody a role for a part of the cluster.
func (a accessCalls) CreateGrant(ctx context.Context, who Grantee, role AccessRole, scope AccessScope) (*AccessGrant,
	error) {
	out, err := call[struct {
		Grant AccessGrant `json:"grant"`
	}, controllerv1.CreateGrantRequest, controllerv1.CreateGrantResponse](ctx, a.fleet, a.rpc.CreateGrant, struct {
		Who   Grantee     `json:"who"`
		Role  AccessRole  `json:"role"`
		Scope AccessScope `json:"scope"`
	}{who, role, scope})
	return &out.Grant, err
}

// Grants lists the grants, and what tokens allow by themselves; of nil all.
func (a accessCalls) Grants(ctx context.Context, of *Grantee) ([]AccessGrant, error) {
	out, err := call[struct {
		Grants []AccessGrant `json:"grants"`
	}, controllerv1.ListGrantsRequest, controllerv1.ListGrantsResponse](ctx, a.fleet, a.rpc.ListGrants, struct {
		Who *Grantee `json:"who,omitempty"`
	}{of})
	return out.Grants, err
}

// RevokeGrant takes a grant back.
func (a accessCalls) RevokeGrant(ctx context.Context, id string) (*AccessGrant, error) {
	out, err := call[struct {
		Grant AccessGrant `json:"grant"`
	}, controllerv1.RevokeGrantRequest, controllerv1.RevokeGrantResponse](ctx, a.fleet, a.rpc.RevokeGrant, struct {
		ID string `json:"id"`
	}{id})
	return &out.Grant, err
}

// PutGroup makes a local group, or gives it other members.
func (a accessCalls) PutGroup(ctx context.Context, q GroupChange) (*AccessGroup, error) {
	out, err := call[struct {
		Group AccessGroup `json:"group"`
	}, controllerv1.PutGroupRequest, controllerv1.PutGroupResponse](ctx, a.fleet, a.rpc.PutGroup, q)
	return &out.Group, err
}

// Groups lists the local groups.
func (a accessCalls) Groups(ctx context.Context) ([]AccessGroup, error) {
	out, err := call[struct {
		Groups []AccessGroup `json:"groups"`
	}, controllerv1.ListGroupsRequest, controllerv1.ListGroupsResponse](ctx, a.fleet, a.rpc.ListGroups, nil)
	return out.Groups, err
}

// RemoveGroup removes a local group.
func (a accessCalls) RemoveGroup(ctx context.Context, name string) error {
	_, err := call[struct{}, controllerv1.RemoveGroupRequest, controllerv1.RemoveGroupResponse](ctx, a.fleet,
		a.rpc.RemoveGroup, struct {
			Name string `json:"name"`
		}{name})
	return err
}
