package rpc

import (
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect/v2"

	"heddle/internal/identity"
	"heddle/internal/platform/pki"
)

// Bounds of what a host can have written by renewing its certificate. Its own record pays for all of it.
const (
	// mostFormer is how many certificates of a host count beside the newest: those before them are withdrawn.
	mostFormer = 16
	// mostWithdrawn is how many that are withdrawn the record names, for controllers of an earlier version.
	mostWithdrawn = 2 * (mostFormer + 1)
	// mostRenewals is how often a host renews its certificate within renewalsIn. It needs one in two months; the others
	// are for answers that were lost.
	mostRenewals = 4
	renewalsIn   = time.Hour
)

// formerCert is a certificate of a host before its newest one. It counts for as long as it has not ended: the answer
// with the newer one may not have reached the host.
type formerCert struct {
	Serial  string    `json:"serial"`
	Expires time.Time `json:"expires"`
	// Made is zero in what an earlier version wrote.
	Made time.Time `json:"made,omitzero"`
}

// made is when the certificate was made.
func (f *formerCert) made() time.Time {
	if f.Made.IsZero() {
		return f.Expires.Add(-pki.CertificateLife)
	}
	return f.Made
}

// withdrawal says that certificates of a host that were made up to an instant count no more, but for those in its
// record.
type withdrawal struct {
	Since time.Time `json:"since"`
	pki.Revocation
	// Certs are the newest of them that could be renewed still: a controller of an earlier version knows what is
	// withdrawn by its serial alone.
	Certs []formerCert `json:"certs,omitempty"`
}

// withdraw withdraws certificates that the record has no more.
func (d *hostDoc) withdraw(certs []formerCert, e pki.Revocation) {
	if len(certs) == 0 {
		return
	}
	w := withdrawal{Revocation: e, Since: e.At} // the record has all that was made until now
	if d.Withdrawn != nil {
		if d.Withdrawn.Since.After(w.Since) {
			w.Since = d.Withdrawn.Since
		}
		w.Certs = slices.Clone(d.Withdrawn.Certs)
	}
	w.Certs = slices.DeleteFunc(append(w.Certs, certs...), func(c formerCert) bool {
		return e.At.After(pki.UntilOf(c.Expires))
	})
	if n := len(w.Certs) - mostWithdrawn; n > 0 {
		w.Certs = w.Certs[n:]
	}
	for i := range certs {
		if made := certs[i].made(); made.After(w.Since) {
			w.Since = made
		}
	}
	d.Withdrawn = &w
}

// certificates are all that count, the newest last.
func (d *hostDoc) certificates() []formerCert {
	newest := formerCert{Serial: d.Serial, Expires: d.Expires}
	if d.MadeOf == d.Serial {
		newest.Made = d.Made
	}
	return append(slices.Clone(d.Former), newest)
}

// has makes a certificate the newest one.
func (d *hostDoc) has(issued *pki.Issued) {
	c := issued.Certificate
	d.Serial, d.Expires, d.Made = identity.SerialOf(c), c.NotAfter, identity.MadeAt(c)
	d.MadeOf = d.Serial
	d.Issuer, d.Trusts = issued.Root, issued.Trusts
}

// next is the host with another certificate. Those before it that are too many are withdrawn.
func (d hostDoc) next(issued *pki.Issued, now time.Time) hostDoc {
	next := d
	next.Former = nil
	for _, f := range d.certificates() {
		if now.Before(pki.UntilOf(f.Expires)) {
			next.Former = append(next.Former, f)
		}
	}
	if n := len(next.Former) - mostFormer; n > 0 {
		next.withdraw(next.Former[:n], pki.Revocation{At: now, By: "the controller", Why: "it was renewed since"})
		next.Former = next.Former[n:]
	}
	next.has(issued)
	return next
}

// holding says which certificates of the host count, by that version of its record.
func (d *hostDoc) holding(version int64) (h pki.Holding) {
	h.Version = version
	for _, c := range d.certificates() {
		h.Serials = append(h.Serials, c.Serial)
	}
	if d.Withdrawn != nil {
		h.Since, h.Why = d.Withdrawn.Since, d.Withdrawn.Revocation
	}
	return h
}

// mayRenew refuses a renewal to a host that has renewed too often of late. A host that has none of the roots that issue
// now, or does not trust all of them, is never refused: an admin changes them.
func (d *hostDoc) mayRenew(a *pki.Authority, now time.Time) error {
	if d.Issuer != a.Fingerprint() || !slices.Equal(d.Trusts, a.Trusted()) {
		return nil
	}
	var lately []time.Time
	for _, c := range d.certificates() {
		if now.Sub(c.made()).Abs() < renewalsIn { // the clock of who made it may be ahead
			lately = append(lately, c.made())
		}
	}
	if len(lately) < mostRenewals {
		return nil
	}
	again := slices.MinFunc(lately, time.Time.Compare).Add(renewalsIn)
	return connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("host %s was given %d certificates within an "+
		"hour, which is the most, and the newest of them counts; it may renew it again at %s. A host whose answers do "+
		"not get lost has no need to: somebody else may have its key (heddle host remove)", d.Name, len(lately),
		again.UTC().Format("15:04 UTC")))
}
