package keystore

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"heddle/internal/identity"
)

func TestExport_IsReadByOtherLibraries(t *testing.T) {
	s, dir := newIssuer(t), filepath.Join(t.TempDir(), "export")
	i := s.identity(s.must(identity.NewKey()))
	var before os.FileInfo
	for range 2 {
		e, err := Export(dir, i.Credentials())
		if err != nil {
			t.Fatal(err)
		}
		c, err := tls.LoadX509KeyPair(e.Certificate, e.Key)
		if err != nil || !c.Leaf.Equal(i.Certificate) {
			t.Fatal(err)
		}
		text, err := os.ReadFile(e.Roots)
		if err != nil {
			t.Fatal(err)
		}
		if roots, err := identity.ParseCerts(text); err != nil || len(roots) != 1 || !roots[0].Equal(s.root) {
			t.Error(err)
		}
		fi, err := os.Stat(e.Key)
		if err != nil || fi.Mode().Perm() != 0o600 {
			t.Error(fi.Mode(), err)
		}
		if before != nil && !os.SameFile(before, fi) {
			t.Error("the key was written again")
		}
		before = fi
	}
	if _, err := Export(dir, &identity.Credentials{Trust: i.Trust}); err == nil {
		t.Error("exported without a certificate")
	}
}
