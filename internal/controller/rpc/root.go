package rpc

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// AuthorityKind is the kind of the one object with the cluster's authority.
const AuthorityKind store.Kind = "authority"

// AuthorityKey names it.
func AuthorityKey() store.Key { return store.Key{Kind: AuthorityKind, Name: "authority"} }

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

// GetRoot says which roots there are.
func (p people) GetRoot(ctx context.Context, _ *controllerv1.GetRootRequest) (*controllerv1.GetRootResponse, error) {
	o, _ := p.Store.Get(AuthorityKey())
	d, err := pki.Decode(o.Doc)
	if err != nil {
		return nil, err
	}
	return Front(p).root(ctx, d)
}

func (s Front) root(ctx context.Context, d *pki.Document) (*controllerv1.GetRootResponse, error) {
	a, err := d.View()
	if err != nil {
		return nil, err
	}
	out := &controllerv1.GetRootResponse{Stage: stages()[d.Stage], Changed: timestamppb.New(d.Changed)}
	for i, r := range a.Trust().Roots {
		out.Roots = append(out.Roots, &controllerv1.RootCertificate{Fingerprint: identity.FingerprintOf(r).String(),
			Issues: i == 0, Ends: timestamppb.New(r.NotAfter)})
	}
	out.Waiting, err = s.unready(d)
	out.Waiting = append(out.GetWaiting(), s.etcdUnready(ctx, d)...)
	return out, err
}

func stages() map[pki.Stage]controllerv1.RootStage {
	return map[pki.Stage]controllerv1.RootStage{pki.Steady: controllerv1.RootStage_ROOT_STAGE_STEADY,
		pki.Announced: controllerv1.RootStage_ROOT_STAGE_ANNOUNCED,
		pki.Switched:  controllerv1.RootStage_ROOT_STAGE_SWITCHED}
}

// unready are the hosts for which the next step comes too early, by name. Of a host that is not connected it counts
// what it was handed with its newest certificate.
func (s Front) unready(d *pki.Document) ([]string, error) {
	cluster, names := s.Authority.Trust().Cluster, map[string]string{}
	var holders []pki.Holder
	s.fleet.mu.Lock()
	for _, h := range s.fleet.hosts {
		n := identity.Name{Cluster: cluster, Kind: identity.Host, ID: h.id}
		names[n.String()] = h.doc.Name
		holder := pki.Holder{Name: n, Issuer: h.doc.Issuer, Trusts: h.doc.Trusts}
		if h.conn != nil && h.conn.serial != h.doc.Serial {
			holder.Trusts = nil // it has not shown its newest certificate yet
			holder.Issuer = h.conn.issuer
		}
		holders = append(holders, holder)
	}
	s.fleet.mu.Unlock()
	late, err := d.Waiting(holders)
	var list []string
	for _, n := range late {
		list = append(list, names[n.String()])
	}
	slices.Sort(list)
	return list, err
}

// mostWaitingNamed is how many hosts a refusal names.
const mostWaitingNamed = 10

// RotateRoot makes one step of a rotation.
func (p people) RotateRoot(ctx context.Context, q *controllerv1.RotateRootRequest) (*controllerv1.RotateRootResponse,
	error) {
	if err := p.Store.Sync(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	o, _ := p.Store.Get(AuthorityKey())
	d, err := pki.Decode(o.Doc)
	if err != nil {
		return nil, err
	}
	next, err := p.step(ctx, d, q)
	if err != nil {
		return nil, err
	}
	if next != d {
		text, err := next.Encode()
		if err != nil {
			return nil, err
		}
		if _, err := p.Store.Write(ctx, []store.Change{{Key: o.Key, Doc: text, IfVersion: o.Version}}); err != nil {
			return nil, rpcerrors.OfStore(err)
		}
		p.Log.Info("a rotation of the root goes on", "stage", next.Stage)
		access.Note(ctx, "root is "+string(next.Stage))
		if err := p.shows(ctx, next); err != nil {
			return nil, err
		}
	}
	root, err := Front(p).root(ctx, next)
	return &controllerv1.RotateRootResponse{Root: root}, err
}

// takeTime bounds how long this controller may take until it goes by a step that was stored.
const takeTime = 10 * time.Second

// shows waits until this controller shows the roots of a document: whoever connects after the answer learns them.
func (p people) shows(ctx context.Context, d *pki.Document) error {
	a, err := d.View()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	for {
		own, err := p.TLS.Own()
		if err == nil && slices.EqualFunc(own.Trust.Roots, a.Trust().Roots, (*x509.Certificate).Equal) {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return connect.NewError(connect.CodeUnavailable,
				"the step is stored, and this controller does not go by it "+
					"yet: see its log, and call this again")
		}
	}
}

// step is the authority after a step.
func (p people) step(ctx context.Context, d *pki.Document, q *controllerv1.RotateRootRequest) (next *pki.Document,
	err error) {
	now := p.TLS.Now()
	if step := q.GetStep(); step == controllerv1.RootStep_ROOT_STEP_ANNOUNCE ||
		step == controllerv1.RootStep_ROOT_STEP_SWITCH { // a root begins by this clock too
		if err := issuing(p).may(ctx); err != nil {
			return nil, err
		}
	}
	switch q.GetStep() {
	case controllerv1.RootStep_ROOT_STEP_ANNOUNCE:
		return d.Announce(p.Secret, now)
	case controllerv1.RootStep_ROOT_STEP_CANCEL:
		next, err = d.Cancel(now)
	case controllerv1.RootStep_ROOT_STEP_SWITCH:
		if d.Stage == pki.Announced && !q.GetForce() {
			err = p.early(d, "do not trust the next root yet")
		}
		if err == nil {
			next, err = d.Switch(now)
		}
	case controllerv1.RootStep_ROOT_STEP_FINISH:
		if d.Stage == pki.Switched && !q.GetForce() {
			err = p.early(d, "have a certificate of the old root still")
		}
		if late := Front(p).etcdUnready(ctx, d); err == nil && len(late) > 0 && !q.GetForce() {
			err = fmt.Errorf("%s: its etcd does not trust the new root yet; it starts anew for that when all others "+
				"are there (heddle-controller list), or remove it", strings.Join(late, ", "))
		}
		if err == nil {
			next, err = d.Finish(now)
		}
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, "say which step: announce, switch, finish or cancel")
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err.Error())
	}
	return next, nil
}

// early is the error of a step that comes too early.
func (p people) early(d *pki.Document, what string) error {
	late, err := Front(p).unready(d)
	if err != nil || len(late) == 0 {
		return err
	}
	text := strings.Join(late[:min(len(late), mostWaitingNamed)], ", ")
	if n := len(late) - mostWaitingNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%d hosts %s: %s; wait until they have renewed their certificates (heddle ca show), or go on "+
		"with --force: they have to join again then", len(late), what, text)
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
