// Package controller runs a controller: the store, the cluster's authority, and what answers agents and people.
package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"heddle/internal/controller/pki"
	"heddle/internal/controller/rpc"
	"heddle/internal/controller/store"
	"heddle/internal/host/keystore"
	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
)

// Options are what a controller is started with.
type Options struct {
	// Dir holds all that the controller keeps.
	Dir string
	// Listen is the address for agents: HOST:PORT.
	Listen string
	// Advertise is where agents find this controller: HOST:PORT.
	Advertise string
	// Socket is where people and tools on this machine call; its mode lets root alone.
	Socket string
	// Name is that of a new cluster, for people.
	Name string
	// Endpoints are those of an existing etcd cluster; without any, etcd runs in this process.
	Endpoints []string
	Log       *slog.Logger
	// Ready is called when the controller answers. May be nil.
	Ready func()
}

// Kinds of objects beside those of the definition and the hosts.
const authorityKind store.Kind = "authority"

// grace is how long requests under way may take when the controller ends.
const grace = 5 * time.Second

// renewEvery is how often the controller makes itself another certificate.
const renewEvery = 7 * 24 * time.Hour

// Run runs a controller until ctx ends.
func Run(ctx context.Context, o Options) error {
	if err := ownfile.MakeDir(o.Dir, 0o700); err != nil {
		return fmt.Errorf("the controller's directory: %w", err)
	}
	secret, err := secretOf(filepath.Join(o.Dir, "secret"))
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, store.Options{Dir: filepath.Join(o.Dir, "etcd"), Endpoints: o.Endpoints, Log: o.Log})
	if err != nil {
		return err
	}
	defer st.Close()
	authority, err := authorityOf(ctx, st, o.Name, secret)
	if err != nil {
		return err
	}
	self := &self{authority: authority, address: o.Advertise}
	if self.id, err = idOf(filepath.Join(o.Dir, "id")); err == nil {
		err = self.renew()
	}
	if err != nil {
		return err
	}
	server, err := rpc.New(rpc.Options{Store: st, Authority: authority, Epoch: st.Cluster().Epoch, Log: o.Log,
		TLS: pki.Server{Own: self.credentials, Now: time.Now}})
	if err != nil {
		return err
	}
	if err := server.Announce(ctx, self.id, o.Advertise); err != nil {
		return err
	}
	return serve(ctx, o, st, server, self)
}

// serve answers until ctx ends.
func serve(ctx context.Context, o Options, st *store.Store, server *rpc.Server, self *self) error {
	hosts, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen for agents: %w", err)
	}
	people, err := listenUnix(o.Socket)
	if err != nil {
		return errors.Join(err, hosts.Close())
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { server.Run(ctx); return nil })
	g.Go(func() error { return answer(ctx, server.HTTP(server.Hosts()), server.Listener(hosts)) })
	g.Go(func() error { return answer(ctx, server.HTTP(server.People()), people) })
	g.Go(func() error { return self.keep(ctx, o.Log) })
	g.Go(func() error {
		select {
		case <-st.Done():
			return errors.New("the embedded etcd has ended; see the messages before this one")
		case <-ctx.Done():
			return nil
		}
	})
	o.Log.Info("ready", "cluster", string(self.authority.Trust().Cluster), "agents", hosts.Addr().String(),
		"advertised",
		o.Advertise, "socket", o.Socket)
	if o.Ready != nil {
		o.Ready()
	}
	return g.Wait()
}

// answer serves until ctx ends. Agents that follow their slices are cut off then: they go to another controller.
func answer(ctx context.Context, srv *http.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		soon, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if srv.Shutdown(soon) != nil {
			_ = srv.Close() // what did not end in time
		}
	})
	defer stop()
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listenUnix makes the socket for people, which root alone may use.
func listenUnix(path string) (net.Listener, error) {
	if err := ownfile.MakeDir(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("the directory of the controller's socket: %w", err)
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("another controller answers at %s: give this one another --socket", path),
			c.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	old := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return l, nil
}

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

// idOf reads this controller's id, or draws it.
func idOf(path string) (string, error) {
	b, err := ownfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		id := store.NewID()
		return id, ownfile.Replace(path, []byte(id))
	}
	return string(b), err
}

// authorityOf opens the cluster's authority; the first controller of a cluster makes it.
func authorityOf(ctx context.Context, st *store.Store, name string, secret pki.Secret) (*pki.Authority, error) {
	key := store.Key{Kind: authorityKind, Name: "authority"}
	for {
		if o, ok := st.Get(key); ok {
			doc, err := pki.Decode(o.Doc)
			if err != nil {
				return nil, err
			}
			a, err := doc.Open(secret)
			if err != nil {
				return nil, fmt.Errorf("open the cluster's authority with this controller's secret: %w", err)
			}
			return a, nil
		}
		doc, err := pki.New(name, secret, time.Now())
		if err != nil {
			return nil, err
		}
		text, err := doc.Encode()
		if err != nil {
			return nil, err
		}
		_, err = st.Write(ctx, []store.Change{{Key: key, Doc: json.RawMessage(text), IfVersion: store.New}})
		var conflict *store.Conflict
		if err != nil && !errors.As(err, &conflict) {
			return nil, err
		}
		if err := st.Sync(ctx); err != nil {
			return nil, err
		}
	}
}

// self is this controller's own identity.
type self struct {
	authority *pki.Authority
	id        string
	address   string
	creds     atomic.Pointer[identity.Credentials]
}

func (s *self) credentials() (*identity.Credentials, error) { return s.creds.Load(), nil }

// renew makes a new key and certificate. They are in memory alone.
func (s *self) renew() error {
	key, err := identity.NewKey()
	if err != nil {
		return err
	}
	csr, err := key.Request()
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(s.address)
	if err != nil {
		return fmt.Errorf("the address that agents are told (--advertise): %w", err)
	}
	issued, err := s.authority.IssueController(csr, pki.Subject{ID: s.id, Display: host, Addresses: []string{host}},
		time.Now())
	if err != nil {
		return err
	}
	s.creds.Store(s.authority.Serving(issued.Certificate, key))
	return nil
}

// keep renews the certificate in time, until ctx ends.
func (s *self) keep(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.renew(); err != nil {
				log.Error("renew this controller's certificate", "err", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}
