package controller

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"heddle/internal/host/keystore"
	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/pki/rotation"
	"heddle/internal/platform/store"
)

// Files of the data directory, beside etcd's.
const (
	secretFile    = "secret"         // opens what is sealed
	idFile        = "id"             // of this controller
	nameFile      = "name"           // of this controller, where it joined by one
	authorityFile = "authority.json" // a copy of the store's, which etcd's own connections need before there is a store
	joinFile      = "join.json"      // of a controller that is no member of etcd yet
	peerDir       = "peer"           // certificates for etcd
	etcdDir       = "etcd"
)

// authorityKey names the object with the cluster's authority.
func authorityKey() store.Key { return rotation.Key() }

const (
	// renewEvery is how old the controller's own certificate gets.
	renewEvery = 7 * 24 * time.Hour
	// lookEvery is how often it is looked at: a clock that is set makes it too old, or one of the future.
	lookEvery = time.Minute
)

// self is this controller's own identity.
type self struct {
	peers.Controller
	dir       string
	secret    pki.Secret
	authority *pki.Current
	creds     atomic.Pointer[identity.Credentials]
	// exports: etcd's connections to other members need the certificate in files.
	exports bool
	// etcdRoots are the roots that etcd trusts in this run; nil where it has no other members to know.
	etcdRoots []identity.Fingerprint
}

func (s *self) credentials() (*identity.Credentials, error) { return s.creds.Load(), nil }

func (s *self) server() pki.Server { return pki.Server{Own: s.credentials, Now: time.Now} }

// selfOf reads who this controller is, or draws it.
func selfOf(o Options) (*self, error) {
	s, err := withoutSecret(o)
	if err == nil {
		s.secret, err = secretOf(s.file(secretFile))
	}
	return s, err
}

// withoutSecret is selfOf for somebody who has the secret from elsewhere.
func withoutSecret(o Options) (*self, error) {
	if err := ownfile.MakeDir(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the controller's directory: %w", err)
	}
	if err := takeStaged(o.Dir); err != nil {
		return nil, fmt.Errorf("take what the cluster gave when this controller joined: %w", err)
	}
	s := &self{dir: o.Dir}
	var err error
	if s.ID, err = drawn(s.file(idFile), store.NewID); err != nil {
		return nil, err
	}
	if !store.IsID(s.ID) {
		return nil, fmt.Errorf("%s is damaged: it has %d bytes that are no id of a controller, which is %d letters "+
			"and digits. Write the id into it that \"heddle-controller list --output json\" shows for this controller "+
			"at another one, or take this controller out there (heddle-controller remove), move %s away and join anew",
			s.file(idFile), len(s.ID), len(store.NewID()), s.dir)
	}
	if s.Name, err = o.nameIn(o.Dir); err != nil {
		return nil, err
	}
	s.Address = o.Advertise
	return s, nil
}

// nameIn is the controller's name: as it was given, or as it joined, or the machine's.
func (o *Options) nameIn(dir string) (string, error) {
	if o.Controller != "" {
		return o.Controller, nil
	}
	b, err := ownfile.Read(filepath.Join(dir, nameFile))
	if err == nil {
		return string(b), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return os.Hostname()
}

func (s *self) file(name string) string { return filepath.Join(s.dir, name) }

// secretOf reads the file whose content opens the authority's key, or makes it.
func secretOf(path string) (pki.Secret, error) {
	b, err := keystore.ReadSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		s := pki.NewSecret()
		return s, keystore.WriteSecret(path, s.Content())
	}
	if err != nil {
		return pki.Secret{}, fmt.Errorf("the controller's secret: %w", err)
	}
	return pki.SecretOf(b)
}

// drawn reads a file that holds a word, or draws it.
func drawn(path string, draw func() string) (string, error) {
	b, err := ownfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		word := draw()
		return word, ownfile.Replace(path, []byte(word))
	}
	return string(b), err
}

// keptAuthority is the copy of the authority's document, nil for none.
func (s *self) keptAuthority() (*pki.Document, error) {
	text, err := ownfile.Read(s.file(authorityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return pki.Decode(text)
}

// keepAuthority keeps the copy.
func (s *self) keepAuthority(text []byte) error {
	if old, err := ownfile.Read(s.file(authorityFile)); err == nil && slices.Equal(old, text) {
		return nil
	}
	return ownfile.Replace(s.file(authorityFile), text)
}

// open opens an authority with the controller's secret, and makes a certificate by it.
func (s *self) open(doc *pki.Document) error {
	a, err := doc.Open(s.secret)
	if err != nil {
		return fmt.Errorf("open the cluster's authority with this controller's secret: %w", err)
	}
	if s.authority == nil {
		s.authority = pki.NewCurrent(a)
	}
	s.authority.Set(a)
	return s.renew()
}

// adopt makes the authority of the store this controller's. The first controller of a cluster stores it.
func (s *self) adopt(ctx context.Context, st *store.Store, doc *pki.Document, name string) error {
	for {
		if o, ok := st.Get(authorityKey()); ok {
			stored, err := pki.Decode(o.Doc)
			if err != nil {
				return err
			}
			if doc != nil && doc.Cluster != stored.Cluster {
				return fmt.Errorf("the data directory is of cluster %s, and etcd has cluster %s", doc.Cluster,
					stored.Cluster)
			}
			if err := s.open(stored); err != nil {
				return err
			}
			return s.keepAuthority(o.Doc)
		}
		if doc == nil {
			var err error
			if doc, err = pki.New(name, s.secret, time.Now()); err != nil {
				return err
			}
		}
		text, err := doc.Encode()
		if err != nil {
			return err
		}
		first := store.Change{Key: authorityKey(), Doc: json.RawMessage(text), IfVersion: store.New}
		err = store.Patiently(ctx, st, "store the cluster's authority", func(ctx context.Context) error {
			_, err := st.Write(ctx, []store.Change{first})
			return err
		})
		var conflict *store.Conflict
		if err != nil && !errors.As(err, &conflict) {
			return err
		}
		if err := store.Patiently(ctx, st, "read the cluster's authority", st.Sync); err != nil {
			return err
		}
		if o, _ := st.Get(authorityKey()); conflict != nil && !bytes.Equal(o.Doc, text) {
			doc = nil // another controller was first
		}
	}
}

// renew makes a new key and certificate. They are in memory alone, but for those of etcd.
func (s *self) renew() error {
	key, err := identity.NewKey()
	if err != nil {
		return err
	}
	csr, err := key.Request()
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("the address that agents are told (--advertise): %w", err)
	}
	authority := s.authority.Get()
	issued, err := authority.IssueController(csr, pki.Subject{ID: s.ID, Display: s.Name, Addresses: []string{host}},
		time.Now())
	if err != nil {
		return err
	}
	creds := authority.Serving(issued.Certificate, key)
	s.creds.Store(creds)
	if s.exports {
		_, err = keystore.Export(s.file(peerDir), creds)
	}
	return err
}

// dated reports whether a certificate was made too long ago by a clock, or later than that shows.
func dated(c *x509.Certificate, now time.Time) bool {
	age := now.Sub(identity.MadeAt(c))
	return age >= renewEvery || age < -lookEvery
}

// keep renews the certificate in time, and when the clock was set, until ctx ends.
func (s *self) keep(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !dated(s.creds.Load().Certificate.Leaf, time.Now()) {
				continue
			}
			if err := s.renew(); err != nil {
				log.Error("renew this controller's certificate", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
