package chaos

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit/certs"
)

// member is one of an outside etcd, on a machine of its own.
type member struct {
	name    string
	ns      *netns.NS
	args    []string
	process *exec.Cmd
	log     bytes.Buffer
}

func memberAddress(i int) string { return fmt.Sprintf("10.0.0.%d", 201+i) }

// newMember prepares a member.
func (r *rig) newMember(i, members int) *member {
	r.t.Helper()
	address := memberAddress(i)
	name := fmt.Sprintf("etcd%d", i+1)
	m := &member{name: name, ns: r.machine(name, "e", i, address)}
	var all []string
	for k := range members {
		all = append(all, fmt.Sprintf("etcd%d=http://%s:2380", k+1, memberAddress(k)))
	}
	client, peer := "https://"+address+":2379", "http://"+address+":2380"
	m.args = []string{"--name", m.name, "--data-dir", filepath.Join(r.t.TempDir(), "etcd"), "--listen-client-urls",
		client, "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(all, ","), "--listen-metrics-urls", "http://127.0.0.1:2381",
		"--logger", "zap", "--log-level", "warn"}
	r.t.Cleanup(func() {
		if m.process != nil {
			m.end()
		}
	})
	return m
}

// secure has the members show certificates and ask for them, and gives the flags of who calls them.
func (r *rig) secure() (flags []string) {
	r.t.Helper()
	dir, ca := r.t.TempDir(), certs.New(r.t, "outside")
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			r.t.Fatal(err)
		}
		return path
	}
	authority := file("ca", ca.PEM())
	var urls []string
	for i, m := range r.members {
		pair := ca.Issue(memberAddress(i), 24*time.Hour)
		m.args = append(m.args, "--cert-file", file(m.name+".cert", pair.Cert), "--key-file",
			file(m.name+".key", pair.Key), "--trusted-ca-file", authority, "--client-cert-auth")
		urls = append(urls, "https://"+memberAddress(i)+":2379")
	}
	pair := ca.Issue("controllers", 24*time.Hour)
	return []string{"--etcd-endpoints", strings.Join(urls, ","), "--etcd-ca", authority, "--etcd-cert",
		file("cert", pair.Cert), "--etcd-key", file("key", pair.Key)}
}

func (m *member) start(t *testing.T) {
	t.Helper()
	m.process = exec.Command("etcd", m.args...)
	m.process.Stderr = &m.log
	if err := m.ns.Start(m.process); err != nil {
		t.Fatal(err)
	}
}

func (m *member) end() {
	_ = m.process.Process.Signal(syscall.SIGKILL)
	_ = m.process.Wait() // its status says that it was killed
	m.process = nil
}
