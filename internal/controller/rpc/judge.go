package rpc

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/visibility"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// judged is the definition that a caller wants, with what they do not see of the one that there is, and an error that
// names the fields that they may not change.
func judged(ctx context.Context, q *controllerv1.ApplyDefinitionRequest, have, next *slice.Set) (*slice.Set, error) {
	a := access.GrantedTo(ctx)
	if a.Has(roles.Network, roles.Cluster()) && a.Has(roles.Security, roles.Cluster()) {
		return next, nil
	}
	next = visibility.Complete(a, have, next, q.GetRestore() > 0)
	c, _ := access.Of(ctx)
	if err := visibility.Judge(c.Title(), a, have, slice.Between(have, next)); err != nil {
		return nil, access.Refused(err)
	}
	if q.GetAllowUnprotected() {
		if err := access.Need(ctx, roles.Security, "--allow-unprotected", roles.Cluster()); err != nil {
			return nil, err
		}
	}
	return next, whole(next)
}

// whole checks a definition that was put together from what somebody sees and what they do not.
func whole(set *slice.Set) error {
	d, err := inventory.DefinitionOf(set)
	if err != nil {
		return err
	}
	text, err := spec.FormatDefinition(d)
	if err != nil {
		return err
	}
	_, err = spec.ParseDefinition("the whole definition", text)
	var faults spec.Faults
	if errors.As(err, &faults) { // the lines are of a text that nobody has seen
		for i := range faults {
			faults[i].Line, faults[i].Column = 0, 0
		}
		return connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("the change does not fit what the "+
			"definition has besides, of which you see a part: %v", faults))
	}
	return err
}
