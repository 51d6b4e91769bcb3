package rotation

import (
	"context"
	"crypto/x509"
	"slices"

	"heddle/internal/identity"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
)

// etcd reads whom its members trust when it starts, and never again. So each controller starts anew when the roots are
// others: after the next root is announced, and after the old one has gone. They do it one after the other, each only
// while all others are there: the majority never is at stake. The old root goes when the etcd of each of them trusts
// the new one.

// mostTurnLag is how many entries of the log another controller may have yet to apply while one starts anew.
const mostTurnLag = 100

// fingerprintsOf are those of roots.
func fingerprintsOf(roots []*x509.Certificate) (list []string) {
	for _, r := range roots {
		list = append(list, identity.FingerprintOf(r).String())
	}
	slices.Sort(list)
	return list
}

// sameRoots reports whether an etcd that trusts the roots a knows just those of b, which are sorted.
func sameRoots(a, b []string) bool { return slices.Equal(slices.Sorted(slices.Values(a)), b) }

// MyTurn reports whether this controller is to start anew now: its etcd trusts other roots than the cluster has, all
// other controllers are there, and those before it have done it.
func (s Service) MyTurn(ctx context.Context) bool {
	want := fingerprintsOf(s.Authority.Trust().Roots)
	var own []string
	for _, root := range s.EtcdRoots {
		own = append(own, root.String())
	}
	if len(own) == 0 || sameRoots(own, want) || len(s.Roster.Others()) == 0 || s.Store.Stale() != nil {
		return false
	}
	for _, a := range s.Roster.Standings(ctx, false) {
		switch {
		case a.Err != nil, a.Got.GetStale() != "", a.Got.GetLag() > mostTurnLag:
			return false
		case a.Of.ID < s.Roster.This.ID && len(a.Got.GetEtcdRoots()) > 0 && !sameRoots(a.Got.GetEtcdRoots(), want):
			return false
		}
	}
	return true
}

// etcdUnready are the controllers for which the old root would go too early: their etcd does not trust the new one yet,
// or nobody knows.
func (s Service) etcdUnready(ctx context.Context, d *pki.Document) (late []string) {
	if d.Stage != pki.Switched || len(s.EtcdRoots) == 0 || len(s.Roster.Others()) == 0 {
		return nil
	}
	issuing := s.Authority.Fingerprint().String()
	if !slices.Contains(s.EtcdRoots, s.Authority.Fingerprint()) {
		late = append(late, "controller "+peers.NameOf(s.Roster.This))
	}
	for _, a := range s.Roster.Standings(ctx, false) {
		if roots := a.Got.GetEtcdRoots(); a.Err != nil || len(roots) > 0 && !slices.Contains(roots, issuing) {
			late = append(late, "controller "+peers.NameOf(a.Of))
		}
	}
	slices.Sort(late)
	return late
}
