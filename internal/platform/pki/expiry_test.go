package pki

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heddle/internal/platform/access/roles"
)

func TestWarnings(t *testing.T) {
	c := newCluster(t, start())
	h, err := ExpiringCertificate(c.host("h1", start()).cert)
	c.must(err)
	ctl, err := ExpiringCertificate(c.controller("c1", start()).cert)
	c.must(err)
	root := c.ExpiringRoots()[0]
	_, api, err := NewAPIToken(APITerms{Name: "ci", Role: roles.Viewer, Life: 365 * day, By: "x"}, start())
	c.must(err)
	short := Expiring{APITokenSubject, "short", "", start(), start().Add(12 * time.Hour)}
	for _, row := range []struct {
		what string
		e    Expiring
		left time.Duration
		want Level
	}{
		{"root", root, 30 * day, 0},
		{"root", root, 30*day - 1, Soon},
		{"root", root, 7 * day, Soon},
		{"root", root, 7*day - 1, Urgent},
		{"root", root, 0, Over},
		{"host at its renewal", h, CertificateLife / 3, 0},
		{"host that was not renewed", h, CertificateLife/3 - 1, Soon},
		{"host", h, 6 * day, Urgent},
		{"host", h, -day, Over},
		{"controller", ctl, 29 * day, Soon},
		{"token", api.Expiring(), 31 * day, 0},
		{"token", api.Expiring(), 29 * day, Soon},
		{"token of half a day", short, 5 * time.Hour, 0},
		{"token of half a day", short, 3 * time.Hour, Soon},
		{"token of half a day", short, 59 * time.Minute, Urgent},
	} {
		t.Run(fmt.Sprint(row.what, row.left), func(t *testing.T) {
			got := Warnings([]Expiring{row.e}, row.e.Ends.Add(-row.left))
			if row.want == 0 && len(got) > 0 || row.want != 0 && (len(got) != 1 || got[0].Level != row.want) {
				t.Errorf("%+v", got)
			}
		})
	}
	all := Warnings([]Expiring{api.Expiring(), root, ctl, h}, start().AddDate(20, 0, 0))
	var order []string
	for _, w := range all {
		order = append(order, w.Subject)
	}
	if strings.Join(order, " ") != "controller host token root" {
		t.Error(order)
	}
	got := Warnings([]Expiring{h}, h.Ends.Add(-3*day))[0].Text
	if want := "the certificate of host host h1 expires in 3 days, on 2027-05-30 12:00 UTC: it renews it by itself " +
		"when it is connected; 90 days after its end it has to join again"; got != want {
		t.Errorf("%q", got)
	}
	for _, row := range []struct {
		what string
		r    *JoinRecord
		want bool
	}{
		{"for a day", &JoinRecord{Made: start(), Expires: start().Add(day)}, false},
		{"for two months", &JoinRecord{Made: start(), Expires: start().Add(60 * day)}, true},
		{"used", &JoinRecord{Made: start(), Expires: start().Add(60 * day), Used: &Use{}}, false},
	} {
		t.Run("join token "+row.what, func(t *testing.T) {
			if _, got := row.r.Expiring(); got != row.want {
				t.Error(got)
			}
		})
	}
	// While the root is rotated: both, then only the one that stays.
	d, err := c.Document.Announce(c.secret, start().AddDate(9, 11, 0))
	c.must(err)
	c.take(d)
	if got := c.ExpiringRoots(); len(got) != 2 || len(Warnings(got, start().Add(RootLife-day))) != 1 {
		t.Errorf("%+v", got)
	}
	d, err = d.Switch(start().AddDate(9, 11, 0))
	c.must(err)
	c.take(d)
	if got := c.ExpiringRoots(); len(got) != 1 || len(Warnings(got, start().Add(RootLife-day))) != 0 {
		t.Errorf("%+v", got)
	}
}
