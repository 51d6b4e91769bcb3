package pki

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"heddle/internal/identity"
)

// Subjects of warnings.
const (
	RootSubject       = "root"
	ControllerSubject = "controller"
	HostSubject       = "host"
	APITokenSubject   = "token"
	JoinTokenSubject  = "join-token"
)

// Expiring is something that ends.
type Expiring struct {
	// Subject is what it is: root, controller, host, token, join-token.
	Subject string `json:"subject"`
	ID      string `json:"id"`
	// Name is how people know it.
	Name string    `json:"name,omitempty"`
	Made time.Time `json:"made"`
	Ends time.Time `json:"ends"`
}

// Level is how near an end is.
type Level uint8

// The levels of warnings.
const (
	// Soon: 30 days.
	Soon Level = iota + 1
	// Urgent: 7 days.
	Urgent
	// Over: it has ended.
	Over
)

// String is the level's word.
func (l Level) String() string {
	switch l {
	case Soon:
		return "soon"
	case Urgent:
		return "urgent"
	case Over:
		return "over"
	}
	return fmt.Sprintf("level %d", uint8(l))
}

// MarshalText writes the level's word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Warning is about something that ends soon.
type Warning struct {
	Expiring
	Level Level `json:"level"`
	// Text says what ends when, and what to do.
	Text string `json:"text"`
}

// Warnings are those that there are now, what ends first in front. A certificate is renewed when a third of its life is
// left, so that nothing is said before unless that failed; what lives shorter is warned about later in proportion.
func Warnings(items []Expiring, now time.Time) (out []Warning) {
	for _, e := range items {
		life, left := e.Ends.Sub(e.Made), e.Ends.Sub(now)
		w := Warning{Expiring: e}
		switch {
		case left <= 0:
			w.Level = Over
		case left < min(7*24*time.Hour, life/12):
			w.Level = Urgent
		case left < min(30*24*time.Hour, life/3):
			w.Level = Soon
		default:
			continue
		}
		w.Text = w.say(left)
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b Warning) int {
		return cmp.Or(a.Ends.Compare(b.Ends), strings.Compare(a.Subject, b.Subject), strings.Compare(a.ID, b.ID))
	})
	return out
}

func (w *Warning) say(left time.Duration) string {
	what := map[string][2]string{
		RootSubject:       {"the cluster's root", "rotate it"},
		ControllerSubject: {"the certificate of controller", "look at why it was not renewed"},
		HostSubject: {"the certificate of host",
			"it renews it by itself when it is connected; 90 days after its end it has to join again"},
		APITokenSubject:  {"the token of", "make a new one"},
		JoinTokenSubject: {"the join token", "make a new one, if it is still needed"},
	}[w.Subject]
	name := cmp.Or(w.Name, w.ID)
	if w.Level == Over {
		return fmt.Sprintf("%s %s expired on %s: %s", what[0], name, stamp(w.Ends), what[1])
	}
	rest := fmt.Sprintf("%d days", int(left/(24*time.Hour)))
	if left < 48*time.Hour {
		rest = fmt.Sprintf("%d hours", int(left/time.Hour))
	}
	return fmt.Sprintf("%s %s expires in %s, on %s: %s", what[0], name, rest, stamp(w.Ends), what[1])
}

// ExpiringRoots are the cluster's roots. One that was given up for another is left out: its end is awaited.
func (a *Authority) ExpiringRoots() (out []Expiring) {
	for i, r := range a.trust.Roots {
		if i > 0 && a.Document.Stage == Switched {
			break
		}
		out = append(out, Expiring{RootSubject, identity.FingerprintOf(r).String()[:16], "",
			r.NotBefore.Add(2 * identity.Backdate), r.NotAfter})
	}
	return out
}

// ExpiringCertificate is a host's or a controller's.
func ExpiringCertificate(c *x509.Certificate) (Expiring, error) {
	n, err := identity.NameOf(c)
	if err != nil {
		return Expiring{}, err
	}
	return Expiring{n.Kind.String(), n.ID, c.Subject.CommonName, identity.MadeAt(c), c.NotAfter}, nil
}

// Expiring is the token as something that ends.
func (r *APIRecord) Expiring() Expiring {
	return Expiring{APITokenSubject, string(r.ID), r.Name, r.Made, r.Expires}
}

// Expiring is the token as something that ends; false for one that nobody is warned about: it was used, or it was made
// for less than a month, as tokens for joining are, which end unused as often as not.
func (r *JoinRecord) Expiring() (Expiring, bool) {
	return Expiring{JoinTokenSubject, string(r.ID), "", r.Made, r.Expires},
		r.Used == nil && r.Expires.Sub(r.Made) >= 30*24*time.Hour
}
