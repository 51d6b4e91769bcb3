package rotation

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// Kind is the kind of the one object with the cluster's authority.
const Kind store.Kind = "authority"

// Key names it.
func Key() store.Key { return store.Key{Kind: Kind, Name: "authority"} }

// Service answers people about the roots, and makes the steps of a rotation.
type Service struct {
	Store Store
	Log   *slog.Logger
	// Authority is the one that counts here, Own are this controller's credentials.
	Authority *pki.Current
	Own       func() (*identity.Credentials, error)
	Now       func() time.Time
	// Secret opens the authority's key.
	Secret pki.Secret
	// MayIssue is the error where this controller's clock seems to be wrong: a root begins by it.
	MayIssue func(context.Context) error
	// Holders are the hosts with what they hold, and their names for people by the names in their certificates.
	Holders func() (list []pki.Holder, names map[string]string)
	// Roster are the controllers; EtcdRoots are those that this controller's etcd trusts, none without an own etcd.
	Roster    *peers.Roster
	EtcdRoots []identity.Fingerprint
}

// Store is what a service needs of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	Write(context.Context, []store.Change) (int64, error)
	Sync(context.Context) error
	// Stale says why reads may be old; nil when they are current.
	Stale() error
}

// GetRoot says which roots there are.
func (s Service) GetRoot(ctx context.Context, _ *controllerv1.GetRootRequest) (*controllerv1.GetRootResponse, error) {
	o, _ := s.Store.Get(Key())
	d, err := pki.Decode(o.Doc)
	if err != nil {
		return nil, err
	}
	return s.root(ctx, d)
}

func (s Service) root(ctx context.Context, d *pki.Document) (*controllerv1.GetRootResponse, error) {
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
func (s Service) unready(d *pki.Document) ([]string, error) {
	holders, names := s.Holders()
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
func (s Service) RotateRoot(ctx context.Context, q *controllerv1.RotateRootRequest) (*controllerv1.RotateRootResponse,
	error) {
	if err := s.Store.Sync(ctx); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	o, _ := s.Store.Get(Key())
	d, err := pki.Decode(o.Doc)
	if err != nil {
		return nil, err
	}
	next, err := s.step(ctx, d, q)
	if err != nil {
		return nil, err
	}
	if next != d {
		text, err := next.Encode()
		if err != nil {
			return nil, err
		}
		if _, err := s.Store.Write(ctx, []store.Change{{Key: o.Key, Doc: text, IfVersion: o.Version}}); err != nil {
			return nil, rpcerrors.OfStore(err)
		}
		s.Log.Info("a rotation of the root goes on", "stage", next.Stage)
		access.Note(ctx, "root is "+string(next.Stage))
		if err := s.shows(ctx, next); err != nil {
			return nil, err
		}
	}
	root, err := s.root(ctx, next)
	return &controllerv1.RotateRootResponse{Root: root}, err
}

// takeTime bounds how long this controller may take until it goes by a step that was stored.
const takeTime = 10 * time.Second

// shows waits until this controller shows the roots of a document: whoever connects after the answer learns them.
func (s Service) shows(ctx context.Context, d *pki.Document) error {
	a, err := d.View()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	for {
		own, err := s.Own()
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
func (s Service) step(ctx context.Context, d *pki.Document, q *controllerv1.RotateRootRequest) (next *pki.Document,
	err error) {
	now := s.Now()
	if step := q.GetStep(); step == controllerv1.RootStep_ROOT_STEP_ANNOUNCE ||
		step == controllerv1.RootStep_ROOT_STEP_SWITCH { // a root begins by this clock too
		if err := s.MayIssue(ctx); err != nil {
			return nil, err
		}
	}
	switch q.GetStep() {
	case controllerv1.RootStep_ROOT_STEP_ANNOUNCE:
		return d.Announce(s.Secret, now)
	case controllerv1.RootStep_ROOT_STEP_CANCEL:
		next, err = d.Cancel(now)
	case controllerv1.RootStep_ROOT_STEP_SWITCH:
		if d.Stage == pki.Announced && !q.GetForce() {
			err = s.early(d, "do not trust the next root yet")
		}
		if err == nil {
			next, err = d.Switch(now)
		}
	case controllerv1.RootStep_ROOT_STEP_FINISH:
		if d.Stage == pki.Switched && !q.GetForce() {
			err = s.early(d, "have a certificate of the old root still")
		}
		if late := s.etcdUnready(ctx, d); err == nil && len(late) > 0 && !q.GetForce() {
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
func (s Service) early(d *pki.Document, what string) error {
	late, err := s.unready(d)
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
