package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/host/keystore"
	"heddle/internal/identity"
)

// directory is that of the host's identity in the agent's state directory.
const directory = "identity"

// ErrNone says that the host is in no cluster.
var ErrNone = keystore.ErrNone

// Record is a host's part in a cluster, as it is kept on disk.
type Record struct {
	dir *keystore.Dir // nil for a record that no file keeps

	mu    sync.Mutex
	id    *keystore.Identity
	asked identity.Key // what the next certificate was asked for with
	// chains remembers the certificates of controllers that were found in order, by the roots of that identity: a host
	// that comes back to the same controller has verified its certificate already.
	chains   *identity.Chains
	chainsOf *keystore.Identity
}

// Load reads the record in a directory: ErrNone where the host is in no cluster.
func Load(dir string) (*Record, error) {
	d, err := keystore.Open(filepath.Join(dir, directory))
	if err != nil {
		return nil, err
	}
	id, err := d.Load()
	if err != nil {
		return nil, err
	}
	return &Record{dir: d, id: id}, nil
}

// identityOf is what a controller has made of a key.
func identityOf(key identity.Key, said *controllerv1.HostIdentity) (*keystore.Identity, error) {
	certs, err := parse(said.GetCertificates())
	if err != nil {
		return nil, err
	}
	if len(certs) != 1 {
		return nil, fmt.Errorf("it has %d certificates, and not one", len(certs))
	}
	roots, err := parse(said.GetRoots())
	if err != nil {
		return nil, err
	}
	name, err := identity.NameOf(certs[0])
	if err == nil && (name.Kind != identity.Host || name.ID != said.GetHost()) {
		err = fmt.Errorf("its certificate is of %s, and this host is %s", name, said.GetHost())
	}
	return &keystore.Identity{Trust: identity.Trust{Cluster: identity.ClusterID(said.GetCluster()), Roots: roots},
		Certificate: certs[0], Key: key, Display: said.GetName(), Controllers: said.GetControllers()}, err
}

func parse(list [][]byte) (certs []*x509.Certificate, err error) {
	for _, der := range list {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	return certs, nil
}

// Forget removes the record with all keys.
func (r *Record) Forget() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dir.Forget()
}

func (r *Record) identity() *keystore.Identity {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// Begin numbers a start of the agent: with more than all starts of this host before, as far as that can be known.
func (r *Record) Begin(now time.Time) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dir.Begin(r.id, now)
}

// Controllers are the addresses of the cluster's controllers, HOST:PORT.
func (r *Record) Controllers() []string { return slices.Clone(r.identity().Controllers) }

// KeepControllers remembers where the controllers are.
func (r *Record) KeepControllers(list []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(list, r.id.Controllers) {
		return nil
	}
	next := *r.id
	next.Controllers = slices.Clone(list)
	return r.save(&next)
}

// save makes an identity the one that counts. The caller holds the lock.
func (r *Record) save(next *keystore.Identity) error {
	if r.dir != nil {
		if err := r.dir.Save(next); err != nil {
			return err
		}
	}
	r.id = next
	return nil
}

// TLS is for a connection to a controller: the other side is one of the cluster, at whatever address.
func (r *Record) TLS() (*tls.Config, error) {
	id, chains := r.verified()
	own := id.Credentials()
	own.Trust.Chains = chains
	clock := identity.NewClock(time.Now, append(slices.Clone(id.Trust.Roots), id.Certificate)...)
	return identity.Client{Clock: clock, Own: func() (*identity.Credentials, error) { return own, nil }}.TLS(), nil
}

// Between is how this host talks to others of its cluster, by the certificate that it has at each handshake.
func (r *Record) Between() *identity.Between {
	return &identity.Between{Own: func() (*identity.Credentials, error) {
		id, chains := r.verified()
		own := id.Credentials()
		own.Trust.Chains = chains
		return own, nil
	}}
}

// verified is the identity, with the certificates that were found in order by its roots.
func (r *Record) verified() (*keystore.Identity, *identity.Chains) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chainsOf != r.id {
		r.chains, r.chainsOf = identity.NewChains(), r.id
	}
	return r.id, r.chains
}

// Request asks for the host's next certificate (PKCS #10, DER), with the key that it has or another one.
func (r *Record) Request(sameKey bool) (csr []byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := r.id.Key
	if !sameKey {
		if key, err = r.dir.NextKey(); err != nil {
			return nil, err
		}
	}
	r.asked = key
	return key.Request()
}

// Renewed keeps the answer to the request.
func (r *Record) Renewed(said *controllerv1.HostIdentity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := identityOf(r.asked, said)
	if err != nil {
		return fmt.Errorf("the controller's answer: %w", err)
	}
	was, err := r.id.Name()
	if err != nil {
		return err
	}
	if is, err := next.Name(); err != nil || is != was {
		return fmt.Errorf("the controller's answer is for %s, and this host is %s", is, was)
	}
	return r.save(next)
}

// Cluster is the cluster's id.
func (r *Record) Cluster() string { return string(r.identity().Trust.Cluster) }

// Host is the host's id in the cluster.
func (r *Record) Host() string {
	// The certificate was checked when it was read.
	n, _ := r.identity().Name()
	return n.ID
}

// Name is the host's name in the cluster.
func (r *Record) Name() string { return r.identity().Display }

// Expires is when the host's certificate ends.
func (r *Record) Expires() time.Time { return r.identity().Certificate.NotAfter }
