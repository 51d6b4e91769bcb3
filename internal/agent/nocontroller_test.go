package agent

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/connection"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/diagnose/doctor"
	"heddle/internal/host/keystore"
	"heddle/internal/identity"
)

// joined writes the identity of a host, with a certificate that is valid until then.
func joined(dir string, until time.Time) error {
	d, err := keystore.Open(dir)
	if err != nil {
		return err
	}
	key, err := d.NextKey()
	if err != nil {
		return err
	}
	sign := func(n identity.Name, ca bool, by *x509.Certificate, until time.Time) (*x509.Certificate, error) {
		c := &x509.Certificate{SerialNumber: big.NewInt(1), URIs: []*url.URL{n.URI()}, IsCA: ca,
			BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: until}
		if by == nil {
			by = c
		}
		der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, key.PrivateKey)
		if err != nil {
			return nil, err
		}
		return x509.ParseCertificate(der)
	}
	root, err := sign(identity.Name{Cluster: "abc", Kind: identity.Authority}, true, nil, time.Now().Add(time.Hour))
	if err != nil {
		return err
	}
	own, err := sign(identity.Name{Cluster: "abc", Kind: identity.Host, ID: "h1"}, false, root, until)
	if err != nil {
		return err
	}
	return d.Save(&keystore.Identity{Trust: identity.Trust{Cluster: "abc", Roots: []*x509.Certificate{root}}, Key: key,
		Certificate: own, Display: "h1", Controllers: []string{"192.0.2.1:7411"}})
}

// Whatever keeps a host from its cluster, advise, doctor and with them status say it and what to do; a host that is in
// none, or has a controller, is told nothing.
func TestS115_AHostWithoutItsClusterIsNeverWell(t *testing.T) {
	change := func(f func(path string) error, pattern string) func(*membership, string) error {
		return func(_ *membership, dir string) error {
			list, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(list) == 0 {
				return os.ErrNotExist
			}
			return f(list[0])
		}
	}
	empty := func(path string) error { return os.WriteFile(path, nil, 0o600) }
	half := func(path string) error {
		fi, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, fi.Size()/2)
		}
		return err
	}
	other := func(path string) error { return os.WriteFile(path, []byte("\x00other\xff"), 0o600) }
	const doc, key, damaged = "identity.json", "key-*", "cannot say who it is in its cluster"
	for _, row := range []struct {
		name  string
		until time.Duration // how long its certificate is valid
		fault func(m *membership, dir string) error
		says  string // "" where nothing is wrong
	}{
		{"empty identity", time.Hour, change(empty, doc), damaged},
		{"half an identity", time.Hour, change(half, doc), damaged},
		{"another identity", time.Hour, change(other, doc), damaged},
		{"no identity", time.Hour, change(os.Remove, doc), "its identity in that cluster is gone"},
		{"empty key", time.Hour, change(empty, key), damaged},
		{"half a key", time.Hour, change(half, key), damaged},
		{"another key", time.Hour, change(other, key), damaged},
		{"no key", time.Hour, change(os.Remove, key), damaged},
		{"expired", -time.Minute, nil, "its certificate expired on"},
		{"no controller", time.Hour, func(m *membership, _ string) error {
			m.connection.Stand(connection.Standing{Since: time.Now().Add(-time.Minute),
				Problem: os.ErrDeadlineExceeded.Error()})
			return nil
		}, "has had no controller for 1m"},
		{"a controller", time.Hour, func(m *membership, _ string) error {
			m.connection.Stand(connection.Standing{Controller: "192.0.2.1:7411", Since: time.Now()})
			return nil
		}, ""},
		{"a controller that is about to answer", time.Hour, nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, base)
			dir := filepath.Join(r.dir, "identity")
			if err := joined(dir, time.Now().Add(row.until)); err != nil {
				t.Fatal(err)
			}
			r.state.Slice = &state.Slice{Epoch: 1, Revision: 7}
			beforeOpen := strings.Contains(row.says, "identity") || row.says == damaged
			if row.fault != nil && beforeOpen {
				if err := row.fault(r.membership, dir); err != nil {
					t.Fatal(err)
				}
			}
			r.connection.Open(r.dir)
			if row.fault != nil && !beforeOpen {
				if err := row.fault(r.membership, dir); err != nil {
					t.Fatal(err)
				}
			}
			var advice *api.Advice
			var member *api.Membership
			err := r.command(func(ctx context.Context) (err error) {
				if advice, err = r.answers.Advise(ctx, api.AdviseRequest{}); err == nil {
					member, err = r.membership.Membership(ctx)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(advice.Findings, func(f api.Finding) bool { return f.Rule == "no-controller" })
			if row.says == "" && i >= 0 {
				t.Fatalf("advise: %+v", advice.Findings[i])
			}
			if row.says != "" && (i < 0 || advice.Healthy() || !strings.Contains(advice.Findings[i].Sign, row.says) ||
				advice.Findings[i].Change == "") {
				t.Errorf("advise: %+v, want %q", advice.Findings, row.says)
			}
			found := doctor.Examine(doctor.Facts{Agent: doctor.Agent{Running: true, Member: member},
				Clock: doctor.Clock{Now: time.Now()}})
			i = slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Check == "controllers" })
			if wrong := found[i].Level == doctor.Wrong; wrong != (row.says != "") ||
				wrong && (!strings.Contains(found[i].Text, row.says) || found[i].Remedy == "") {
				t.Errorf("doctor: %+v, want %q", found[i], row.says)
			}
		})
	}
}
