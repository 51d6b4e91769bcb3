package fleet

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
	"heddle/internal/test/testkit/realhost"
)

// etcdURL is where somebody else's etcd is reached, etcdPeer what it has for members.
const etcdURL, etcdPeer = "https://127.0.0.1:2379", "http://127.0.0.1:2380"

// newEtcd makes certificates for an etcd of somebody else's in a directory, and starts it.
func newEtcd(t *testing.T, ns *netns.NS, dir string, flags ...string) *exec.Cmd {
	t.Helper()
	testkit.Tool(t, "etcd")
	ca := certs.New(t, "outside")
	pair := ca.Issue("127.0.0.1", time.Hour)
	for name, text := range map[string][]byte{"cert": pair.Cert, "key": pair.Key, "ca": ca.PEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startEtcd(t, ns, dir, flags...)
}

// startEtcd starts it with what it has there.
func startEtcd(t *testing.T, ns *netns.NS, dir string, flags ...string) *exec.Cmd {
	t.Helper()
	etcd := exec.Command("etcd", append([]string{"--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls",
		etcdURL, "--advertise-client-urls", etcdURL, "--listen-peer-urls", etcdPeer, "--initial-advertise-peer-urls",
		etcdPeer, "--initial-cluster", "default=" + etcdPeer, "--cert-file", filepath.Join(dir, "cert"), "--key-file",
		filepath.Join(dir, "key"), "--trusted-ca-file", filepath.Join(dir, "ca"), "--client-cert-auth", "--logger",
		"zap", "--log-level", "error"}, flags...)...)
	if err := ns.Start(etcd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(etcd) })
	return etcd
}

// kill ends a process unless it has ended.
func kill(c *exec.Cmd) {
	if c.ProcessState == nil {
		_ = c.Process.Kill()
		_ = c.Wait() // its status says that it was killed
	}
}

// outsideFlags are those of a controller that keeps its state there, below a prefix.
func outsideFlags(dir, prefix string) []string {
	return []string{"--etcd-endpoints", etcdURL, "--etcd-ca", filepath.Join(dir, "ca"), "--etcd-cert",
		filepath.Join(dir, "cert"), "--etcd-key", filepath.Join(dir, "key"), "--etcd-prefix", prefix}
}

// askEtcd asks that etcd by its JSON, as who runs it would with etcdctl.
func askEtcd(t *testing.T, ns *netns.NS, dir, what, question string, answer any) error {
	t.Helper()
	testkit.Tool(t, "curl")
	cmd := exec.Command("curl", "--silent", "--show-error", "--fail", "--cacert", filepath.Join(dir, "ca"), "--cert",
		filepath.Join(dir, "cert"), "--key", filepath.Join(dir, "key"), "--data", question,
		etcdURL+"/v3/"+what)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := ns.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(out.Bytes(), answer)
}

// Controllers keep their state in an etcd cluster that is there already, by TLS with certificates on both sides: two of
// one Heddle cluster share it, and one of another cluster has a prefix of its own.
func TestControllersShareAnEtcdThatIsThereAlready(t *testing.T) {
	t.Parallel()
	testkit.Root(t)
	ns, dir := testkit.NS(t, "machine"), t.TempDir()
	newEtcd(t, ns, dir)
	controller := func(name, address, prefix string) *realhost.Controller {
		c := realhost.NewController(t, ns, address)
		c.Name, c.Args = name, outsideFlags(dir, prefix)
		return c
	}
	one, two := controller("one", "127.0.0.1:7411", "/a"), controller("two", "127.0.0.1:7421", "/a")
	other := controller("other", "127.0.0.1:7431", "/b")
	one.Start()
	token := strings.TrimSpace(one.Must("token"))
	two.Must(append([]string{"join", one.Address, "--token", token}, two.Args...)...)
	two.Start()
	other.Start()
	if _, err := one.Defines(api.Define{File: "fleet.yaml", Content: fleetText}); err != nil {
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
