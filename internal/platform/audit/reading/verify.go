package reading

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// VerifyAudit checks at all controllers that the audit log is as it was written.
func (s Service) VerifyAudit(ctx context.Context, q *controllerv1.VerifyAuditRequest) (
	*controllerv1.VerifyAuditResponse, error) {
	own, err := s.Chains(q.GetHead())
	if err != nil {
		return nil, err
	}
	out := &controllerv1.VerifyAuditResponse{Chains: own}
	for _, a := range peers.AskOthers(ctx, s.Roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.VerifyAuditHereResponse, error) {
		return k.VerifyAuditHere(ctx, &controllerv1.VerifyAuditHereRequest{Head: q.GetHead()})
	}) {
		if a.Err != nil {
			s.Log.Debug("another controller does not answer", "controller", peers.NameOf(a.Of), "err", a.Err)
			out.Unreachable = append(out.Unreachable, peers.NameOf(a.Of))
			continue
		}
		out.Chains = append(out.Chains, a.Got.GetChains()...)
	}
	return out, nil
}

// Chains checks this controller's log.
func (s Service) Chains(head string) (list []*controllerv1.AuditChain, err error) {
	found, err := s.Audit.Verify(head)
	if err != nil {
		return nil, err
	}
	for _, c := range found {
		list = append(list, &controllerv1.AuditChain{Controller: peers.NameOf(s.Roster.This), Series: c.Series,
			Lines: int32(c.Lines), Unchained: int32(c.Unchained), Head: c.Head, Number: c.Number, Known: c.Known,
			Faults: c.Faults})
	}
	return list, nil
}
