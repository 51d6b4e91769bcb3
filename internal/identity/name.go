package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// ClusterID names a cluster of controllers for ever: 16 letters and digits drawn by lot. What people call the cluster
// may change.
type ClusterID string

// NewClusterID draws the identity of a new cluster.
func NewClusterID() ClusterID {
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	return ClusterID(alphabet().EncodeToString(b[:]))
}

// Kind is what a certificate is for.
type Kind uint8

// The kinds of certificates. Their numbers are not stored.
const (
	Authority Kind = iota + 1
	Controller
	Host
)

// String is the kind's word in a name.
func (k Kind) String() string {
	switch k {
	case Authority:
		return "ca"
	case Controller:
		return "controller"
	case Host:
		return "host"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Name is who a certificate speaks for: heddle://CLUSTER/host/ID. Addresses and host names are no part of it, since
// they change, and others can have them.
type Name struct {
	Cluster ClusterID `json:"cluster"`
	Kind    Kind      `json:"kind"`
	// ID is the host's or the controller's; an authority has none.
	ID string `json:"id"`
}

const scheme = "heddle"

// String is the name as a URI.
func (n Name) String() string { return n.URI().String() }

// URI is the name as it stands in a certificate.
func (n Name) URI() *url.URL {
	path := "/" + n.Kind.String()
	if n.Kind != Authority {
		path += "/" + n.ID
	}
	return &url.URL{Scheme: scheme, Host: string(n.Cluster), Path: path}
}

// Check returns what is wrong with a name that a certificate is to be made for.
func (n Name) Check() error {
	if err := CheckID("a cluster's id", string(n.Cluster)); err != nil {
		return err
	}
	switch n.Kind {
	case Authority:
		if n.ID != "" {
			return fmt.Errorf("an authority's name has no id of its own, and this one has %q", n.ID)
		}
		return nil
	case Controller, Host:
		return CheckID("the id of a "+n.Kind.String(), n.ID)
	}
	return fmt.Errorf("there is no %v of certificates", n.Kind)
}

// maxID is the length of the longest id.
const maxID = 63

// CheckID returns what is wrong with an id; what says whose it is.
func CheckID(what, id string) error {
	bad := strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
	if id == "" || len(id) > maxID || bad >= 0 || id[0] == '-' || id[len(id)-1] == '-' {
		return fmt.Errorf("%s has 1 to %d of a–z, 0–9 and -, and neither begins nor ends with -: not %.80q", what,
			maxID, id)
	}
	return nil
}

// NameOf is the name in a certificate, which has to have exactly one.
func NameOf(c *x509.Certificate) (Name, error) {
	if len(c.URIs) != 1 {
		return Name{}, fmt.Errorf("the certificate has %d names of a Heddle cluster, and not one", len(c.URIs))
	}
	uri := c.URIs[0]
	kind, id, _ := strings.Cut(strings.TrimPrefix(uri.Path, "/"), "/")
	n := Name{Cluster: ClusterID(uri.Host), ID: id}
	for _, k := range []Kind{Authority, Controller, Host} {
		if k.String() == kind {
			n.Kind = k
		}
	}
	// Compared as a whole, so that a user, a port, a query or an escape in it is not passed over.
	if n.Check() != nil || n.String() != uri.String() {
		return Name{}, fmt.Errorf("the certificate's name %.120q is none of a Heddle cluster", uri.String())
	}
	return n, nil
}

// Fingerprint is the SHA-256 of a public key as certificates hold it. It is the same for every certificate of a key.
type Fingerprint [sha256.Size]byte

// FingerprintOf is that of a certificate's public key.
func FingerprintOf(c *x509.Certificate) Fingerprint { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

// String is the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Equal compares in a time that does not depend on the content.
func (f Fingerprint) Equal(o Fingerprint) bool { return subtle.ConstantTimeCompare(f[:], o[:]) == 1 }

// IsZero reports whether there is no fingerprint.
func (f Fingerprint) IsZero() bool { return f == Fingerprint{} }

// MarshalText writes it as String does.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(f) {
		return fmt.Errorf("a fingerprint has %d hexadecimal digits, not %.80q", 2*len(f), text)
	}
	copy(f[:], b)
	return nil
}
