package rpc

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/audit"
)

// Bounds of a list of the audit log.
const (
	defaultAudit = 200
	mostAudit    = 10_000
)

// ListAudit lists what was changed or refused at this controller.
func (p people) ListAudit(_ context.Context, q *controllerv1.ListAuditRequest) (*controllerv1.ListAuditResponse,
	error) {
	query := audit.Query{Who: q.GetWho(), Call: q.GetCall(), Object: q.GetObject(), From: q.GetFrom(),
		Result: auditResults()[q.GetResult()], Most: min(cmp.Or(int(max(0, q.GetMost())), defaultAudit), mostAudit)}
	if q.GetSince() != nil {
		query.Since = q.GetSince().AsTime()
	}
	if q.GetUntil() != nil {
		query.Until = q.GetUntil().AsTime()
	}
	found, err := p.Audit.List(query)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.ListAuditResponse{More: int32(found.More), Damaged: int32(found.Damaged)}
	for _, e := range found.Entries {
		entry := &controllerv1.AuditEntry{Number: e.Number, At: timestamppb.New(e.At), Who: e.Who, Token: e.Token,
			Role: e.Role, From: e.From, Call: e.Call, Objects: e.Objects, Error: e.Error, Times: int32(e.Times)}
		for word, r := range auditResults() {
			if r == e.Result {
				entry.Result = word
			}
		}
		if !e.Ended.IsZero() {
			entry.Ended = timestamppb.New(e.Ended)
		}
		out.Entries = append(out.Entries, entry)
	}
	return out, nil
}

func auditResults() map[controllerv1.AuditResult]audit.Result {
	return map[controllerv1.AuditResult]audit.Result{
		controllerv1.AuditResult_AUDIT_RESULT_BEGUN:   audit.Begun,
		controllerv1.AuditResult_AUDIT_RESULT_DONE:    audit.Done,
		controllerv1.AuditResult_AUDIT_RESULT_FAILED:  audit.Failed,
		controllerv1.AuditResult_AUDIT_RESULT_REFUSED: audit.Refused,
	}
}
