package pki

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"heddle/internal/identity"
)

// A rotation has three steps: Announce, Switch, Finish. Each may be made again, and then changes nothing: it returns
// the document that it was given.

// Announce makes the next root, which everybody trusts from now on. The old one goes on issuing.
func (d *Document) Announce(s Secret, now time.Time) (*Document, error) {
	if d.Stage != Steady {
		return d, nil
	}
	roots, err := d.roots()
	if err != nil {
		return nil, err
	}
	old, err := openKey(d.Cluster, roots[0], &d.Issuing, s)
	if err != nil {
		return nil, err
	}
	next := d.clone()
	root, cert, _, err := newRoot(d, s, now)
	if err != nil {
		return nil, err
	}
	if next.Link, err = linkRoots(d, cert, roots[0], old, now); err != nil {
		return nil, err
	}
	next.Other, next.Stage, next.Changed = root, Announced, now
	return next, nil
}

// AnnounceAfterLoss is Announce where the secret is lost, and with it the old root's key: s is a new one. Controllers
// and hosts that are connected learn of the next root by connections that they trust still. Nothing can be issued until
// Switch, and who was away until then has to join again.
func (d *Document) AnnounceAfterLoss(s Secret, now time.Time) (*Document, error) {
	if d.Stage != Steady {
		return d, nil
	}
	root, _, _, err := newRoot(d, s, now)
	if err != nil {
		return nil, err
	}
	next := d.clone()
	next.Other, next.Stage, next.Changed = root, Announced, now
	return next, nil
}

// linkRoots signs the key of the new root with that of the old one.
func linkRoots(d *Document, to, from *x509.Certificate, key identity.Key, now time.Time) ([]byte, error) {
	t := rootTemplate(d, now)
	t.MaxPathLen, t.MaxPathLenZero = 0, true
	// Both have the same subject, so that nothing else tells verifiers who signed what.
	t.SubjectKeyId, t.AuthorityKeyId = to.SubjectKeyId, from.SubjectKeyId
	if t.NotAfter.After(from.NotAfter) {
		t.NotAfter = from.NotAfter
	}
	return x509.CreateCertificate(rand.Reader, t, from, to.PublicKey, key.PrivateKey)
}

// Cancel takes back Announce. After Switch there is no way back, since the old key is gone: rotate once more instead.
func (d *Document) Cancel(now time.Time) (*Document, error) {
	switch d.Stage {
	case Steady:
		return d, nil
	case Announced:
		next := d.clone()
		next.Other, next.Link, next.Stage, next.Changed = nil, nil, Steady, now
		return next, nil
	}
	return nil, errors.New("the new root issues already, and the old one's key is gone: finish this rotation")
}

// Switch makes the next root issue. The old one is trusted on; its key is removed, so that a later backup is of no use
// to who steals it.
func (d *Document) Switch(now time.Time) (*Document, error) {
	switch d.Stage {
	case Switched:
		return d, nil
	case Steady:
		return nil, errors.New("there is no next root to switch to: announce one first")
	}
	next := d.clone()
	old := d.Issuing
	old.Key = nil
	next.Issuing, next.Other, next.Stage, next.Changed = *d.Other, &old, Switched, now
	return next, nil
}

// Finish ends the trust in the old root: certificates that it signed count no more.
func (d *Document) Finish(now time.Time) (*Document, error) {
	switch d.Stage {
	case Steady:
		return d, nil
	case Announced:
		return nil, errors.New("the old root still issues: switch to the new one first, or cancel the rotation")
	}
	next := d.clone()
	next.Other, next.Link, next.Stage, next.Changed = nil, nil, Steady, now
	return next, nil
}

// Holder is who has a certificate, and what it is known to trust.
type Holder struct {
	Name identity.Name
	// Issuer is the root that signed its certificate.
	Issuer identity.Fingerprint
	// Trusts are the roots that it has acknowledged.
	Trusts []identity.Fingerprint
}

// Waiting are those for whom the next step of a rotation comes too early: who does not trust the next root yet, or has
// a certificate of the old one still.
func (d *Document) Waiting(holders []Holder) (out []identity.Name, err error) {
	roots, err := d.roots()
	if err != nil || d.Stage == Steady {
		return nil, err
	}
	for _, h := range holders {
		late := h.Issuer.Equal(identity.FingerprintOf(roots[1]))
		if d.Stage == Announced {
			late = !slices.Contains(h.Trusts, identity.FingerprintOf(roots[1]))
		}
		if late {
			out = append(out, h.Name)
		}
	}
	return out, nil
}

// Reseal seals the key with another secret, such as after a controller that knows the old one was removed.
func (d *Document) Reseal(from, to Secret, now time.Time) (*Document, error) {
	roots, err := d.roots()
	if err != nil {
		return nil, err
	}
	next := d.clone()
	next.Changed = now
	if next.Issuing.Key, err = reseal(d.Cluster, roots[0], &d.Issuing, from, to); err != nil {
		return nil, err
	}
	if d.Other == nil || d.Other.Key == nil {
		return next, nil
	}
	other := *d.Other
	next.Other = &other
	other.Key, err = reseal(d.Cluster, roots[1], d.Other, from, to)
	next.Other.Key = other.Key
	return next, err
}

func reseal(c identity.ClusterID, root *x509.Certificate, r *Root, from, to Secret) (*Sealed, error) {
	key, err := openKey(c, root, r, from)
	if err != nil {
		// A step that was made already is made again: all is sealed with the new one.
		if _, again := openKey(c, root, r, to); again == nil {
			return r.Key, nil
		}
		return nil, err
	}
	return sealKey(c, root, key, to)
}
