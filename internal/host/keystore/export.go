package keystore

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"

	"heddle/internal/host/ownfile"
	"heddle/internal/identity"
)

// Exported are the paths of PEM files, for libraries that read nothing else, such as etcd's for its peers.
type Exported struct {
	Certificate, Key, Roots string // paths
}

// Export writes credentials into a directory of their own. A file that already has the same content is left alone. The
// key is written before the certificate: a renewal with the same key changes one file.
func Export(dir string, c *identity.Credentials) (*Exported, error) {
	key, ok := c.Certificate.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || len(c.Certificate.Certificate) == 0 || len(c.Trust.Roots) == 0 {
		return nil, errors.New("these are no credentials to export: they lack a certificate, a key or a root")
	}
	var chain []*x509.Certificate
	for _, der := range c.Certificate.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, cert)
	}
	text, err := identity.Key{PrivateKey: key}.PEM()
	if err != nil {
		return nil, err
	}
	if err := ownfile.MakeDir(dir, 0o700); err != nil {
		return nil, err
	}
	out := &Exported{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "roots.pem")}
	for _, f := range []struct {
		path    string
		content []byte
	}{{out.Roots, identity.PEMOf(c.Trust.Roots...)}, {out.Key, text}, {out.Certificate, identity.PEMOf(chain...)}} {
		if old, err := ownfile.Read(f.path); err == nil && bytes.Equal(old, f.content) {
			continue
		}
		if err := ownfile.Replace(f.path, f.content); err != nil {
			return nil, fmt.Errorf("export credentials: %w", err)
		}
	}
	return out, nil
}
