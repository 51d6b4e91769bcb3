package rpc

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// ListAuditHere lists what was changed or refused at this controller, for another one.
func (o others) ListAuditHere(ctx context.Context, q *controllerv1.ListAuditHereRequest) (
	*controllerv1.ListAuditHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	found, err := o.auditing.Here(q.GetQuery())
	return &controllerv1.ListAuditHereResponse{Found: found}, err
}

// VerifyAuditHere checks this controller's log, for another one.
func (o others) VerifyAuditHere(ctx context.Context, q *controllerv1.VerifyAuditHereRequest) (
	*controllerv1.VerifyAuditHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	list, err := o.auditing.Chains(q.GetHead())
	return &controllerv1.VerifyAuditHereResponse{Chains: list}, err
}
