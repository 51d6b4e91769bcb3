package export

import (
	"os"
	"path/filepath"
	"testing"

	"heddle/internal/test/testkit/certs"
)

// files writes an exporter's certificate files to a directory.
func files(t *testing.T, dir string, ca []byte, own certs.Pair) TLS {
	t.Helper()
	f := TLS{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "certificate.pem"),
		Key: filepath.Join(dir, "key.pem")}
	for name, content := range map[string][]byte{f.CA: ca, f.Certificate: own.Cert, f.Key: own.Key} {
		if err := os.WriteFile(name+".new", content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	return f
}
