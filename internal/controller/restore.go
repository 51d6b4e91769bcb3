package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/rpc"
	"heddle/internal/host/keystore"
	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// Restore says what a cluster's state is restored from.
type Restore struct {
	// File is a snapshot; "" for what this controller has.
	File string
	// Force makes this controller's own state that of a cluster of one.
	Force bool
	// Secret is a file with the cluster's secret, for a data directory without.
	Secret string
	// ConfirmAll has the hosts and tokens of the snapshot count at once, also those that were taken out after it was
	// made.
	ConfirmAll bool
}

// Restored says what was restored.
type Restored struct {
	Cluster  string `json:"cluster"`
	Epoch    int64  `json:"epoch"`
	Revision int64  `json:"revision"`
	Hosts    int    `json:"hosts"`
	// Removed are the controllers that are no part of the cluster any more.
	Removed []string `json:"removed"`
	// Unconfirmed are the hosts and tokens that count when somebody has confirmed them.
	UnconfirmedHosts  []string `json:"unconfirmedHosts,omitempty"`
	UnconfirmedTokens []string `json:"unconfirmedTokens,omitempty"`
	// JoinTokens and SignIns are how many of those were removed.
	JoinTokens int `json:"joinTokensRemoved,omitempty"`
	SignIns    int `json:"signInsEnded,omitempty"`
	// Aside is where the data is that was there before.
	Aside string `json:"aside,omitempty"`
}

// RestoreState restores a cluster's state into the data directory of a controller that does not run.
func RestoreState(ctx context.Context, o Options, r Restore) (*Restored, error) {
	switch {
	case (r.File == "") == !r.Force:
		return nil, errors.New("say what the state is restored from: the FILE of a snapshot, or --force-new-cluster " +
			"for what this controller has")
	case Answers(o.Socket):
		return nil, fmt.Errorf("a controller answers at %s: stop it first", o.Socket)
	}
	if err := ownfile.MakeDir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the controller's directory: %w", err)
	}
	s, err := withoutSecret(o)
	if err != nil {
		return nil, err
	}
	if s.secret, err = r.secret(s.file(secretFile)); err != nil {
		return nil, err
	}
	out := &Restored{}
	opts := s.alone(o)
	opts.ForceNewCluster = r.Force
	if r.Force && !s.begun() {
		return nil, fmt.Errorf("%s has no data of a controller", s.file(etcdDir))
	}
	if r.Force {
		if err := s.notRestoring(); err != nil {
			return nil, err
		}
	}
	if !r.Force {
		if out.Aside, err = s.fromSnapshot(r.File, o); err != nil {
			return nil, err
		}
	}
	if err = s.firstOf(ctx, opts, !r.Force && !r.ConfirmAll, out); err != nil && !r.Force {
		err = errors.Join(err, s.undoRestore(out.Aside))
	}
	if err != nil {
		return nil, r.interrupted(ctx, o.Dir, err)
	}
	if err := s.drop(restoringFile); err != nil {
		return nil, err
	}
	return out, asOwner(o.Dir)
}

// interrupted is the error of a restore, in plain words where somebody has interrupted it.
func (r *Restore) interrupted(ctx context.Context, dir string, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case r.Force:
		return fmt.Errorf("interrupted: nothing of what %s has is lost, but it may be the state of this controller "+
			"alone "+
			"already: repeat the command (%w)", dir, err)
	}
	return fmt.Errorf("interrupted: %s has what it had before: repeat the command (%w)", dir, err)
}

// secret is the cluster's, of the data directory or from elsewhere.
func (r *Restore) secret(own string) (pki.Secret, error) {
	from := r.Secret
	if from == "" {
		from = own
	}
	b, err := keystore.ReadSecret(from)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.Secret == "":
		return pki.Secret{}, fmt.Errorf("there is no %s: give the cluster's secret with --secret, a copy of that file "+
			"of any of its controllers", own)
	case err != nil:
		return pki.Secret{}, fmt.Errorf("the cluster's secret: %w", err)
	}
	return pki.SecretOf(b)
}

// fromSnapshot makes the data of etcd from a snapshot, and says where the data from before is. The restore ends with
// the removal of restoringFile.
func (s *self) fromSnapshot(file string, o Options) (aside string, err error) {
	if _, err := os.Stat(file); err != nil {
		return "", err
	}
	if aside, err = s.beginRestore(file); err != nil {
		return "", err
	}
	if err := store.Restore(file, s.alone(o)); err != nil {
		return "", errors.Join(err, s.undoRestore(aside))
	}
	return aside, nil
}

// firstOf makes this controller the only one of the cluster that the data is of. With unconfirm, hosts and tokens count
// when somebody has confirmed them: those that were taken out after a snapshot was made are in it.
func (s *self) firstOf(ctx context.Context, opts store.Options, unconfirm bool, out *Restored) error {
	st, err := store.Open(ctx, opts)
	if err != nil {
		return err
	}
	defer st.Close()
	o, ok := st.Get(authorityKey())
	if !ok {
		return errors.New("this is no state of a Heddle cluster: it has no authority")
	}
	doc, err := pki.Decode(o.Doc)
	if err != nil {
		return err
	}
	if _, err := doc.Open(s.secret); err != nil {
		return fmt.Errorf("open the cluster's authority with the secret of %s: %w", s.dir, err)
	}
	// The files beside etcd's are written when nothing is left to wait for: a restore that is interrupted leaves them.
	if out.Removed, err = s.dropOthers(ctx, st, doc.Cluster); err != nil {
		return err
	}
	if unconfirm {
		if err := unconfirmed(ctx, st, out); err != nil {
			return err
		}
	}
	if err := keystore.WriteSecret(s.file(secretFile), s.secret.Content()); err != nil {
		return err
	}
	if err := s.keepAuthority(o.Doc); err != nil {
		return err
	}
	if err := s.drop(storeFile); err != nil { // etcd's cluster is another one
		return err
	}
	if err := s.keepStore(st); err != nil {
		return err
	}
	cluster := st.Cluster()
	out.Cluster, out.Epoch, out.Hosts = string(doc.Cluster), cluster.Epoch, len(st.List(store.KindHost))
	if d, ok := st.Get(definition.Key()); ok {
		out.Revision = d.Version
	}
	return nil
}

// dropOthers takes the other controllers out of the state: they have votes in a cluster of etcd that is no more. Should
// one of them still run, the others do not answer it.
func (s *self) dropOthers(ctx context.Context, st *store.Store, cluster identity.ClusterID) (names []string,
	err error) {
	names = []string{}
	var changes []store.Change
	for _, o := range st.List(peers.ControllerKind) {
		if o.Name == s.ID {
			continue
		}
		var c peers.Controller
		if err := json.Unmarshal(o.Doc, &c); err != nil || c.Name == "" {
			c.Name = o.Name
		}
		names = append(names, c.Name)
		revoke, err := rpc.Revoking(identity.Name{Cluster: cluster, Kind: identity.Controller, ID: o.Name},
			pki.Revocation{At: time.Now(), By: "heddle-controller restore",
				Why: "the state was restored without controller " + c.Name})
		if err != nil {
			return nil, err
		}
		changes = append(changes, revoke, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
	}
	if slices.Sort(names); len(changes) == 0 {
		return names, nil
	}
	_, err = st.Write(ctx, changes)
	return names, err
}

// mostUnconfirmed is how many hosts and tokens are written in a transaction.
const mostUnconfirmed = 100

// unconfirmed has the hosts and tokens of the state count when somebody has confirmed them.
func unconfirmed(ctx context.Context, st *store.Store, out *Restored) error {
	changes, found, err := rpc.Unconfirm(st, time.Now())
	if err != nil {
		return err
	}
	for some := range slices.Chunk(changes, mostUnconfirmed) {
		if _, err := st.Write(ctx, some); err != nil {
			return err
		}
	}
	out.UnconfirmedHosts, out.UnconfirmedTokens = found.Hosts, found.Tokens
	out.JoinTokens, out.SignIns = found.JoinTokens, found.SignIns
	return nil
}
