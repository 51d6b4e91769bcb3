package smoke

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
	"heddle/internal/test/testkit/realhost"
)

// Controllers keep their state in an etcd cluster that is there already, by TLS with certificates on both sides: two of
// one Heddle cluster share it, and one of another cluster has a prefix of its own.
func TestControllersShareAnEtcdThatIsThereAlready(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "etcd")
	ns, dir := testkit.NS(t, "machine"), t.TempDir()
	ca := certs.New(t, "outside")
	pair := ca.Issue("127.0.0.1", time.Hour)
	for name, text := range map[string][]byte{"cert": pair.Cert, "key": pair.Key, "ca": ca.PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const url, peer = "https://127.0.0.1:2379", "http://127.0.0.1:2380"
	etcd := exec.Command("etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", url,
		"--advertise-client-urls", url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer, "--cert-file", filepath.Join(dir, "cert"), "--key-file",
		filepath.Join(dir, "key"), "--trusted-ca-file", filepath.Join(dir, "ca"), "--client-cert-auth", "--logger",
		"zap", "--log-level", "error")
	if err := ns.Start(etcd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = etcd.Process.Kill()
		_ = etcd.Wait() // its status says that it was killed
	})
	flags := func(prefix string) []string {
		return []string{"--etcd-endpoints", url, "--etcd-ca", filepath.Join(dir, "ca"), "--etcd-cert",
			filepath.Join(dir, "cert"), "--etcd-key", filepath.Join(dir, "key"), "--etcd-prefix", prefix}
	}
	controller := func(name, address, prefix string) *realhost.Controller {
		c := realhost.NewController(t, ns, address)
		c.Name, c.Args = name, flags(prefix)
		return c
	}
	one, two := controller("one", "127.0.0.1:7411", "/a"), controller("two", "127.0.0.1:7421", "/a")
	other := controller("other", "127.0.0.1:7431", "/b")
	one.Start()
	token := strings.TrimSpace(one.Must("token"))
	two.Must(append([]string{"join", one.Address, "--token", token}, two.Args...)...)
	two.Start()
	other.Start()
	if _, err := one.Fleet.Define(t.Context(), api.Define{File: "fleet.yaml", Content: fleetText}); err != nil {
		t.Fatal(err)
	}
	two.Await("the other controller has the definition", func() bool {
		d, err := two.Definition(t.Context())
		return err == nil && strings.Contains(d.Content, "spare")
	})
	if d, err := other.Definition(t.Context()); err != nil || strings.Contains(d.Content, "spare") {
		t.Errorf("the cluster with another prefix: %+v, %v", d, err)
	}
	list, err := two.Controllers(t.Context())
	if err != nil || len(list.Controllers) != 2 || len(list.Notes) > 0 || list.Controllers[0].State != "up" {
		t.Errorf("the controllers: %+v, %v", list, err)
	}
	out, err := one.Run("snapshot", filepath.Join(dir, "db"))
	if err == nil || !strings.Contains(out, "its own tools") {
		t.Errorf("a snapshot of somebody else's etcd: %v: %s", err, out)
	}
}
