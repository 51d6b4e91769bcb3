package rpc

import (
	"context"
	"slices"
	"time"

	"heddle/internal/identity"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/pki/rotation"
)

// NewAuthority is called when a rotation has put another authority in the place of the one before: hosts are told to
// renew their certificates, and connections whose certificates count no more end.
func (s Front) NewAuthority() {
	trust := s.Authority.Trust()
	if n := s.gate.Recheck(func(p *identity.Peer) error {
		_, err := trust.Client(p.Chain(), s.TLS.Now(), pki.Grace)
		return err
	}); n > 0 {
		s.Log.Info("connections were ended, as their root is trusted no more", "connections", n)
	}
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	s.fleet.pokeAll()
}

// rotationOf is what answers people about a server's roots.
func rotationOf(s *Server) rotation.Service {
	return rotation.Service{Store: s.Store, Log: s.Log, Authority: s.Authority, Own: s.TLS.Own, Now: s.TLS.Now,
		Secret: s.Secret, MayIssue: func(ctx context.Context) error {
			return s.issuing.May(ctx, health.Clocks.Doubted)
		}, Roster: s.Roster, EtcdRoots: s.Self.EtcdRoots,
		Holders: func() ([]pki.Holder, map[string]string) { return holders(s.fleet, s.Authority.Trust().Cluster) }}
}

// MyTurn reports whether this controller is to start anew now, for its etcd to trust the roots that there are.
func (s Front) MyTurn(ctx context.Context) bool { return rotationOf(s.Server).MyTurn(ctx) }

// holders are the hosts with what they hold of a cluster's authority, and their names by the names in their
// certificates.
func holders(f *fleet, cluster identity.ClusterID) (list []pki.Holder, names map[string]string) {
	names = map[string]string{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		n := identity.Name{Cluster: cluster, Kind: identity.Host, ID: h.id}
		names[n.String()] = h.doc.Name
		holder := pki.Holder{Name: n, Issuer: h.doc.Issuer, Trusts: h.doc.Trusts}
		if h.conn != nil && h.conn.serial != h.doc.Serial {
			holder.Trusts = nil // it has not shown its newest certificate yet
			holder.Issuer = h.conn.issuer
		}
		list = append(list, holder)
	}
	return list, names
}

// renewals is how many hosts renew in a second after a step of a rotation, at most on average.
const renewals = 100

// spread is how long a host waits after a step before it is told to renew: so that many do not come at once.
func (r *renewal) spread() time.Duration {
	within := time.Duration(r.fleet.size()) * time.Second / renewals
	return identity.Spread(r.peer.Certificate, within)
}

func (f *fleet) size() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.hosts)
}

// stepped reports whether a step of a rotation asks a host to renew, and since when: its certificate is not of the
// root that issues, or it was not handed the roots that there are.
func (r *renewal) stepped(a *pki.Authority) bool {
	trust := a.Trust()
	if trust.Outdated(r.peer.Certificate) {
		return true
	}
	if a.Document.Stage != pki.Announced {
		return false
	}
	_, doc, ok := r.hostOf(r.peer.Name.ID)
	return ok && (doc.Serial != r.peer.Serial ||
		!slices.Contains(doc.Trusts, identity.FingerprintOf(trust.Roots[1])))
}
