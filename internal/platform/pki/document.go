package pki

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heddle/internal/identity"
)

// documentFormat is the version of the document; a later controller reads this one and every one before.
const documentFormat = 1

// Stage is how far a rotation of the root is.
type Stage string

// The stages of a rotation, each of which is one step after the one before.
const (
	// Steady: there is one root.
	Steady Stage = "steady"
	// Announced: the next root is trusted as well; the old one issues.
	Announced Stage = "announced"
	// Switched: the new root issues; the old one is still trusted.
	Switched Stage = "switched"
)

// Document is what the store keeps of the authority. It has nothing in it that is secret without the secret file. It
// is not changed in place: a step gives a new one, which is stored if nobody stored another one meanwhile.
type Document struct {
	Format  int                `json:"format"`
	Cluster identity.ClusterID `json:"cluster"`
	// Name is what people called the cluster when its root was made; it is for people only.
	Name  string `json:"name"`
	Stage Stage  `json:"stage"`
	// Issuing is the root that signs; Other is the next one when Announced, the one before when Switched.
	Issuing Root  `json:"issuing"`
	Other   *Root `json:"other,omitempty"`
	// Link is the newer root's key signed by the older one, while there are two: who knows the older one only believes
	// the newer one by it. There is none if the older one's key was lost.
	Link []byte `json:"link,omitempty"`
	// Changed is when the last step was made.
	Changed time.Time `json:"changed"`

	// unknown are fields that a newer controller wrote.
	unknown map[string]json.RawMessage
}

// Root is one root of the cluster.
type Root struct {
	// Certificate is in DER.
	Certificate []byte `json:"certificate"`
	// Key is sealed; a root that only is trusted has none.
	Key *Sealed `json:"key,omitempty"`
}

// Encode is the document as the store keeps it.
func (d *Document) Encode() ([]byte, error) { return encodeKeeping(d, d.unknown) }

// Decode reads a document, and returns what is wrong with it.
func Decode(text []byte) (*Document, error) {
	d := &Document{}
	var err error
	if d.unknown, err = decodeKeeping(text, d); err != nil {
		return nil, fmt.Errorf("the authority's document can't be read: %w", err)
	}
	if d.Format > documentFormat {
		return nil, fmt.Errorf("the authority's document is of format %d, and this controller knows %d: upgrade it",
			d.Format, documentFormat)
	}
	if _, err := d.roots(); err != nil {
		return nil, fmt.Errorf("the authority's document is damaged: %w", err)
	}
	return d, nil
}

// roots are the certificates, the one that issues first.
func (d *Document) roots() (certs []*x509.Certificate, err error) {
	two := d.Stage == Announced || d.Stage == Switched
	if d.Stage != Steady && !two || two != (d.Other != nil) || d.Link != nil && !two {
		return nil, fmt.Errorf("its roots do not fit its stage, %.20q", d.Stage)
	}
	ders := [][]byte{d.Issuing.Certificate}
	if two {
		ders = append(ders, d.Other.Certificate)
	}
	want := identity.Name{Cluster: d.Cluster, Kind: identity.Authority}
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		if name, err := identity.NameOf(c); err != nil || name != want || !c.IsCA {
			return nil, errors.New("a root is none of this cluster")
		}
		certs = append(certs, c)
	}
	return certs, nil
}

// clone is a copy of which fields may be set.
func (d *Document) clone() *Document {
	c := *d
	return &c
}
