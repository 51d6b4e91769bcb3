package controller

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/test/testkit/certs"
)

// What is given of an existing etcd cluster is checked before it is used: no password and no state goes over a network
// in plain text, and no password is in a file that others may read.
func TestOutside_IsCheckedBeforeItIsUsed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := certs.New(t, "outside")
	pair := ca.Issue("c1", time.Hour)
	caFile, cert := file("ca.pem", string(ca.PEM()), 0o600), file("cert.pem", string(pair.Cert), 0o600)
	key, password := file("key.pem", string(pair.Key), 0o600), file("password", "secret\n", 0o600)
	open, two := file("open", "secret\n", 0o644), file("two", "a\nb\n", 0o600)
	far := []string{"https://etcd1:2379"}
	for _, c := range []struct {
		name string
		e    Outside
		want string // "" for no error
	}{
		{"TLS with everything", Outside{Endpoints: far, CA: caFile, Cert: cert, Key: key, User: "u",
			PasswordFile: password, Prefix: "/lab/"}, ""},
		{"plain text on the loopback", Outside{Endpoints: []string{"http://127.0.0.1:2379"}}, ""},
		{"plain text beyond it", Outside{Endpoints: []string{"http://etcd1:2379"}}, "on the loopback only"},
		{"no scheme", Outside{Endpoints: []string{"etcd1:2379"}}, "give https://HOST:PORT"},
		{"a user without a password", Outside{Endpoints: far, User: "u"}, "belong together"},
		{"a password that others may read", Outside{Endpoints: far, User: "u", PasswordFile: open}, "chmod 600"},
		{"a password of two lines", Outside{Endpoints: far, User: "u", PasswordFile: two}, "one line"},
		{"a key without its certificate", Outside{Endpoints: far, Key: key}, "belong together"},
		{"another's key", Outside{Endpoints: far, Cert: cert, Key: caFile}, "--etcd-cert and --etcd-key"},
		{"no authority in the file", Outside{Endpoints: far, CA: key}, "no certificate in PEM form"},
		{"certificates without TLS", Outside{Endpoints: []string{"http://localhost:1"}, CA: caFile},
			"are for https://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := c.e.options()
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
			}
			if err != nil || o.Prefix != c.e.Prefix || (o.Password == "secret") != (c.e.PasswordFile != "") {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// Where the other controllers find this one follows from where the agents do, unless somebody says.
func TestPeers_FollowTheAgentsAddress(t *testing.T) {
	for _, c := range []struct {
		name                       string
		o                          Options
		listen, advertise, problem string
	}{
		{"an address", Options{Listen: "192.0.2.1:7411", Advertise: "c1.example:7411"}, "192.0.2.1:7412",
			"c1.example:7412", ""},
		{"behind a translation", Options{Listen: "10.0.0.1:7411", Advertise: "c1.example:443"}, "10.0.0.1:7412",
			"c1.example:7412", ""},
		{"given", Options{Listen: "10.0.0.1:7411", Advertise: "c1:7411", ListenPeers: "10.1.0.1:9000",
			AdvertisePeers: "peer1:9001"}, "10.1.0.1:9000", "peer1:9001", ""},
		{"alone", Options{Listen: ":7411", Advertise: "c1:7411", ListenPeers: "none"}, "", "", ""},
		{"the loopback", Options{Listen: "localhost:1", Advertise: "localhost:1"}, "127.0.0.1:2", "localhost:2", ""},
		{"a name to listen on", Options{Listen: "c1:7411", Advertise: "c1:7411"}, "", "", "give an IP address"},
		{"the last port", Options{Listen: "10.0.0.1:65535", Advertise: "c1:1"}, "", "", "no port after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			listen, advertise, err := c.o.peers()
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("error %v, want %q", err, c.problem)
				}
				return
			}
			if err != nil || listen != c.listen || advertise != c.advertise {
				t.Errorf("%q, %q, %v", listen, advertise, err)
			}
		})
	}
}
