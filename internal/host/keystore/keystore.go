package keystore

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
)

// Files of a directory:
//
//	identity.json    the identity, with the name of the key's file; written after that file
//	key-XXXX.pem     the key, named by the beginning of its fingerprint; never rewritten
//	next-key.pem     the key of a join or a renewal that is in progress
//	begun            the number of the machine's newest start
const (
	identityFile = "identity.json"
	begunFile    = "begun"
	nextFile     = "next-key.pem"
	keyPattern   = "key-*.pem"
)

const format = 1

// ErrNone means that this machine has joined no cluster.
var ErrNone = errors.New("this machine has joined no cluster")

// Identity is this machine's identity in a cluster.
type Identity struct {
	Trust       identity.Trust
	Certificate *x509.Certificate
	Key         identity.Key
	// Display is the name by which people know the machine.
	Display string
	// Controllers are the addresses of the cluster's controllers, HOST:PORT, in the order in which to try them.
	Controllers []string
}

// Name returns the machine's name in the cluster.
func (i *Identity) Name() (identity.Name, error) { return identity.NameOf(i.Certificate) }

// Credentials returns what a host presents to controllers, and the roots that it trusts.
func (i *Identity) Credentials() *identity.Credentials {
	return &identity.Credentials{Trust: i.Trust, Certificate: tls.Certificate{
		Certificate: [][]byte{i.Certificate.Raw}, PrivateKey: i.Key.PrivateKey, Leaf: i.Certificate}}
}

// check returns what is wrong with an identity.
func (i *Identity) check() error {
	if i.Certificate == nil || i.Key.PrivateKey == nil || len(i.Trust.Roots) == 0 {
		return errors.New("it lacks a certificate, a key or a root")
	}
	name, err := i.Name()
	if err != nil {
		return err
	}
	if name.Cluster != i.Trust.Cluster {
		return fmt.Errorf("its certificate is of %s, and its cluster is %s", name, i.Trust.Cluster)
	}
	if !i.Key.PublicKey.Equal(i.Certificate.PublicKey) {
		return errors.New("its key is not that of its certificate")
	}
	return nil
}

// document is the content of identity.json.
type document struct {
	Format      int                `json:"format"`
	Cluster     identity.ClusterID `json:"cluster"`
	KeyFile     string             `json:"keyFile"`
	Certificate string             `json:"certificate"` // PEM
	Roots       string             `json:"roots"`       // PEM
	Display     string             `json:"display"`
	Controllers []string           `json:"controllers"`
}

// disk has the two operations that change files. After a crash each of them is done or not done, and nothing in
// between.
type disk struct {
	replace func(path string, content []byte) error
	remove  func(path string) error
}

func realDisk() disk {
	return disk{ownfile.Replace, ownfile.Remove}
}

// Dir is the directory with a machine's identity. One process uses it, one call at a time.
type Dir struct {
	path string
	disk disk
}

// Open makes the directory if it is missing. It refuses one that others may write to.
func Open(path string) (*Dir, error) {
	if err := ownfile.MakeDir(path, 0o700); err != nil {
		return nil, err
	}
	return &Dir{path, realDisk()}, nil
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

// Load reads the identity. The error is ErrNone if there is none.
func (d *Dir) Load() (*Identity, error) {
	i, _, err := d.load()
	if err != nil && !errors.Is(err, ErrNone) {
		err = fmt.Errorf("the identity in %s is damaged; restore it from a backup, or join again: %w", d.path, err)
	}
	return i, err
}

func (d *Dir) load() (*Identity, *document, error) {
	text, err := ownfile.Read(d.file(identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ErrNone
	}
	if err != nil {
		return nil, nil, err
	}
	if err := ownfile.CheckSeal(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", identityFile, err)
	}
	doc := &document{}
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", identityFile, err)
	}
	if doc.Format != format {
		return nil, nil, fmt.Errorf("%s is of format %d, and this program knows %d: upgrade it", identityFile,
			doc.Format, format)
	}
	i := &Identity{Trust: identity.Trust{Cluster: doc.Cluster}, Display: doc.Display,
		Controllers: doc.Controllers}
	if i.Key, err = d.key(doc.KeyFile); err != nil {
		return nil, nil, err
	}
	certs, err := identity.ParseCerts([]byte(doc.Certificate))
	if err != nil || len(certs) != 1 {
		return nil, nil, errors.Join(fmt.Errorf("%s has no certificate", identityFile), err)
	}
	i.Certificate = certs[0]
	if i.Trust.Roots, err = identity.ParseCerts([]byte(doc.Roots)); err != nil {
		return nil, nil, err
	}
	return i, doc, i.check()
}

// key reads a key's file.
func (d *Dir) key(name string) (identity.Key, error) {
	if match, err := filepath.Match(keyPattern, name); name != nextFile && (!match || err != nil) {
		return identity.Key{}, fmt.Errorf("%.80q is no name of a key's file", name)
	}
	text, err := ownfile.Read(d.file(name))
	if err != nil {
		return identity.Key{}, err
	}
	k, err := identity.ParseKey(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return k, err
}

// NextKey returns the key with which to request a certificate, when joining or renewing. It is on disk before it is
// used, and stays the same until Save: a machine that asks again after a crash is recognised by it.
func (d *Dir) NextKey() (identity.Key, error) {
	k, err := d.key(nextFile)
	if err == nil && !d.current(k) {
		return k, nil
	}
	// There is none, or it is already in use, or it can't be read: then no certificate was issued for it.
	if k, err = identity.NewKey(); err != nil {
		return k, err
	}
	text, err := k.PEM()
	if err == nil {
		err = d.disk.replace(d.file(nextFile), text)
	}
	if err != nil {
		return identity.Key{}, fmt.Errorf("keep a new key: %w", err)
	}
	return k, nil
}

// current reports whether the key is that of the identity.
func (d *Dir) current(k identity.Key) bool {
	i, _, err := d.load()
	return err == nil && i.Key.Equal(k.PrivateKey)
}

// Save makes an identity the valid one. A crash at any instant leaves the previous one or this one, each with its key.
func (d *Dir) Save(i *Identity) error {
	if err := i.check(); err != nil {
		return fmt.Errorf("this is no identity to keep: %w", err)
	}
	print, err := i.Key.Fingerprint()
	if err != nil {
		return err
	}
	doc := &document{Format: format, Cluster: i.Trust.Cluster, KeyFile: "key-" + print.String()[:16] + ".pem",
		Certificate: string(identity.PEMOf(i.Certificate)), Roots: string(identity.PEMOf(i.Trust.Roots...)),
		Display: i.Display, Controllers: i.Controllers}
	if err := d.write(doc, i.Key); err != nil {
		return fmt.Errorf("keep the identity in %s: %w", d.path, err)
	}
	return d.tidy(doc.KeyFile, i.Key)
}

func (d *Dir) write(doc *document, k identity.Key) error {
	key, err := k.PEM()
	if err != nil {
		return err
	}
	// An existing key is left alone: the list of controllers changes more often than the key should be written.
	if old, err := ownfile.Read(d.file(doc.KeyFile)); err != nil || !bytes.Equal(old, key) {
		if err := d.disk.replace(d.file(doc.KeyFile), key); err != nil {
			return err
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	text = ownfile.Seal(text[:len(text)-1])
	if old, err := ownfile.Read(d.file(identityFile)); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return d.disk.replace(d.file(identityFile), text)
}

// tidy removes the keys that are no longer needed: the previous one, the next one if it is in use now, and incomplete
// files that a crash left.
func (d *Dir) tidy(keyFile string, k identity.Key) error {
	names, err := d.keyFiles()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == d.file(keyFile) || n == d.file(nextFile) })
	if next, err := d.key(nextFile); err == nil && next.Equal(k.PrivateKey) {
		names = append(names, d.file(nextFile))
	}
	return d.removeAll(names)
}

func (d *Dir) removeAll(names []string) error {
	for _, n := range names {
		if err := d.disk.remove(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a key that is not needed any more: %w", err)
		}
	}
	return nil
}

// Forget removes the identity and all keys, for a machine that has left its cluster.
func (d *Dir) Forget() error {
	keys, err := d.keyFiles()
	if err != nil {
		return err
	}
	// The identity first, because it names a key.
	return d.removeAll(append([]string{d.file(identityFile), d.file(identityFile + unfinished), d.file(begunFile),
		d.file(begunFile + unfinished)}, keys...))
}

// unfinished is the suffix of an incomplete file that a crash left.
const unfinished = ".new"

// keyFiles returns the paths of all files with keys.
func (d *Dir) keyFiles() (paths []string, err error) {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		base := strings.TrimSuffix(e.Name(), unfinished)
		if match, _ := filepath.Match(keyPattern, base); match || base == nextFile {
			paths = append(paths, d.file(e.Name()))
		}
	}
	return paths, err
}
