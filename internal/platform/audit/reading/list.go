package reading

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/peers"
)

// Bounds of a list of the audit log.
const (
	defaultAudit = 200
	mostAudit    = 10_000
)

// Service answers people about what was changed or refused.
type Service struct {
	// Audit is the log of this controller, Roster are all of them.
	Audit  *audit.Log
	Roster *peers.Roster
	Log    *slog.Logger
}

// ListAudit lists what was changed or refused, at all controllers or at the one that is named. Each has the log of what
// it answered; one that does not answer is named.
func (s Service) ListAudit(ctx context.Context, q *controllerv1.ListAuditRequest) (*controllerv1.ListAuditResponse,
	error) {
	asked := slices.DeleteFunc(s.Roster.Others(), func(c peers.Controller) bool { return !wanted(q, peers.NameOf(c)) })
	if name := q.GetController(); name != "" && len(asked) == 0 && name != peers.NameOf(s.Roster.This) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no controller %q: see "+
			"heddle-controller list", name))
	}
	most := mostOf(q)
	out := &controllerv1.ListAuditResponse{}
	if wanted(q, peers.NameOf(s.Roster.This)) {
		own, err := s.Here(q)
		if err != nil {
			return nil, err
		}
		add(out, own)
	}
	answers := peers.AskThese(ctx, s.Roster, asked, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.ListAuditHereResponse, error) {
		return k.ListAuditHere(ctx, &controllerv1.ListAuditHereRequest{Query: q})
	})
	for _, a := range answers {
		if a.Err != nil {
			s.Log.Debug("another controller does not answer", "controller", peers.NameOf(a.Of), "err", a.Err)
			out.Unreachable = append(out.Unreachable, peers.NameOf(a.Of))
			continue
		}
		add(out, a.Got.GetFound())
	}
	slices.SortStableFunc(out.Entries, func(a, b *controllerv1.AuditEntry) int {
		return cmp.Or(a.GetAt().AsTime().Compare(b.GetAt().AsTime()), cmp.Compare(a.GetController(),
			b.GetController()), cmp.Compare(a.GetNumber(), b.GetNumber()))
	})
	if over := len(out.Entries) - most; over > 0 {
		out.Entries, out.More = slices.Clone(out.Entries[over:]), out.More+int32(over)
	}
	return out, nil
}

// wanted says that the log of the controller of that name is asked for.
func wanted(q *controllerv1.ListAuditRequest, name string) bool {
	return q.GetController() == "" || q.GetController() == name
}

func mostOf(q *controllerv1.ListAuditRequest) int {
	return min(cmp.Or(int(max(0, q.GetMost())), defaultAudit), mostAudit)
}

// add takes in what one controller has.
func add(out, own *controllerv1.ListAuditResponse) {
	out.Entries = append(out.Entries, own.GetEntries()...)
	out.More += own.GetMore()
	out.Damaged += own.GetDamaged()
}

// Here lists what was changed or refused at this controller.
func (s Service) Here(q *controllerv1.ListAuditRequest) (*controllerv1.ListAuditResponse, error) {
	query := audit.Query{Who: q.GetWho(), Call: q.GetCall(), Object: q.GetObject(), From: q.GetFrom(),
		Result: auditResults()[q.GetResult()], Most: mostOf(q)}
	if q.GetSince() != nil {
		query.Since = q.GetSince().AsTime()
	}
	if q.GetUntil() != nil {
		query.Until = q.GetUntil().AsTime()
	}
	found, err := s.Audit.List(query)
	if err != nil {
		return nil, err
	}
	out := &controllerv1.ListAuditResponse{More: int32(found.More), Damaged: int32(found.Damaged)}
	for _, e := range found.Entries {
		entry := &controllerv1.AuditEntry{Number: e.Number, At: timestamppb.New(e.At), Who: e.Who, Token: e.Token,
			Role: e.Role, From: e.From, Call: e.Call, Objects: e.Objects, Error: e.Error, Times: int32(e.Times),
			Controller: peers.NameOf(s.Roster.This), Groups: e.Groups, Grant: e.Grant,
			Issuer: e.Issuer}
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
