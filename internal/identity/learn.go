package identity

import (
	"crypto/x509"
	"slices"
	"time"
)

// Learn is the trust after a controller has shown its chain, which was checked before: roots that are new to the caller
// are taken where one that it trusts has signed them, as in a rotation; those that the controller shows no more are
// given up. changed is false where all is as before.
func (t *Trust) Learn(shown []*x509.Certificate, now time.Time) (next Trust, changed bool) {
	next = Trust{Cluster: t.Cluster}
	for _, c := range shown[:min(len(shown), maxShown)] {
		if t.isRoot(c) && (t.has(c) || t.linked(c, shown, now)) {
			next.Roots = append(next.Roots, c)
		}
	}
	if len(next.Roots) == 0 { // it shows none that is known: whoever it is, nothing is given up for it
		return *t, false
	}
	return next, !slices.EqualFunc(next.Roots, t.Roots, (*x509.Certificate).Equal)
}

// isRoot reports whether a certificate is that of an authority of the cluster that signs itself.
func (t *Trust) isRoot(c *x509.Certificate) bool {
	name, err := NameOf(c)
	return err == nil && name.Kind == Authority && name.Cluster == t.Cluster && c.IsCA && c.CheckSignatureFrom(c) == nil
}

func (t *Trust) has(c *x509.Certificate) bool {
	return slices.ContainsFunc(t.Roots, c.Equal)
}

// linked reports whether a root that is trusted has signed the key of another one.
func (t *Trust) linked(c *x509.Certificate, shown []*x509.Certificate, now time.Time) bool {
	return slices.ContainsFunc(shown, func(link *x509.Certificate) bool {
		if !link.IsCA || !FingerprintOf(link).Equal(FingerprintOf(c)) || now.After(link.NotAfter) {
			return false
		}
		return slices.ContainsFunc(t.Roots, func(r *x509.Certificate) bool { return link.CheckSignatureFrom(r) == nil })
	})
}
