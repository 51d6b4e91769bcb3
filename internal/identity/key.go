package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Keys are ECDSA on P-256 throughout: every TLS library, browser and hardware store knows them, which is not so of
// Ed25519.

// Key is a host's or a controller's own, which never leaves it.
type Key struct{ *ecdsa.PrivateKey }

// NewKey draws one.
func NewKey() (Key, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return Key{k}, err
}

// Format keeps a key out of messages and logs.
func (k Key) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte("private key")) }

const (
	pemKey  = "PRIVATE KEY"
	pemCert = "CERTIFICATE"
)

// PEM is the key in the form that other programs read too.
func (k Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.PrivateKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// ParseKey reads what PEM wrote.
func ParseKey(text []byte) (Key, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemKey || len(rest) > 0 {
		return Key{}, errors.New("this is not one private key in PEM form")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, errors.New("the private key can't be read") // the cause could quote it
	}
	k, ok := any.(*ecdsa.PrivateKey)
	if !ok || k.Curve != elliptic.P256() {
		return Key{}, errors.New("the private key is none of ECDSA on P-256")
	}
	return Key{k}, nil
}

// Fingerprint is that of the public half.
func (k Key) Fingerprint() (Fingerprint, error) {
	der, err := x509.MarshalPKIXPublicKey(&k.PublicKey)
	return sha256.Sum256(der), err
}

// Request asks for a certificate of this key (PKCS #10, DER). It names nobody: who the host is, the controller says.
func (k Key) Request() ([]byte, error) {
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, k.PrivateKey)
}

// PEMOf is certificates in PEM form.
func PEMOf(certs ...*x509.Certificate) (out []byte) {
	for _, c := range certs {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: pemCert, Bytes: c.Raw})...)
	}
	return out
}

// maxCerts is how many certificates a cluster has at most in one list: roots, and the links between two of them.
const maxCerts = 8

// ParseCerts reads what PEMOf wrote.
func ParseCerts(text []byte) (certs []*x509.Certificate, err error) {
	for len(text) > 0 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil || block.Type != pemCert {
			return nil, errors.New("this is no list of certificates in PEM form")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
		}
		if certs = append(certs, c); len(certs) > maxCerts {
			return nil, fmt.Errorf("there are more than %d certificates", maxCerts)
		}
	}
	return certs, nil
}
