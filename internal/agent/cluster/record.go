package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
)

// fileName is that of the record in the agent's state directory.
const fileName = "cluster.json"

// document is the record as the file has it. It contains the host's key: the file is readable by root alone. One file,
// so that a crash leaves the old or the new one whole.
type document struct {
	Format       int      `json:"format"`
	Cluster      string   `json:"cluster"`
	Host         string   `json:"host"`
	Name         string   `json:"name"`
	Key          string   `json:"key"` // PEM
	Certificates [][]byte `json:"certificates"`
	Roots        [][]byte `json:"roots"`
	Controllers  []string `json:"controllers"`
}

const documentFormat = 1

// Record is a host's part in a cluster, as it is kept on disk.
type Record struct {
	path string // "" for a record that no file keeps

	mu    sync.Mutex
	doc   document
	creds *identity.Credentials
	clock identity.Clock
}

// Load reads the record in a directory; nil where the host is in no cluster.
func Load(dir string) (*Record, error) {
	r := &Record{path: filepath.Join(dir, fileName)}
	b, err := ownfile.Read(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var doc document
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err == nil && doc.Format != documentFormat {
		err = fmt.Errorf("it has format %d, this program knows %d", doc.Format, documentFormat)
	}
	if err == nil {
		err = r.use(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("the host's part in a cluster cannot be read from %s: %w; remove the file and join "+
			"again "+
			"(heddle host join --replace)", r.path, err)
	}
	return r, nil
}

// Keep writes a new record of a directory.
func Keep(dir string, key identity.Key, id *controllerv1.HostIdentity) (*Record, error) {
	r, err := record(filepath.Join(dir, fileName), key, id)
	if err != nil {
		return nil, err
	}
	return r, r.write(r.doc)
}

// record makes a record that is in no file yet.
func record(path string, key identity.Key, id *controllerv1.HostIdentity) (*Record, error) {
	text, err := key.PEM()
	if err != nil {
		return nil, err
	}
	r := &Record{path: path}
	doc := document{Format: documentFormat, Cluster: id.GetCluster(), Host: id.GetHost(), Name: id.GetName(),
		Key: string(text), Certificates: id.GetCertificates(), Roots: id.GetRoots(), Controllers: id.GetControllers()}
	if err := r.use(doc); err != nil {
		return nil, fmt.Errorf("the controller's answer: %w", err)
	}
	return r, nil
}

// use makes a document the record, if it is whole.
func (r *Record) use(doc document) error {
	key, err := identity.ParseKey([]byte(doc.Key))
	if err != nil {
		return err
	}
	certs, err := parse(doc.Certificates)
	if err != nil {
		return err
	}
	roots, err := parse(doc.Roots)
	if err != nil {
		return err
	}
	if len(certs) == 0 || len(roots) == 0 {
		return errors.New("it has no certificate")
	}
	r.doc = doc
	r.creds = &identity.Credentials{Trust: identity.Trust{Cluster: identity.ClusterID(doc.Cluster), Roots: roots},
		Certificate: tls.Certificate{Certificate: doc.Certificates, PrivateKey: key.PrivateKey, Leaf: certs[0]}}
	r.clock = identity.NewClock(time.Now, append(slices.Clone(certs), roots...)...)
	return nil
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

func (r *Record) write(doc document) error {
	if r.path == "" { // of a simulated host
		return nil
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return ownfile.Replace(r.path, b)
}

// Remove forgets the record.
func (r *Record) Remove() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ownfile.SyncDir(filepath.Dir(r.path))
}

// Controllers are the addresses of the cluster's controllers, HOST:PORT.
func (r *Record) Controllers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.doc.Controllers)
}

// KeepControllers remembers where the controllers are.
func (r *Record) KeepControllers(list []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(list, r.doc.Controllers) {
		return nil
	}
	doc := r.doc
	doc.Controllers = slices.Clone(list)
	if err := r.write(doc); err != nil {
		return err
	}
	r.doc = doc
	return nil
}

// TLS is for a connection to a controller: the other side is one of the cluster, at whatever address.
func (r *Record) TLS() (*tls.Config, error) {
	r.mu.Lock()
	clock := r.clock
	r.mu.Unlock()
	return identity.Client{Clock: clock, Own: func() (*identity.Credentials, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.creds, nil
	}}.TLS(), nil
}

// Cluster is the cluster's id.
func (r *Record) Cluster() string { return r.doc.Cluster }

// Host is the host's id in the cluster.
func (r *Record) Host() string { return r.doc.Host }

// Name is the host's name in the cluster.
func (r *Record) Name() string { return r.doc.Name }

// Expires is when the host's certificate ends.
func (r *Record) Expires() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.creds.Certificate.Leaf.NotAfter
}
